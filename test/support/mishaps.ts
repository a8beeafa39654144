// A world in which about one request in ten goes wrong, at the source and at the store, in every way that both know.
import type { Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { createRandom } from './random.ts';
import { type Fault, openStrictS3, type StrictS3 } from './strict-s3.ts';

/** A store whose puts and proofs fail by chance, drawn by the seed, until it is told to behave. */
export async function openUnreliableS3(seed: number): Promise<StrictS3 & { behave(): void }> {
  const random = createRandom(seed);
  let share = 0.1;
  const s3 = await openStrictS3({
    mishap: (operation) =>
      (operation === 'PutObject' || operation === 'HeadObject') && random.chance(share)
        ? random.pick(storeFaults)
        : undefined,
  });
  return Object.assign(s3, {
    behave() {
      share = 0;
    },
  });
}

const storeFaults: readonly Fault[] = [
  { kind: 'answer', status: 500, code: 'InternalError' },
  { kind: 'answer', status: 503, code: 'SlowDown' },
  { kind: 'answerLost' },
  { kind: 'reset' },
  { kind: 'wrongBytes' },
  { kind: 'shortBytes' },
];

/** Lets the source's attachments fail by chance in eight ways, for ever, and in one more once. */
export function trouble(board: Sandbox): void {
  const by = { on: 'attachments', times: null, probability: 0.012 } as const;
  board.fault({ kind: 'fail', status: 500, ...by });
  board.fault({ kind: 'fail', status: 404, ...by });
  board.fault({ kind: 'reset', at: 'start', ...by });
  board.fault({ kind: 'reset', at: 'body', ...by });
  board.fault({ kind: 'html', ...by });
  board.fault({ kind: 'emptyBody', ...by });
  board.fault({ kind: 'cut', framing: 'chunked', ...by });
  board.fault({ kind: 'cut', framing: 'closeDelimited', ...by });
  // Twice in a row on one file this cannot be told from a list that is wrong about its Size: once on every tenth application.
  for (const [nth, { id: applicationId }] of [...board.truth()].entries())
    if (nth % 10 === 5) board.fault({ kind: 'gzip', on: 'attachments', applicationId });
}

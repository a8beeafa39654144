// Makes about one request in ten fail at random, in many ways, at the source and at the blob store.
import type { Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { createRandom } from './random.ts';
import { type Fault, openStrictS3, type StrictS3 } from './strict-s3.ts';

/** A store whose PutObject and HeadObject requests fail at random, determined by the seed, until `behave` is called. */
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

/** Makes attachment requests to the source fail at random in eight ways without end, and in a ninth way once for each tenth application. */
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
  // Twice in a row on one file, this fault looks like a list with a wrong Size. So it happens only once per application.
  for (const [nth, { id: applicationId }] of [...board.truth()].entries())
    if (nth % 10 === 5) board.fault({ kind: 'gzip', on: 'attachments', applicationId });
}

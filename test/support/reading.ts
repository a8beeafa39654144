// Reads an account as a worker does, piece by piece.
import { lastPosition, nearestPosition, wholeAxis } from '../../src/domain/coverage/position.ts';
import type { Source } from '../../src/source/client.ts';
import type { Store } from '../../src/store/store.ts';
import { holdLane } from '../../src/sync/accounts/held-lane.ts';
import { readAgain } from '../../src/sync/read/read-tasks.ts';
import type { ReadContext } from '../../src/sync/read/sweep.ts';
import { createAccountQueues, type TaskName } from '../../src/sync/worker/account-queue.ts';
import { runTask } from '../../src/sync/worker/run-task.ts';
import type { SmallIntake } from './small-intake.ts';

interface Reader {
  readonly store: Store;
  readonly openSource: SmallIntake['openSource'];
}

/** Holds the live lane of the account while `work` reads, from a source of the test's own or from that of the board. */
export async function inLane<T>(
  { store, openSource }: Reader,
  work: (read: Parameters<typeof readAgain>) => Promise<T>,
  given: { readonly source?: Source; readonly hasToStop?: ReadContext['hasToStop'] } = {},
): Promise<T> {
  await using opened = openSource('json');
  const { source = opened, hasToStop = () => false } = given;
  const advertiser = await store.advertisers.ensure('default', null);
  const signal = AbortSignal.timeout(600_000);
  await using lane = await holdLane(store, { name: 'default', lane: 'live', owner: 'test', leaseMs: 600_000, signal });
  const context = { lane, advertiser, lagMs: 0, startAt: null, hasToStop };
  return await work([{ store, source }, context, wholeAxis]);
}

/** Reads everything from this id on again, until so many answers are committed. */
export async function readSome(reader: Reader, most: number, from = 1n) {
  let steps = 0;
  return await inLane(
    reader,
    ([deps, context]) =>
      readAgain({ ...deps, onStep: () => steps++ }, context, { from: nearestPosition(from), to: lastPosition }),
    { hasToStop: () => steps >= most },
  );
}

/** Runs a task of the worker for the only account; `demand` is told the tasks that it makes due. */
export async function runTaskOf(
  store: Store,
  source: Source,
  name: TaskName,
  demand: (name: TaskName) => void = () => {},
) {
  const account = { name: 'default', advertiserId: null, source, watch: () => {} };
  const signal = AbortSignal.timeout(600_000);
  const limits = { atOnce: 1, longAtOnce: 1 };
  const [queue] = createAccountQueues({ accounts: [account], ...limits, work: async () => {}, signal }).all;
  if (!queue) throw new Error('There is no account.');
  const request = { owner: 'test', leaseMs: 30_000, lagMs: 0, startAt: null, skipIfDoneWithinMs: 0, signal };
  return await runTask({ store, demand }, request, queue, name);
}

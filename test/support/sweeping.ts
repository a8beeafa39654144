// Single sweeps of a sandbox into a test database, with limits of the test's own.
import type { Plan } from '../../src/domain/coverage.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { createSource, type SourceOptions } from '../../src/source/client.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { type Duty, readAgain } from '../../src/sync/duties.ts';
import { holdLane } from '../../src/sync/lane.ts';
import type { SweepSummary } from '../../src/sync/sweep.ts';
import type { TestDatabase } from './test-database.ts';

export interface Sweeping extends AsyncDisposable {
  readonly store: Store;
  /** Reads a range up to a proof, going on with an unfinished reading of it. */
  read(plan?: Plan, more?: Partial<Duty>): Promise<SweepSummary>;
}

/** Opens the store, the source and the live lane of one advertiser. */
export async function openSweeping(
  database: TestDatabase,
  board: Sandbox,
  limits: Partial<SourceOptions> = {},
): Promise<Sweeping> {
  const stack = new AsyncDisposableStack();
  const store = stack.use(openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('a key for tests') }));
  const source = stack.use(
    createSource({
      url: board.url,
      credential: board.credential,
      format: 'json',
      idleTimeoutMs: 10_000,
      totalTimeoutMs: 30_000,
      connections: 4,
      listMaxBytes: 3_000_000,
      applicationMaxBytes: 64_000_000,
      userAgent: 'test',
      ...limits,
    }),
  );
  const name = 'default';
  const { signal } = new AbortController();
  const advertiser = await store.ensureAdvertiser(name, board.advertiserId);
  const lane = stack.use(await holdLane(store, { name, lane: 'live', owner: 'test', leaseMs: 30_000, signal }));
  return {
    store,
    read: (plan = { from: 1n }, more) =>
      readAgain({ store, source }, { lane, advertiser, lagMs: 0, startAt: null, patienceMs: 0, ...more }, plan),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

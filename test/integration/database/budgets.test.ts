// @module-tag slow
// What one sweep may cost: its requests, its time, and the bytes of an answer. Whatever the bound, nothing is lost and the status says so.
import { describe, expect } from 'vitest';
import { openSandbox, type Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import { wholeAxis } from '../../../src/domain/coverage/position.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { holdLane } from '../../../src/sync/accounts/held-lane.ts';
import { readAgain } from '../../../src/sync/read/read-tasks.ts';
import { addUp, nothingCounted, type ReadContext, type SweepCounts } from '../../../src/sync/read/sweep.ts';
import { openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { findDifferences } from '../../support/equality.ts';
import type { CountedSweep } from '../../support/processes/syncing.ts';
import { type OwnSourceOptions, openOwnSource } from '../../support/servers/own-source.ts';

test('reading again what is held costs few requests a page, and finds who was late', async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 1_500, choices: { order: 'descending' } });
  const [late] = [...board.truth()].slice(234, 235).map(({ id }) => id);
  board.remove(late ?? 0n);
  await using sweeping = await openSweeping(database, board);
  expect(await sweeping.read()).toMatchObject({ certificate: 'proven' });
  board.choose({ pageCap: 50 });
  board.add([{ id: late ?? 0n }]);
  const again = await sweeping.read();
  expect(again).toMatchObject({ certificate: 'proven', added: 1 });
  expect(again.requests).toBeLessThan(2.5 * 30 + 50);
});

test('a sweep that has used its time keeps its gaps, and goes on until it is proven', async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 600, choices: { pageCap: 20, order: 'descending' } });
  await using another = await openTestDatabase();
  await using unlimited = await openSweeping(another, board);
  const whole = await unlimited.read();
  await using sweeping = await openSweeping(database, board);
  const stops: boolean[] = [];
  let requests = 0;
  for (;;) {
    const endsAt = performance.now() + 60;
    const summary = await sweeping.read({ hasToStop: () => performance.now() > endsAt });
    requests += summary.requests;
    stops.push(summary.stopped);
    if (!summary.stopped) {
      expect(summary.certificate).toBe('proven');
      break;
    }
    expect(summary).toMatchObject({ stopped: true, certificate: 'unproven' });
    const [status] = await sweeping.store.reports.loadStatus();
    if (requests > 0) expect(status?.unfinished).toMatchObject([{ purpose: 'recheck' }]);
  }
  expect(stops.length).toBeGreaterThan(2);
  // No question was asked twice: the sweep without a limit asks about as many.
  expect(requests).toBeLessThan(whole.requests * 1.1);
  expect((await sweeping.store.reports.loadStatus())[0]?.unfinished).toEqual([]);
  expect(await findDifferences(database, board)).toEqual([]);
});

describe('an application that is larger than a list may be', () => {
  const large = (bytes: number) => [{ firstName: 'x'.repeat(bytes) }];

  test('L14: is asked for alone and stored', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 60, choices: { order: 'descending' } });
    board.add(large(150_000));
    board.add(10);
    await using sweeping = await openSweeping(database, board, { listMaxBytes: 100_000 });
    expect(await sweeping.read()).toMatchObject({ openRanges: 0 });
    expect(await findDifferences(database, board)).toEqual([]);
  });
});

interface Sweeping extends AsyncDisposable {
  readonly store: Store;
  /** Reads everything up to a proof, and continues an unfinished sweep. */
  read(more?: Partial<ReadContext>): Promise<CountedSweep>;
}

/** Opens the store, the source and the live lane of one advertiser, with limits of the test's own. */
async function openSweeping(
  database: TestDatabase,
  board: Sandbox,
  limits: Partial<OwnSourceOptions> = {},
): Promise<Sweeping> {
  const stack = new AsyncDisposableStack();
  const store = stack.use(openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('a key for tests') }));
  const source = stack.use(openOwnSource({ url: board.url, credential: board.credential, connections: 4, ...limits }));
  const name = 'default';
  const { signal } = new AbortController();
  const advertiser = await store.advertisers.ensure(name, board.advertiserId);
  const lane = stack.use(await holdLane(store, { name, lane: 'live', owner: 'test', leaseMs: 30_000, signal }));
  return {
    store,
    async read(more) {
      let counts: SweepCounts = nothingCounted;
      const onStep = (step: SweepCounts) => {
        counts = addUp(counts, step);
      };
      const context = { lane, advertiser, lagMs: 0, startAt: null, ...more };
      const summary = await readAgain({ store, source, onStep }, context, wholeAxis);
      return { ...counts, ...summary };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

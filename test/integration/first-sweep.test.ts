// Sweeps that did not reach the end of the list: what the worker reads next, and where the cursor stands meanwhile.
import { expect } from 'vitest';
import { wholeAxis } from '../../src/domain/coverage/position.ts';
import { holdLane } from '../../src/sync/accounts/held-lane.ts';
import { readAgain } from '../../src/sync/read/read-tasks.ts';
import { createAccountQueues } from '../../src/sync/worker/account-queue.ts';
import { runTask } from '../../src/sync/worker/run-task.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';

test.for(['day', 'fortnight'] as const)(
  'is continued before the recheck of a %s',
  { tags: ['slow'] },
  async (name, { database }) => {
    const choices = { pageCap: 20, order: 'descending' } as const;
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices });
    const { store } = intake;
    await using source = intake.openSource('json');
    const signal = AbortSignal.timeout(600_000);
    const whose = { owner: 'test', leaseMs: 30_000, signal };
    const how = { lagMs: 0, startAt: null, skipIfDoneWithinMs: 0 };
    {
      const advertiser = await store.advertisers.ensure('default', intake.board.advertiserId);
      await using lane = await holdLane(store, { ...whose, name: 'default', lane: 'live' });
      let steps = 0;
      const context = {
        ...how,
        lane,
        advertiser,
        retryForMs: 0,
        hasToStop: () => steps > 0,
      } as const;
      await readAgain({ store, source, onStep: () => steps++ }, context, wholeAxis);
    }
    const account = { name: 'default', advertiserId: null, source, watch: () => {} };
    const [queue] = createAccountQueues({
      accounts: [account],
      atOnce: 1,
      longAtOnce: 1,
      work: async () => {},
      signal,
    }).all;
    if (!queue) throw new Error('There is no account.');
    const demanded: string[] = [];
    const deps = { store, demand: (task: string) => demanded.push(task) };
    expect(await runTask(deps, { ...whose, ...how }, queue, name)).toMatchObject({ sweeps: [] });
    expect(demanded).toEqual(['unfinished']);
    expect(await database.query(`SELECT after_id FROM intake.cursors`)).toEqual([]);
    expect(await runTask(deps, { ...whose, ...how }, queue, 'unfinished')).toMatchObject({
      sweeps: [{ stopped: false }, {}],
    });
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications`)).toEqual([{ n: 120 }]);
  },
);

test('a poll that leaves ranges open does not count as a poll that read to the end', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  await using source = intake.openSource('json');
  const signal = AbortSignal.timeout(600_000);
  const account = { name: 'default', advertiserId: null, source, watch: () => {} };
  const [queue] = createAccountQueues({
    ...{ accounts: [account], atOnce: 1, longAtOnce: 1, signal },
    work: async () => {},
  }).all;
  if (!queue) throw new Error('There is no account.');
  const deps = { store: intake.store, demand: () => {} };
  const request = { owner: 'test', leaseMs: 30_000, lagMs: 0, startAt: null, skipIfDoneWithinMs: 0, signal };
  const poll = () => runTask(deps, request, queue, 'poll');
  expect(await poll()).toMatchObject({ polled: expect.any(BigInt), sweeps: [{ openRanges: 0 }] });
  intake.board.choose({ combination: 'refuse400', order: 'perRequest' });
  intake.board.add(Array.from({ length: 120 }, () => ({ attachments: [] })));
  expect(await poll()).toMatchObject({ polled: null, sweeps: [{ certificate: 'unproven', stopped: false }] });
});

test('dates that stand for none, the first and the last that a server knows, spoil no proof and are not the newest', async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  const at = Date.UTC(2024, 0, 15);
  const dates = [Date.parse('0002-01-01T12:00:00Z'), Date.UTC(9999, 11, 31, 23, 59, 59), at];
  intake.board.add(
    Array.from({ length: 40 }, (_, nth) => ({
      id: BigInt(1_000 + 10 * nth),
      attachments: [],
      submittedAt: dates[nth % 3] ?? at,
    })),
  );
  await intake.sweep(true);
  const [status] = await intake.store.reports.loadStatus();
  expect(status).toMatchObject({ newestSubmittedAt: new Date(at), coverage: { certificate: 'proven' } });
});

// What `intake sync --recheck` reads beside sweeps that stopped early.
import { expect } from 'vitest';
import { holdLane } from '../../src/sync/read/held-lane.ts';
import { readAgain } from '../../src/sync/read/read-tasks.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';

test('a recheck reads everything, also after a recheck of the newest ids that stopped early', async ({ database }) => {
  await using intake = await openSmallIntake({ database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  const { store } = intake;
  const [middle] = await database.query<{ id: string }>(
    `SELECT application_id AS id FROM intake.applications ORDER BY application_id OFFSET 60 LIMIT 1`,
  );
  {
    await using source = intake.openSource('json');
    const signal = AbortSignal.timeout(600_000);
    const advertiser = await store.advertisers.ensure('default', null);
    await using lane = await holdLane(store, {
      ...{ name: 'default', lane: 'live', owner: 'test', leaseMs: 30_000, signal },
    });
    let steps = 0;
    const context = { lane, advertiser, lagMs: 0, startAt: null, retryForMs: 0, shouldPause: () => steps > 0 };
    const stopped = await readAgain({ store, source, onStep: () => steps++ }, context, {
      from: BigInt(middle?.id ?? 0),
    });
    expect(stopped.stopped).toBe('paused');
  }
  await intake.sweep(true);
  const sweeps = await database.query(
    `SELECT low > 1 AS recent, state FROM intake.sweeps WHERE purpose = 'recheck' ORDER BY sweep_id`,
  );
  expect(sweeps).toEqual([
    { recent: false, state: 'closed' },
    { recent: true, state: 'closed' },
    { recent: false, state: 'closed' },
  ]);
});

// What becomes of sweeps that stopped early: `intake sync --recheck` reads beside them, and a contradiction drops them.
import { expect, test } from 'vitest';
import { coveredOf } from '../../src/domain/coverage/covered.ts';
import { lastPosition, nearestPosition, wholeAxis } from '../../src/domain/coverage/position.ts';
import { SweepDropped } from '../../src/domain/trouble.ts';
import { holdLane } from '../../src/sync/accounts/held-lane.ts';
import { backfill } from '../../src/sync/read/read-account.ts';
import { readAgain } from '../../src/sync/read/read-tasks.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { shareDatabase } from '../support/test-database.ts';

const database = shareDatabase();

test('a recheck reads everything, also after a recheck of the newest ids that stopped early', {
  tags: ['slow'],
}, async () => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
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
    const context = {
      lane,
      advertiser,
      lagMs: 0,
      startAt: null,
      retryForMs: 0,
      hasToStop: () => steps > 0,
    } as const;
    const stopped = await readAgain({ store, source, onStep: () => steps++ }, context, {
      from: nearestPosition(BigInt(middle?.id ?? 0)),
      to: lastPosition,
    });
    expect(stopped.stopped).toBe(true);
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

test('a recheck begins anew if an audit finds a hidden application while it is paused', {
  tags: ['slow'],
}, async () => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  const { store } = intake;
  const { advertiserId } = await store.advertisers.ensure('default', null);
  if (advertiserId === null) throw new Error('The first sweep pins the id.');
  await using source = intake.openSource('json');
  const readUpTo = async (most: number) => {
    const advertiser = await store.advertisers.ensure('default', null);
    await using lane = await holdLane(store, {
      ...{ name: 'default', lane: 'live', owner: 'test', leaseMs: 30_000, signal: AbortSignal.timeout(600_000) },
    });
    let steps = 0;
    const context = {
      lane,
      advertiser,
      lagMs: 0,
      startAt: null,
      retryForMs: 0,
      hasToStop: () => steps >= most,
    } as const;
    return await readAgain({ store, source, onStep: () => steps++ }, context, wholeAxis);
  };
  expect(await readUpTo(5)).toMatchObject({ stopped: true, requests: 6 });
  // The state of a sweep can name an application that is erased later, so it is kept only while it is needed.
  const kept = `SELECT state, facts = '{}' AS empty FROM intake.sweeps ORDER BY sweep_id`;
  expect(await database.query(kept)).toEqual([
    { state: 'closed', empty: true },
    { state: 'running', empty: false },
  ]);
  const [first] = await database.query<{ id: string }>(
    `SELECT min(application_id) AS id FROM intake.applications WHERE advertiser_id = $1`,
    [advertiserId],
  );
  await store.coverage.endCertificates(advertiserId, [BigInt(first?.id ?? 0)], 'test');
  const load = () =>
    database.query(
      `SELECT s.state, (SELECT count(*)::int FROM intake.ranges r WHERE r.sweep_id = s.sweep_id) AS ranges,
         EXISTS (SELECT 1 FROM intake.evidence e WHERE e.sweep_id = s.sweep_id) AS evidence
       FROM intake.sweeps s ORDER BY sweep_id`,
    );
  expect(await load()).toEqual([
    { state: 'closed', ranges: 0, evidence: true },
    { state: 'dropped', ranges: 0, evidence: false },
  ]);
  expect(await database.query(kept)).toContainEqual({ state: 'dropped', empty: true });
  expect(await readUpTo(1_000)).toMatchObject({ certificate: 'proven' });
  expect(await load()).toMatchObject([{ state: 'closed' }, { state: 'dropped' }, { state: 'closed' }]);
});

test('what is gone is measured against what the source should show: not erased, and stored before', {
  tags: ['slow'],
}, async () => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 90, choices: { pageCap: 30 } });
  await intake.sweep();
  const { store } = intake;
  const { advertiserId } = await store.advertisers.ensure('default', null);
  if (advertiserId === null) throw new Error('The first sweep pins the id.');
  const some = (count: number) =>
    `application_id IN (SELECT application_id FROM intake.applications WHERE erased_at IS NULL LIMIT ${count})`;
  await database.query(`UPDATE intake.applications SET erased_at = now() WHERE ${some(50)}`);
  // Stored before the clock was set back.
  await database.query(`UPDATE intake.applications SET first_seen_at = now() + interval '1 hour' WHERE ${some(10)}`);
  expect(await store.applications.countListed(advertiserId, coveredOf(wholeAxis))).toBe(40);
  expect(await store.applications.countListed(advertiserId, { low: 3_000_000_000n, high: null })).toBe(0);
});

test('an account with one application, whose id is high, is polled from a cursor', async () => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  await intake.receive([{ id: 30_000_000n, attachments: [] }]);
  const { store } = intake;
  const { advertiserId } = await store.advertisers.ensure('default', null);
  if (advertiserId === null) throw new Error('The first sweep pins the id.');
  expect(await store.sweeps.loadSyncState({ advertiserId, lagMs: 0 })).toMatchObject({ pollFrom: 1n });
});

test('a backfill fails if an audit finds a hidden application meanwhile; run again, it reads its whole range', {
  tags: ['slow'],
}, async () => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  const { store } = intake;
  const { advertiserId } = await store.advertisers.ensure('default', null);
  if (advertiserId === null) throw new Error('The first sweep pins the id.');
  await using source = intake.openSource('json');
  const contradict = () => store.coverage.endCertificates(advertiserId, [1n], 'test');
  let steps = 0;
  const deps = {
    store: {
      ...store,
      sweeps: {
        ...store.sweeps,
        // Called before each request.
        async takeTicket() {
          if (steps++ === 5) await contradict();
          return await store.sweeps.takeTicket();
        },
      },
    },
    source,
  };
  const readAll = () =>
    backfill(deps, {
      ...{ name: 'default', advertiserId, owner: 'test', leaseMs: 30_000, lagMs: 0, retryForMs: 60_000, parallel: 1 },
      ...{ range: { axis: 'id', low: 1n, high: null }, restart: false, signal: AbortSignal.timeout(600_000) },
    });
  await expect(readAll()).rejects.toThrow(SweepDropped);
  expect(await database.query(`SELECT state FROM intake.sweeps WHERE lane = 'backfill'`)).toEqual([
    { state: 'dropped' },
  ]);
  expect(await readAll()).toMatchObject([{ certificate: 'proven' }]);
});

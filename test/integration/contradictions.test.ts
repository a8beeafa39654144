// Evidence against a certificate counts, wherever it comes from and whenever: from a backfill by date, a sweep of other ids, an audit while a recheck is
// paused, a sweep that began later. The delay of a hidden application also lengthens later lags.
import { expect } from 'vitest';
import { lastPosition, nearestPosition, wholeAxis } from '../../src/domain/coverage/position.ts';
import { explain } from '../../src/domain/evidence/explain.ts';
import { holdLane } from '../../src/sync/accounts/held-lane.ts';
import { witnessByDate } from '../../src/sync/read/audit.ts';
import { backfill } from '../../src/sync/read/read-account.ts';
import { readAgain } from '../../src/sync/read/read-tasks.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { type TestDatabase, test } from '../support/test-database.ts';

const hour = 3_600_000;
const signal = () => AbortSignal.timeout(600_000);

/** Holds the live lane of the account while `work` reads. */
async function inLane<T>(
  { store, openSource }: SmallIntake,
  work: (read: Parameters<typeof readAgain>) => Promise<T>,
  hasToStop = () => false,
): Promise<T> {
  await using source = openSource('json');
  const advertiser = await store.advertisers.ensure('default', null);
  const request = { name: 'default', lane: 'live', owner: 'test', leaseMs: 600_000, signal: signal() } as const;
  await using lane = await holdLane(store, request);
  const context = { lane, advertiser, lagMs: 0, startAt: null, retryForMs: 0, hasToStop };
  return await work([{ store, source }, context, wholeAxis]);
}

const readFrom = (intake: SmallIntake, from: bigint) =>
  inLane(intake, ([deps, context]) => readAgain(deps, context, { from: nearestPosition(from), to: lastPosition }));

/** Reads these ids again until so many answers are committed. */
async function readSome(intake: SmallIntake, most: number, from = 1n) {
  let steps = 0;
  return await inLane(
    intake,
    ([deps, context]) =>
      readAgain({ ...deps, onStep: () => steps++ }, context, { from: nearestPosition(from), to: lastPosition }),
    () => steps >= most,
  );
}

async function loadId(database: TestDatabase, nth: number): Promise<bigint> {
  const [row] = await database.query<{ id: string }>(
    `SELECT application_id AS id FROM intake.applications ORDER BY application_id OFFSET $1 LIMIT 1`,
    [nth],
  );
  return BigInt(row?.id ?? 0);
}

const certificates = (database: TestDatabase) =>
  database.query<{ low: string; certificate: string; risk: string; reason: string }>(
    `SELECT low, certificate, risk, reason FROM intake.coverage ORDER BY low`,
  );

/** Applications of yesterday with these ids. */
function addOld({ board }: SmallIntake, ids: readonly bigint[]): void {
  board.add(ids.map((id) => ({ id, submittedAt: Date.now() - 24 * hour, attachments: [] })));
}

/** As a poll does that meets an application above the size limit. */
async function leaveGap(database: TestDatabase, advertiserId: bigint, id: bigint): Promise<void> {
  await database.query(
    `INSERT INTO intake.sweeps (advertiser_id, sweep_id, lane, purpose, axis, low, state, certificate, risk, reason, started_at, last_progress_at, ended_at)
     VALUES ($1, 999999, 'live', 'live', 'id', $2, 'open', 'unproven', 'doubt', 'too large', now(), now(), now())`,
    [advertiserId, id],
  );
  await database.query(
    `INSERT INTO intake.ranges (advertiser_id, sweep_id, low, high, state, evidence) VALUES ($1, 999999, $2, $2, 'stuck', '{}')`,
    [advertiserId, id],
  );
}

const everyTen = (count: number) => Array.from({ length: count }, (_, nth) => BigInt(1_000 + 10 * nth));

test('a backfill by date that shows a hidden application ends the certificate', { tags: ['slow'] }, async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  addOld(intake, everyTen(40));
  await intake.sweep();
  expect(await certificates(database)).toMatchObject([{ certificate: 'proven' }]);
  addOld(intake, [1_005n]);
  await using source = intake.openSource('json');
  const seconds = BigInt(Math.floor(Date.now() / 1_000));
  await backfill(
    { store: intake.store, source },
    {
      ...{ name: 'default', advertiserId: null, owner: 'test', leaseMs: 600_000, lagMs: 0, retryForMs: 0, parallel: 1 },
      ...{ range: { axis: 'date', low: seconds - 172_800n, high: seconds }, restart: false, signal: signal() },
    },
  );
  expect(await database.query(`SELECT 1 FROM intake.applications WHERE application_id = 1005`)).toHaveLength(1);
  expect(await certificates(database)).toMatchObject([
    { certificate: 'unproven', reason: expect.stringContaining('a backfill by date') },
  ]);
});

test('a recheck of the newest ids ends the certificate of lower ids if its cross-check shows a hidden application there', {
  tags: ['slow'],
}, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  addOld(intake, everyTen(40));
  await intake.sweep();
  addOld(intake, [1_005n]);
  await readFrom(intake, await loadId(database, 20));
  expect(await database.query(`SELECT 1 FROM intake.applications WHERE application_id = 1005`)).toHaveLength(1);
  expect(await certificates(database)).toMatchObject([
    { low: '1', certificate: 'unproven', reason: expect.stringContaining('a sweep of another id range') },
    { certificate: 'proven' },
  ]);
});

test('an application that is not stored is hidden if a paused sweep has closed its range, even without a certificate', {
  tags: ['slow'],
}, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, choices: { pageCap: 30 } });
  addOld(intake, everyTen(120));
  await intake.sweep();
  const { store } = intake;
  const { advertiserId } = await store.advertisers.ensure('default', null);
  if (advertiserId === null) throw new Error('The first sweep pins the id.');
  await store.coverage.endCertificates(advertiserId, [1_000n], 'an earlier contradiction');
  expect(await readSome(intake, 12)).toMatchObject({ stopped: true });
  // A sweep stores only its open ranges: all other ids of its range are closed.
  const [closed] = await database.query<{ id: string }>(
    `SELECT a.application_id + 1 AS id FROM intake.applications a WHERE NOT EXISTS (
       SELECT 1 FROM intake.ranges r WHERE r.low <= a.application_id + 1 AND (r.high IS NULL OR r.high >= a.application_id + 1))
     ORDER BY a.application_id LIMIT 1`,
  );
  const id = BigInt(closed?.id ?? 0);
  const find = (submittedAt: number) => store.coverage.findHidden(advertiserId, [{ id, submittedAt }]);
  expect(await find(Date.now() - 24 * hour)).toEqual([id]);
  expect(await find(Date.now() + hour)).toEqual([]);
  // Without the sweep, nothing says that it should have been stored.
  await database.query(`UPDATE intake.sweeps SET state = 'dropped' WHERE state = 'running'`);
  expect(await find(Date.now() - 24 * hour)).toEqual([]);
});

test('a doubt and its evidence survive the end of sweeps that began earlier', { tags: ['slow'] }, async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, choices: { pageCap: 30 } });
  addOld(intake, everyTen(120));
  await intake.sweep();
  const [quarter, middle] = [await loadId(database, 30), await loadId(database, 60)];
  expect(await readSome(intake, 5)).toMatchObject({ stopped: true });
  expect(await readSome(intake, 5, quarter)).toMatchObject({ stopped: true });
  await readFrom(intake, middle);
  await database.query(
    `UPDATE intake.coverage SET certificate = 'assumed', risk = 'doubt', reason = 'test' WHERE low > 1`,
  );
  expect(await readSome(intake, 10_000, quarter)).toMatchObject({ stopped: false, certificate: 'proven' });
  expect(await readSome(intake, 10_000)).toMatchObject({ stopped: false, certificate: 'proven' });
  expect(await certificates(database)).toEqual([
    expect.objectContaining({ low: '1', certificate: 'proven' }),
    { low: String(middle), certificate: 'assumed', risk: 'doubt', reason: 'test' },
  ]);
  const withoutEvidence = `SELECT 1 FROM intake.coverage k WHERE NOT EXISTS (SELECT 1 FROM intake.evidence e WHERE e.sweep_id = k.sweep_id)`;
  expect(await database.query(withoutEvidence)).toEqual([]);
  // A recheck that begins after both replaces it.
  await readFrom(intake, 1n);
  expect(await certificates(database)).toMatchObject([{ low: '1', certificate: 'proven' }]);
});

test('a recheck measures how late an application came, beyond the lag of polls', { tags: ['slow'] }, async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  addOld(intake, everyTen(12));
  await intake.sweep();
  await database.query(`UPDATE intake.applications SET first_seen_at = now() - interval '40 minutes'`);
  const late = `SELECT late_ms / 60000 >= 40 AS late FROM intake.advertisers`;
  // An old application that no sweep asked for before is not late, and one that only the date filter shows is hidden.
  addOld(intake, [1_103n]);
  await readFrom(intake, 1_050n);
  intake.board.add([{ id: 1_104n, submittedAt: Date.now() - hour, attachments: [] }]);
  await inLane(intake, ([deps, context]) => witnessByDate(deps, context));
  expect(await database.query(late)).toEqual([{ late: null }]);
  intake.board.add([{ id: 1_105n, submittedAt: Date.now() - hour, attachments: [] }]);
  await readFrom(intake, 1_050n);
  expect(await database.query(late)).toEqual([{ late: true }]);
});

test('the proof and the completeness view both report a gap that a poll left', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  addOld(intake, everyTen(40));
  await intake.sweep();
  const { store } = intake;
  const { advertiserId } = await store.advertisers.ensure('default', null);
  if (advertiserId === null) throw new Error('The first sweep pins the id.');
  const view = `SELECT certificate, risk FROM intake_analytics.completeness`;
  const explained = async (at: Date | null = null) => explain(at, await store.evidence.loadCurrent(advertiserId));
  expect(await explained()).toMatchObject({ complete: true, openRanges: 0, ...(await database.query(view))[0] });
  await leaveGap(database, advertiserId, 1_005n);
  const [row] = await database.query(view);
  expect(row).toMatchObject({ certificate: 'unproven' });
  expect(await explained()).toMatchObject({ complete: false, openRanges: 1, ...row });
  // The certificates still cover an earlier day.
  const aWeekAgo = new Date(Date.now() - 168 * hour);
  expect(await explained(aWeekAgo)).toMatchObject({ complete: true, certificate: 'proven' });
});

test('an unproven certificate keeps its first reason, which the end of its sweep recorded', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  addOld(intake, everyTen(12));
  await intake.sweep();
  const { coverage } = intake.store;
  await coverage.endCertificates(intake.board.advertiserId, [1_000n], 'first');
  await coverage.endCertificates(intake.board.advertiserId, [1_010n], 'second');
  expect(await certificates(database)).toMatchObject([{ certificate: 'unproven', reason: 'first' }]);
});

test('a sweep leaves the gaps of sweeps that began later', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, choices: { pageCap: 30 } });
  addOld(intake, everyTen(120));
  await intake.sweep();
  expect(await readSome(intake, 5)).toMatchObject({ stopped: true });
  await leaveGap(database, intake.board.advertiserId, 1_005n);
  expect(await readSome(intake, 10_000)).toMatchObject({ certificate: 'proven' });
  expect(await database.query(`SELECT low FROM intake.gaps`)).toEqual([{ low: '1005' }]);
});

test('a proof names as previous only sweeps that began before it', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  addOld(intake, everyTen(40));
  await intake.sweep();
  await using inner = intake.openSource('json');
  let isFirst = true;
  const list: typeof inner.list = async (...args) => {
    // While the first answer of the recheck is under way, a backfill begins and ends.
    if (isFirst) {
      isFirst = false;
      await backfill(
        { store: intake.store, source: inner },
        {
          ...{
            name: 'default',
            advertiserId: null,
            owner: 'b',
            leaseMs: 600_000,
            lagMs: 0,
            retryForMs: 0,
            parallel: 1,
          },
          ...{ range: { axis: 'id', low: 1n, high: 1_100n }, restart: false, signal: signal() },
        },
      );
    }
    return await inner.list(...args);
  };
  await inLane(intake, ([deps, context]) => readAgain({ ...deps, source: { ...inner, list } }, context, wholeAxis));
  const sweeps = await database.query<{ id: string; purpose: string }>(
    `SELECT sweep_id AS id, purpose FROM intake.sweeps ORDER BY sweep_id`,
  );
  expect(sweeps.map(({ purpose }) => purpose)).toEqual(['recheck', 'recheck', 'backfill']);
  const [first, second] = sweeps.map(({ id }) => BigInt(id));
  const [opening] = await database.query<{ line: string }>(
    `SELECT line FROM intake.evidence WHERE sweep_id = ${second} AND n = 0`,
  );
  expect(JSON.parse(opening?.line ?? '')).toMatchObject({
    type: 'sweep',
    previous: [[String(first), expect.any(String)]],
  });
});

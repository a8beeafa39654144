// Evidence against a certificate counts, wherever it comes from and whenever: from a backfill by date, a sweep of other ids, an audit while
// a recheck is paused, a sweep that began later. The delay of a hidden application also lengthens later lags.
import { describe, expect } from 'vitest';
import type { Position } from '../../../src/domain/coverage/position.ts';
import { explain } from '../../../src/domain/evidence/record.ts';
import { SweepDropped } from '../../../src/domain/trouble.ts';
import type { Source } from '../../../src/source/client.ts';
import { backfill } from '../../../src/sync/read/read-account.ts';
import { readAgain } from '../../../src/sync/read/read-tasks.ts';
import { type TestDatabase, test } from '../../support/database/test-database.ts';
import { inLane, readSome, runTaskOf } from '../../support/reading.ts';
import { openSmallIntake, type SmallIntake } from '../../support/small-intake.ts';

const hour = 3_600_000;

const readFrom = (intake: SmallIntake, from: bigint) => readSome(intake, Number.POSITIVE_INFINITY, from);

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

const backfilling = {
  ...{ name: 'default', advertiserId: null, owner: 'test', leaseMs: 600_000, lagMs: 0, retryForMs: 0, parallel: 1 },
  ...{ restart: false, signal: AbortSignal.timeout(600_000) },
} as const;

const everyTen = (count: number) => Array.from({ length: count }, (_, nth) => BigInt(1_000 + 10 * nth));

/** An account whose forty applications of yesterday are proven complete. */
async function openProven(database: TestDatabase): Promise<SmallIntake> {
  const intake = await openSmallIntake({ rigor: 'proof', database });
  addOld(intake, everyTen(40));
  await intake.sweep();
  return intake;
}

test('a backfill by date that shows somebody ends the certificate', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openProven(database);
  expect(await certificates(database)).toMatchObject([{ certificate: 'proven' }]);
  addOld(intake, [1_005n]);
  await using source = intake.openSource('json');
  const seconds = BigInt(Math.floor(Date.now() / 1_000));
  await backfill(
    { store: intake.store, source },
    { ...backfilling, range: { axis: 'date', low: seconds - 172_800n, high: seconds } },
  );
  expect(await database.query(`SELECT 1 FROM intake.applications WHERE application_id = 1005`)).toHaveLength(1);
  expect(await certificates(database)).toMatchObject([
    { certificate: 'unproven', reason: expect.stringContaining('a backfill by date') },
  ]);
});

test('a recheck whose cross-check shows somebody hidden ends it', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openProven(database);
  addOld(intake, [1_005n]);
  await readFrom(intake, await loadId(database, 20));
  expect(await database.query(`SELECT 1 FROM intake.applications WHERE application_id = 1005`)).toHaveLength(1);
  expect(await certificates(database)).toMatchObject([
    { low: '1', certificate: 'unproven', reason: expect.stringContaining('a sweep by ids') },
    { certificate: 'proven' },
  ]);
});

describe('an answer of which no proof learns ends the certificate that it contradicts', () => {
  const ended = (by: string) => [{ certificate: 'unproven', risk: 'doubt', reason: expect.stringContaining(by) }];

  test('as a poll that reads the ids of the last day again', async ({ database }) => {
    await using intake = await openProven(database);
    addOld(intake, [1_005n]);
    await intake.sweep();
    expect(await certificates(database)).toMatchObject(ended('a poll'));
  });

  test('but not a poll that shows an application with an old date above all others', async ({ database }) => {
    await using intake = await openProven(database);
    addOld(intake, [2_000n]);
    await intake.sweep();
    expect(await database.query(`SELECT 1 FROM intake.applications WHERE application_id = 2000`)).toHaveLength(1);
    expect(await certificates(database)).toMatchObject([{ certificate: 'proven' }]);
  });

  test('as a question about an unreadable id, to which the source shows more', async ({ database }) => {
    await using intake = await openProven(database);
    addOld(intake, [1_005n]);
    const unreadable = { id: 1_015n as Position, reason: 'HTTP 500' };
    await intake.store.sweeps.saveUnreadable(intake.board.advertiserId, [unreadable]);
    await database.query(`UPDATE intake.unreadable SET next_at = now()`);
    await using inner = intake.openSource('json');
    const source: Source = { ...inner, list: (_, ...rest) => inner.list({ afterId: 0n }, ...rest) };
    await runTaskOf(intake.store, source, 'unfinished');
    expect(await certificates(database)).toMatchObject(ended('a question about an unreadable id'));
  });

  test('as a question that a sweep repeats, whose range it has closed', async ({ database }) => {
    await using intake = await openProven(database);
    const { applications } = intake.store;
    let widest = 0;
    const commitPage: (typeof applications)['commitPage'] = async (...page) => {
      const summary = await applications.commitPage(...page);
      const isWidest = page[0].asked?.low === 1n && page[0].asked.high === null;
      // The first time it is the first question, the second time a witness. As if the other lane had seen a newer state meanwhile.
      if (summary === 'outdated' || !isWidest || ++widest !== 2) return summary;
      addOld(intake, [1_005n]);
      return { ...summary, stale: [1_000n] };
    };
    const store = { ...intake.store, applications: { ...applications, commitPage } };
    await expect(inLane({ ...intake, store }, (read) => readAgain(...read))).rejects.toThrow(SweepDropped);
    expect(await certificates(database)).toMatchObject(ended('a sweep by ids'));
  });
});

test('a doubt and its evidence survive sweeps that began earlier', { tags: ['slow'] }, async ({ database }) => {
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

test('the proof is what the completeness view says, also with a gap and an unreadable id', async ({ database }) => {
  await using intake = await openProven(database);
  const { store } = intake;
  const { advertiserId } = await store.advertisers.ensure('default', null);
  if (advertiserId === null) throw new Error('The first sweep pins the id.');
  const view = `SELECT certificate, risk, open_ranges AS "openRanges" FROM intake_analytics.completeness`;
  const explained = async (at: Date | null = null) => explain(at, await store.evidence.loadCurrentProof(advertiserId));
  expect(await explained()).toMatchObject({ complete: true, openRanges: 0, ...(await database.query(view))[0] });
  await store.sweeps.saveUnreadable(advertiserId, [{ id: 1_005n as Position, reason: 'HTTP 500' }]);
  const [allButOne] = await database.query(view);
  expect(allButOne).toMatchObject({ certificate: 'assumed', risk: 'doubt', openRanges: 1 });
  expect(await explained()).toMatchObject({ complete: false, ...allButOne });
  await leaveGap(database, advertiserId, 1_015n);
  const [row] = await database.query(view);
  expect(row).toMatchObject({ certificate: 'unproven', openRanges: 2 });
  expect(await explained()).toMatchObject({ complete: false, ...row });
  // The certificates still cover an earlier day.
  const aWeekAgo = new Date(Date.now() - 168 * hour);
  expect(await explained(aWeekAgo)).toMatchObject({ complete: true, certificate: 'proven' });
});

test('a recheck reads everything, also after one that stopped early', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  expect(await readSome(intake, 1, await loadId(database, 60))).toMatchObject({ stopped: true });
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

test('a recheck begins anew if an audit contradicts it meanwhile', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  expect(await readSome(intake, 5)).toMatchObject({ stopped: true });
  // The state of a sweep can name an application that is erased later, so it is kept only while it is needed.
  const load = () =>
    database.query(
      `SELECT s.state, facts = '{}' AS empty, (SELECT count(*)::int FROM intake.ranges r WHERE r.sweep_id = s.sweep_id) > 0 AS ranges,
         EXISTS (SELECT 1 FROM intake.evidence e WHERE e.sweep_id = s.sweep_id) AS evidence
       FROM intake.sweeps s ORDER BY sweep_id`,
    );
  const closed = { state: 'closed', empty: true, ranges: false, evidence: true };
  expect(await load()).toMatchObject([closed, { state: 'running', empty: false }]);
  await intake.store.sweeps.endCertificates(intake.board.advertiserId, [await loadId(database, 0)], 'test');
  const dropped = { state: 'dropped', empty: true, ranges: false, evidence: false };
  expect(await load()).toEqual([closed, dropped]);
  expect(await readSome(intake, 1_000)).toMatchObject({ certificate: 'proven' });
  expect(await load()).toMatchObject([{ state: 'closed' }, { state: 'dropped' }, { state: 'closed' }]);
});

test('a backfill fails if an audit contradicts it, and begins anew', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  const { store } = intake;
  await using source = intake.openSource('json');
  let steps = 0;
  // Called before each request.
  const takeTicket = async () => {
    if (steps++ === 5) await store.sweeps.endCertificates(intake.board.advertiserId, [1n], 'test');
    return await store.sweeps.takeTicket();
  };
  const deps = { store: { ...store, sweeps: { ...store.sweeps, takeTicket } }, source };
  const readAll = () => backfill(deps, { ...backfilling, range: { axis: 'id', low: 1n, high: null } });
  await expect(readAll()).rejects.toThrow(SweepDropped);
  expect(await database.query(`SELECT state FROM intake.sweeps WHERE lane = 'backfill'`)).toEqual([
    { state: 'dropped' },
  ]);
  expect(await readAll()).toMatchObject([{ certificate: 'proven' }]);
});

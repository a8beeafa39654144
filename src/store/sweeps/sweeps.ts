// The tables of sweeps, their open ranges, the certificates of what they closed (coverage), and the cursors: how far a list has been read.
import type { Conclusion, SweepEnd } from '../../domain/coverage/certificate.ts';
import { type Covered, withRange } from '../../domain/coverage/position.ts';
import type { LackingId } from '../../domain/coverage/question.ts';
import { newestIds, toCursor } from '../../domain/cursor.ts';
import type { LineBody } from '../../domain/evidence/record.ts';
import { SweepDropped } from '../../domain/trouble.ts';
import { laneLock, type WriteContext } from '../accounts/leases.ts';
import type { ApplicationEvent, ChangedRow } from '../events.ts';
import { columnsOf, type Database, isAhead, pipeline, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { appendEvidence, loadCertificates, pruneEvidence } from './evidence.ts';

export type SweepPurpose = 'live' | 'recheck' | 'backfill';

/** A range of ids, or of dates (whole seconds since 1970), both ends included; `high` null is no end. */
export interface ReadRange extends Covered {
  readonly axis: 'id' | 'date';
}

/** One sweep of a range, as it was begun. */
export interface Sweep extends ReadRange {
  readonly sweepId: bigint;
  readonly purpose: SweepPurpose;
  /** By the database's clock. */
  readonly startedAt: Date;
}

export interface SweepProgress {
  /** The sweep state apart from its ranges, as JSON text. */
  readonly facts: string;
  /** Ranges to delete, by their low end. */
  readonly dropped: readonly bigint[];
  /** Open ranges, each with what is known about it as JSON text. */
  readonly added: readonly (Covered & { readonly state: 'open' | 'stuck'; readonly evidence: string })[];
  /** Stored ids that the answer had room for and does not show. */
  readonly lacked: readonly LackingId[];
  readonly unreadable: readonly { readonly id: bigint; readonly reason: string }[];
  readonly bytes: number;
  /** The live cursor may rise to this id: everything up to it was read. */
  readonly cursor: bigint | null;
  readonly ended: SweepEnd | null;
  /** The lines of evidence of this answer; none where the sweep is no proof. */
  readonly evidence: readonly LineBody[];
}

type PageCounts = Readonly<Record<'received' | 'added' | 'changed', number>>;
type SweepPage = WriteContext & { readonly sweep: Sweep };

/** The first page also inserts the sweep's row. Throws, and rolls back, if the sweep was dropped meanwhile (endCertificates). */
export async function saveProgress(tx: Transaction, page: SweepPage, progress: SweepProgress, counts: PageCounts) {
  const { advertiserId, sweep } = page;
  const { cursor, ended, evidence, dropped, added, lacked, unreadable } = progress;
  const key = [advertiserId, sweep.sweepId];
  // In this order: ranges and lacked ids refer to the sweep's row.
  const [saved] = await pipeline([
    saveSweep(tx, page, progress, counts),
    dropped.length > 0 && tx.query(dropRangesSql, [...key, dropped]),
    added.length > 0 &&
      tx.query(
        `INSERT INTO intake.ranges (advertiser_id, sweep_id, low, high, state, evidence)
         SELECT $1, $2, r.low, r.high, r.state, r.evidence::jsonb
         FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[]) AS r (low, high, state, evidence)`,
        [...key, ...columnsOf(added, 'low', 'high', 'state', 'evidence')],
      ),
    // Counts the answers that lacked an id: the second one shows that it is gone.
    lacked.length > 0 &&
      tx.query(
        `INSERT INTO intake.lacked (advertiser_id, sweep_id, application_id, gone)
         SELECT $1, $2, id, false FROM unnest($3::bigint[]) AS id
         ON CONFLICT (advertiser_id, sweep_id, application_id) DO UPDATE SET gone = true`,
        [...key, lacked.map(({ id }) => id)],
      ),
    saveUnreadable(tx, advertiserId, unreadable),
    cursor !== null && raiseCursor(tx, advertiserId, cursor),
  ]);
  const why = 'Another answer showed an application that the source had hidden from this sweep.';
  if (saved.length === 0) throw new SweepDropped('local', why);
  const events = ended === null ? [] : await endSweep(tx, page, ended);
  if (evidence.length > 0) await appendEvidence(tx, advertiserId, sweep.sweepId, evidence);
  if (evidence.length > 0 && ended !== null) await pruneEvidence(tx, advertiserId);
  return events;
}

const dropRangesSql = `DELETE FROM intake.ranges WHERE advertiser_id = $1 AND sweep_id = $2 AND low = ANY ($3::bigint[])`;

async function saveSweep(tx: Queryable, page: SweepPage, { facts, bytes, ended }: SweepProgress, counts: PageCounts) {
  const { sweepId, purpose, axis, low, high, startedAt } = page.sweep;
  const { certificate = null, risk = null, reason = null } = ended ?? {};
  const state = ended === null ? 'running' : ended.openRanges > 0 ? 'open' : 'closed';
  return await tx.query(
    `INSERT INTO intake.sweeps AS s (advertiser_id, sweep_id, lane, purpose, axis, low, high, started_at, state, certificate, risk, reason,
       facts, received, added, changed, bytes, last_progress_at, ended_at, requests)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, now(), CASE WHEN $10::text IS NOT NULL THEN now() END, 1)
     ON CONFLICT (advertiser_id, sweep_id) DO UPDATE SET
       state = excluded.state, certificate = excluded.certificate, risk = excluded.risk, reason = excluded.reason, facts = excluded.facts,
       last_progress_at = excluded.last_progress_at, ended_at = excluded.ended_at, requests = s.requests + excluded.requests, received = s.received + excluded.received,
       added = s.added + excluded.added, changed = s.changed + excluded.changed, bytes = s.bytes + excluded.bytes
     WHERE s.state = 'running' RETURNING 1`,
    [
      ...[page.advertiserId, sweepId, page.lease.lane, purpose, axis, low, high, startedAt],
      ...[state, certificate, risk, reason],
      // Only a sweep that goes on needs its facts. They can hold the id and the date of an application that is erased later.
      ...[ended ? '{}' : facts, counts.received, counts.added, counts.changed, bytes],
    ],
  );
}

/** Ends a sweep. If it left ranges open, these stay as gaps. Ids that cannot be read have their own table. */
async function endSweep(tx: Queryable, page: SweepPage, ended: SweepEnd): Promise<ApplicationEvent[]> {
  const { advertiserId, sweep } = page;
  const key = [advertiserId, sweep.sweepId];
  if (sweep.axis === 'id' && ended.certificate !== 'unproven') await heal(tx, advertiserId, sweep);
  await tx.query(
    `DELETE FROM intake.ranges WHERE advertiser_id = $1 AND sweep_id = $2 AND ($3 OR (state = 'stuck' AND low = high))`,
    [...key, ended.openRanges === 0],
  );
  const isPoll = sweep.purpose === 'live';
  const { pages, completeThrough } = ended;
  if (!isPoll && pages !== null)
    await tx.query(
      `UPDATE intake.advertisers SET learned = $2::jsonb WHERE advertiser_id = $1 AND learned IS DISTINCT FROM $2::jsonb`,
      [advertiserId, pages],
    );
  if (!isPoll && completeThrough !== null) await recordCoverage(tx, page, ended, completeThrough);
  const events = ended.absent > 0 ? await markAbsent(tx, key, ended.certificate === 'proven') : [];
  await tx.query(`DELETE FROM intake.lacked WHERE advertiser_id = $1 AND sweep_id = $2`, key);
  return events;
}

/** Forgets the unreadable ids and closes the gaps of earlier sweeps that this one has read. What it could not read is among its ranges. */
async function heal(tx: Queryable, advertiserId: bigint, { sweepId, low, high, startedAt }: Sweep): Promise<void> {
  await tx.query(
    `DELETE FROM intake.unreadable u WHERE advertiser_id = $1 AND application_id >= $3 AND ($4::bigint IS NULL OR application_id <= $4)
       AND u.since < $5
       AND NOT EXISTS (SELECT 1 FROM intake.ranges r WHERE r.advertiser_id = $1 AND r.sweep_id = $2
         AND r.low <= u.application_id AND (r.high IS NULL OR r.high >= u.application_id))`,
    [advertiserId, sweepId, low, high, startedAt],
  );
  await tx.query(
    `WITH healed AS (
       DELETE FROM intake.ranges r USING intake.sweeps s
       WHERE r.advertiser_id = $1 AND s.advertiser_id = $1 AND s.sweep_id = r.sweep_id AND s.axis = 'id' AND s.state = 'open'
         AND r.sweep_id < $2 AND r.low >= $3 AND ($4::bigint IS NULL OR r.high <= $4)
       RETURNING r.sweep_id, r.low
     )
     UPDATE intake.sweeps s SET state = 'closed' WHERE s.advertiser_id = $1 AND s.sweep_id IN (SELECT sweep_id FROM healed)
       AND NOT EXISTS (SELECT 1 FROM intake.ranges r WHERE r.advertiser_id = $1 AND r.sweep_id = s.sweep_id
         AND (r.sweep_id, r.low) NOT IN (SELECT sweep_id, low FROM healed))`,
    [advertiserId, sweepId, low, high],
  );
}

/** A doubt from a sweep that began after this one stays until the next recheck. The lane lock keeps two sweeps from ending at once. */
async function recordCoverage(tx: Queryable, page: SweepPage, ended: Conclusion, completeThrough: Date): Promise<void> {
  const { advertiserId, sweep } = page;
  const { sweepId, low, high, startedAt } = sweep;
  const { certificate, risk, reason } = ended;
  const before = await loadCertificates(tx, advertiserId);
  const issued = { low, high, certificate, risk, reason, sweepId, startedAt, completeThrough, last: null };
  const later = before.filter((row) => row.sweepId > sweepId && row.risk === 'doubt');
  const after = later.reduce((rows, row) => withRange(rows, row), withRange(before, issued));
  await tx.query(`DELETE FROM intake.coverage WHERE advertiser_id = $1 AND axis = 'id'`, [advertiserId]);
  await tx.query(
    `INSERT INTO intake.coverage (advertiser_id, axis, low, high, certificate, risk, reason, as_of, complete_through, sweep_id, evidence_hash)
     SELECT $1, 'id', low, high, certificate, risk, reason, as_of, complete_through, sweep_id, decode(last, 'hex')
     FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::bigint[], $10::text[])
       AS r (low, high, certificate, risk, reason, as_of, complete_through, sweep_id, last)`,
    [
      advertiserId,
      ...columnsOf(after, 'low', 'high', 'certificate', 'risk', 'reason'),
      ...columnsOf(after, 'startedAt', 'completeThrough', 'sweepId', 'last'),
    ],
  );
}

/** When an unreadable id is requested again: after a minute, twice as long after each failure, a day at most. */
const nextAt = (tries: string) => `now() + least(power(2, least(${tries}, 20)), 1440) * interval '1 minute'`;

export async function saveUnreadable(tx: Queryable, advertiserId: bigint, ids: SweepProgress['unreadable']) {
  if (ids.length === 0) return;
  await tx.query(
    `INSERT INTO intake.unreadable AS u (advertiser_id, application_id, reason, next_at)
     SELECT $1, f.id, f.reason, ${nextAt('0')} FROM unnest($2::bigint[], $3::text[]) AS f (id, reason)
     ON CONFLICT (advertiser_id, application_id) DO UPDATE
       SET reason = excluded.reason, tries = u.tries + 1, next_at = ${nextAt('u.tries')}`,
    [advertiserId, ...columnsOf(ids, 'id', 'reason')],
  );
}

/** Records that the source serves an id again. Whether it has an application with this id, its answer has shown. */
export async function resolveUnreadable(db: Queryable, advertiserId: bigint, id: bigint): Promise<void> {
  await db.query(`DELETE FROM intake.unreadable WHERE advertiser_id = $1 AND application_id = $2`, [advertiserId, id]);
}

/** Raises the cursor to the newest stored id up to `through` (toCursor). It never moves back, and is not written when nothing changed. */
export async function raiseCursor(tx: Transaction, advertiserId: bigint, through: bigint): Promise<void> {
  const newest = await tx.query<Columns<'applications', 'application_id'> & { after_id: bigint | null }>(
    `SELECT a.application_id, (SELECT after_id FROM intake.cursors WHERE advertiser_id = $1) AS after_id
     FROM intake.applications a WHERE advertiser_id = $1 AND application_id <= $2 ORDER BY application_id DESC LIMIT ${newestIds}`,
    [advertiserId, through],
  );
  const cursor = toCursor(newest[0]?.after_id ?? null, newest.map((row) => row.application_id).reverse());
  if (cursor === null) return;
  await tx.query(
    `INSERT INTO intake.cursors AS c (advertiser_id, after_id, after_date, as_of)
     VALUES ($1, $2, (SELECT submitted_at FROM intake.applications
       WHERE advertiser_id = $1 AND submitted_at <= now() ORDER BY submitted_at DESC LIMIT 1), now())
     ON CONFLICT (advertiser_id) DO UPDATE
       SET after_id = excluded.after_id, after_date = excluded.after_date, as_of = excluded.as_of
       WHERE c.after_id < excluded.after_id OR c.after_date IS DISTINCT FROM excluded.after_date`,
    [advertiserId, cursor],
  );
}

/**
 * Confirms that lists were read by sweeps that began then: a worker that was paused since confirms no later read. An account without a
 * cursor gets one before the first id; with one application only after a sweep by ids, as a poll would read what SYNC_START leaves out.
 */
export async function confirmCursors(db: Queryable, read: readonly { advertiserId: bigint; at: Date }[]) {
  await db.query(
    `WITH read AS (
       SELECT id, least(max(at), now()) AS at FROM unnest($1::bigint[], $2::timestamptz[]) AS r (id, at) GROUP BY id
     ), confirmed AS (
       UPDATE intake.cursors c SET as_of = greatest(CASE WHEN NOT ${isAhead('c.as_of')} THEN c.as_of END, read.at)
       FROM read WHERE c.advertiser_id = read.id RETURNING c.advertiser_id
     )
     INSERT INTO intake.cursors (advertiser_id, after_id, as_of)
     SELECT id, 0, at FROM read
     WHERE id NOT IN (SELECT advertiser_id FROM confirmed)
       AND (SELECT count(*) FROM (SELECT 1 FROM intake.applications a WHERE a.advertiser_id = id ORDER BY a.application_id LIMIT 2) AS few)
         < CASE WHEN EXISTS (SELECT 1 FROM intake.coverage k WHERE k.advertiser_id = id AND k.axis = 'id') THEN 2 ELSE 1 END
     ON CONFLICT DO NOTHING`,
    columnsOf(read, 'advertiserId', 'at'),
  );
}

/** Absent after one sweep without them, missing after a proven one a day later. A time in the future, from a wrong clock, is set to now. */
async function markAbsent(tx: Queryable, sweepKey: readonly bigint[], isProven: boolean): Promise<ApplicationEvent[]> {
  const rows = await tx.query<ChangedRow>(
    `UPDATE intake.applications SET absent_since = least(absent_since, now()),
       missing_since = CASE WHEN absent_since < now() THEN now() END
     WHERE advertiser_id = $1 AND missing_since IS NULL AND erased_at IS NULL
       AND application_id IN (SELECT l.application_id FROM intake.lacked l WHERE l.advertiser_id = $1 AND l.sweep_id = $2 AND l.gone)
       AND (absent_since IS NULL OR absent_since > now() OR ($3 AND absent_since < now() - interval '24 hours'))
     RETURNING application_id, missing_since IS NOT NULL AS missing`,
    [...sweepKey, isProven],
  );
  return rows.flatMap((row) => (row.missing ? { applicationId: row.application_id, type: 'application.missing' } : []));
}

/** The source had hidden one of these ids. Sweeps under way may have closed its range, and would not ask there again: they are dropped. */
export async function endCertificates(db: Database, advertiserId: bigint, ids: readonly bigint[], reason: string) {
  // A sweep that ends at the same time rewrites rows of coverage: the lane lock keeps either from missing the other's change.
  await db.transaction(
    async (tx) => {
      await tx.query(
        `UPDATE intake.coverage k SET certificate = 'unproven', risk = 'doubt', reason = $3
         WHERE k.advertiser_id = $1 AND k.axis = 'id' AND k.certificate <> 'unproven' AND ${covers('k')}`,
        [advertiserId, ids, reason],
      );
      await tx.query(
        dropSweeps(`advertiser_id = $1 AND axis = 'id' AND purpose IN ('recheck', 'backfill') AND ${covers('s')}`),
        [advertiserId, ids],
      );
    },
    laneLock(advertiserId, 'live'),
  );
}

/** True if the range of a row holds one of the ids in $2. */
const covers = (row: string) =>
  `EXISTS (SELECT 1 FROM unnest($2::bigint[]) AS id WHERE ${row}.low <= id AND (${row}.high IS NULL OR ${row}.high >= id))`;

/** Drops unfinished sweeps. Their rows stay as history, and so do the applications that they stored. */
export function dropSweeps(where: string): string {
  return `WITH dropped AS (
       UPDATE intake.sweeps s SET state = 'dropped', facts = '{}', ended_at = now() WHERE ${where} AND state = 'running'
       RETURNING advertiser_id, sweep_id
     ), unproven AS (
       DELETE FROM intake.evidence e USING dropped d WHERE e.advertiser_id = d.advertiser_id AND e.sweep_id = d.sweep_id
     ), forgotten AS (
       DELETE FROM intake.lacked l USING dropped d WHERE l.advertiser_id = d.advertiser_id AND l.sweep_id = d.sweep_id
     )
     DELETE FROM intake.ranges r USING dropped d WHERE r.advertiser_id = d.advertiser_id AND r.sweep_id = d.sweep_id`;
}

/** Records why a sweep has stopped; the next recorded answer clears the reason. */
export async function noteStop(db: Queryable, advertiserId: bigint | null, sweepId: bigint, reason: string) {
  const sql = `UPDATE intake.sweeps SET reason = $3 WHERE advertiser_id = $1 AND sweep_id = $2 AND state = 'running'`;
  await db.query(sql, [advertiserId, sweepId, reason]);
}

/** Taken before a request is sent, or a sweep begins. */
export interface Ticket {
  /** Orders answers by when they were requested; or the id of the sweep. */
  readonly seq: bigint;
  /** The time by the database's clock. The answer should show every application that was stored by then. */
  readonly at: Date;
}

export async function takeTickets(db: Queryable, count: number, sequence: 'request_seq' | 'sweep_seq' = 'request_seq') {
  const sql = `SELECT nextval($2::text::regclass) AS seq, clock_timestamp() AS at FROM generate_series(1, $1::int)`;
  return await db.query<Ticket>(sql, [count, `intake.${sequence}`]);
}

/** Ended sweeps stay 90 days, for the charts; longer with gaps, evidence or coverage, and the newest of each advertiser. Returns how many. */
export async function pruneSweeps(db: Queryable, limit = 10_000): Promise<number> {
  const rows = await db.query(
    `DELETE FROM intake.sweeps WHERE ctid = ANY (ARRAY(
       SELECT s.ctid FROM intake.sweeps s
       WHERE s.state IN ('closed', 'dropped') AND s.started_at < now() - interval '90 days'
         AND NOT EXISTS (SELECT 1 FROM intake.ranges r WHERE r.advertiser_id = s.advertiser_id AND r.sweep_id = s.sweep_id)
         AND NOT EXISTS (SELECT 1 FROM intake.coverage c WHERE c.advertiser_id = s.advertiser_id AND c.sweep_id = s.sweep_id)
         AND NOT EXISTS (SELECT 1 FROM intake.evidence e WHERE e.advertiser_id = s.advertiser_id AND e.sweep_id = s.sweep_id)
         AND s.sweep_id < (SELECT max(n.sweep_id) FROM intake.sweeps n WHERE n.advertiser_id = s.advertiser_id)
       LIMIT $1)) RETURNING 1`,
    [limit],
  );
  return rows.length;
}

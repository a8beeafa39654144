// Commits a page in one transaction: applications, queued downloads, events, sweep progress and cursor (P4 in docs/architecture.md).
// New applications are inserted by COPY, changed ones are merged (update.ts), unchanged ones are not touched: no row version, lock or WAL.
import type { KeyObject } from 'node:crypto';
import type { Application } from '../../domain/application.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import type { LineBody } from '../../domain/evidence/record.ts';
import { fence, laneLock } from '../accounts/leases.ts';
import { appendEvents, type ChangedRow } from '../events.ts';
import { notifyQueued } from '../files/download-queue.ts';
import { rememberStopped, withoutErased } from '../gate.ts';
import { type Database, isConflict, type Queryable } from '../postgres/database.ts';
import { appendEvidence } from '../sweeps/evidence.ts';
import { type SweepProgress, saveProgress } from '../sweeps/sweeps.ts';
import { diffPage, isSameDiff, type PageDiff, type ReadPage } from './diff-page.ts';
import { isReady, toCopies } from './insert.ts';
import { quarantine, resolveQuarantine } from './quarantine.ts';
import { applyChanges, type PageWrite, withholdFiles } from './update.ts';

export interface PageSummary {
  readonly added: number;
  readonly changed: number;
  readonly quarantined: number;
  /** Ids whose change was not written, because a newer request has seen the same id. The caller requests them again. */
  readonly stale: readonly bigint[];
}

/** What a page advances: a sweep, or the evidence of a sweep that has ended (an audit). */
export type PageProgress = SweepProgress | { readonly audited: { readonly sweepId: bigint; readonly body: LineBody } };

/** `progress` is null for a page that its sweep did not request. `outdated`: rows have changed since the diff; nothing was written. */
export async function commitPage(
  db: Database,
  privacyKey: KeyObject,
  page: ReadPage,
  diff: PageDiff,
  progress: PageProgress | null,
  crashPoint?: PassCrashPoint,
): Promise<PageSummary | 'outdated'> {
  crashPoint?.('pageCompared');
  try {
    const summary = await db.transaction(
      async (tx) => {
        // Sent first and awaited together with the writes. It throws when the lease is lost, and the transaction rolls back.
        const fenced = fence(tx, page.lease);
        const open = { db: tx, privacyKey, advertiserId: page.advertiserId, page, events: [] };
        const writing = write(open, diff, progress);
        const [written] = await Promise.all([writing, fenced]);
        crashPoint?.('pageWritten');
        return written;
      },
      laneLock(page.advertiserId, page.lease.lane),
    );
    crashPoint?.('pageCommitted');
    return summary;
  } catch (error) {
    // Another transaction has stored the same application, or Postgres has chosen this one as the victim of a deadlock.
    if (isConflict(error)) return 'outdated';
    throw error;
  }
}

async function write(open: PageWrite, diff: PageDiff, progress: PageProgress | null) {
  const { db: tx, advertiserId, page, events } = open;
  const { sweep } = page;
  // While the other lane runs, the diff is taken again under the lane lock: otherwise both lanes could write from an outdated diff.
  if (diff.otherLane && !isSameDiff(diff, await diffPage(tx, open.privacyKey, page))) return 'outdated';
  if (progress !== null && 'audited' in progress) {
    const { sweepId, body } = progress.audited;
    if (!(await appendEvidence(tx, advertiserId, sweepId, [body]))) return 'outdated';
  }
  const isToBeWritten = await resolveElements(open);
  const fresh = await splitOffErased(open, diff.fresh.filter(isToBeWritten));
  if (fresh.length > 0) {
    await noteLateness(open, fresh);
    await insertNew(open, fresh);
  }
  const { changed, stale } = await applyChanges(open, diff.changed.filter(isToBeWritten));
  if (diff.strangers.length > 0) await withholdFiles(open, diff.strangers);
  if (diff.returned.length > 0) await unmarkAbsent(open, diff.returned);
  // Again: an element whose application the gate has stopped is deleted.
  await resolveElements(open);
  // An element counts once per sweep. A page outside of sweeps counts by its request, as no sweep has such an id.
  const seenBy = sweep?.sweepId ?? -page.seq;
  const quarantined = await quarantine(open, page.rejects, seenBy);
  if (diff.otherLane && page.applications.length > 0) await recordRecentPage(open);
  const counts = { added: fresh.length, changed, quarantined };
  if (sweep !== null && progress !== null && !('audited' in progress)) {
    const received = page.applications.length;
    events.push(...(await saveProgress(tx, { ...page, sweep }, progress, { ...counts, received })));
  }
  await appendEvents(tx, advertiserId, events);
  return { ...counts, stale };
}

/** With fewer rows, the statistics could suggest that every advertiser has one row. */
const enoughRows = 100;

/**
 * Gives the planner statistics early in a first load, called with what a page has added. Autovacuum collects them too, but not within the
 * first minute, and a session plans its foreign key checks once. Planned while the tables were nearly empty, each check read all rows of its
 * advertiser. Measured in a first load of 1,500 applications in pages of 30: 1,184 rows read for each application, 20 with statistics.
 */
export function createStatistics(db: Queryable) {
  let missing = enoughRows;
  let isAnalyzed = false;
  return async (added: number): Promise<void> => {
    missing -= added;
    if (isAnalyzed || missing > 0) return;
    const [unknown] = await db.query(
      `SELECT 1 FROM pg_class WHERE oid = 'intake.applications'::regclass AND reltuples <= 0`,
    );
    // SKIP_LOCKED: a session that locks one of the tables is analyzing or altering it, and this one must not wait for that.
    if (unknown) await db.query('ANALYZE (SKIP_LOCKED) intake.applications, intake.attachments, intake.downloads');
    isAnalyzed = true;
  };
}

/** The hot path. COPY takes 105 us of server CPU per application; one jsonb parameter took 134 us (measured alternately). */
async function insertNew(open: PageWrite, fresh: readonly Application[]): Promise<void> {
  const { db, advertiserId, page, events } = open;
  const copied = db.copy(toCopies(open, page, fresh));
  await Promise.all([copied, ...(fresh.every(isReady) ? [] : [notifyQueued(db, advertiserId)])]);
  for (const { id } of fresh) events.push({ applicationId: id, type: 'application.received' });
  for (const { id } of fresh.filter(isReady)) events.push({ applicationId: id, type: 'application.ready' });
}

/**
 * How late an id below the cursor appeared: the time since the next higher one was stored, or its own age where that is less. In a recheck,
 * which may read old ones first (SYNC_START), only one younger than a day counts. What only date filters show is hidden, not late.
 */
async function noteLateness({ db, page }: PageWrite, fresh: readonly Application[]): Promise<void> {
  const { purpose, axis } = page.sweep ?? {};
  if (purpose !== 'live' && !(purpose === 'recheck' && axis === 'id')) return;
  await db.query(
    `WITH late AS (
       SELECT max(extract(epoch FROM now() - greatest(passed.first_seen_at, s.at)) * 1000)::bigint AS ms
       FROM unnest($2::bigint[], $3::timestamptz[]) AS s (id, at)
       JOIN intake.cursors c ON c.advertiser_id = $1 AND s.id < c.after_id
       CROSS JOIN LATERAL (
         SELECT a.first_seen_at FROM intake.applications a
         WHERE a.advertiser_id = $1 AND a.application_id > s.id ORDER BY a.application_id LIMIT 1) AS passed
       WHERE $4 OR s.at > now() - interval '1 day'
     )
     UPDATE intake.advertisers v SET late_ms = late.ms, late_at = now() FROM late
     WHERE v.advertiser_id = $1 AND late.ms > 0
       AND (v.late_ms IS NULL OR late.ms >= v.late_ms OR v.late_at < now() - interval '30 days')`,
    [
      page.advertiserId,
      fresh.map(({ id }) => id),
      fresh.map(({ submittedAt }) => (submittedAt === null ? null : new Date(submittedAt))),
      purpose === 'live',
    ],
  );
}

/** One that was missing gets `application.changed`: a consumer may have dropped it. One that was only absent had no event and gets none. */
async function unmarkAbsent({ db, advertiserId, events }: PageWrite, ids: readonly bigint[]): Promise<void> {
  const rows = await db.query<ChangedRow>(
    `WITH before AS MATERIALIZED (
       SELECT application_id, missing_since IS NOT NULL AS missing FROM intake.applications
       WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) ORDER BY application_id FOR NO KEY UPDATE
     )
     UPDATE intake.applications a SET absent_since = NULL, missing_since = NULL FROM before
     WHERE a.advertiser_id = $1 AND a.application_id = ANY ($2::bigint[]) AND a.application_id = before.application_id
     RETURNING a.application_id, before.missing`,
    [advertiserId, ids],
  );
  for (const { application_id, missing } of rows) {
    if (missing) events.push({ applicationId: application_id, type: 'application.changed' });
  }
}

/** Splits off applications that the gate stops and that have no row, and inserts a row with only their id and the date. */
async function splitOffErased(open: PageWrite, fresh: readonly Application[]): Promise<readonly Application[]> {
  const kept = await withoutErased(open, fresh);
  if (kept.length === fresh.length) return fresh;
  const stopped = [...new Set(fresh).difference(new Set(kept))];
  await open.db.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq, erased_at)
     SELECT $1, id, '', 0, now() FROM unnest($2::bigint[]) AS id`,
    [open.advertiserId, stopped.map(({ id }) => id)],
  );
  await rememberStopped(open, stopped);
  for (const { id } of stopped) open.events.push({ applicationId: id, type: 'application.erased' });
  return kept;
}

/** Resolves the quarantined elements that this page was parsed from. An application whose element was erased meanwhile is not stored. */
async function resolveElements({ db, advertiserId, page: { replayed } }: PageWrite) {
  if (replayed === undefined) return () => true;
  const resolved = await resolveQuarantine(db, advertiserId, replayed);
  return ({ id }: Application) => resolved.has(id);
}

/** Records that request `seq` has seen these ids, so that an older, slower request does not overwrite them (P5). */
async function recordRecentPage({ db, page }: PageWrite): Promise<void> {
  await db.query(
    `WITH old AS (
       DELETE FROM intake.recent_pages WHERE advertiser_id = $1 AND lane = $3 AND finished_at < now() - interval '20 minutes'
     )
     INSERT INTO intake.recent_pages (advertiser_id, seq, lane, lowest_id, highest_id)
     SELECT $1, $2, $3, min(id), max(id) FROM unnest($4::bigint[]) AS id`,
    [page.advertiserId, page.seq, page.lease.lane, page.applications.map(({ id }) => id)],
  );
}

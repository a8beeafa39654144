// Commits a page in one transaction: applications, queued downloads, events, sweep progress and cursor (promise P4 in docs/architecture.md).
// New applications are copied in, changed ones are merged (update.ts), unchanged ones are not touched: no row version, no lock, no WAL.
import type { KeyObject } from 'node:crypto';
import type { Application } from '../../domain/application.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import type { ChainedRecord } from '../../domain/evidence/chain.ts';
import { isErased } from '../../domain/evidence/tree.ts';
import { type ApplicationEvent, appendEvents, type ChangedRow } from '../events.ts';
import { notifyQueued } from '../files/download-queue.ts';
import { type Database, isConflict, type Queryable, type Transaction } from '../postgres/database.ts';
import { findErasedRows, isChainKept, noteLastHash, saveEvidence } from '../sweeps/evidence.ts';
import { fence, laneLock } from '../sweeps/leases.ts';
import { type SweepProgress, saveProgress } from '../sweeps/sweeps.ts';
import { findErasedIds } from '../tombstones.ts';
import { diffPage, isSameDiff, type PageDiff, type ReadPage } from './diff-page.ts';
import { toCopies } from './insert.ts';
import { quarantine, resolveQuarantine } from './quarantine.ts';
import { isReady } from './rows.ts';
import { applyChanges } from './update.ts';

export interface PageSummary {
  readonly added: number;
  readonly changed: number;
  readonly quarantined: number;
  /** Ids whose change was not written, because a newer request of the other lane has seen the same id. The caller asks for them again. */
  readonly stale: readonly bigint[];
}

/** What a page moves: a sweep, or the evidence of one that has ended (an audit). */
export type PageProgress = SweepProgress | AuditProgress;

export interface AuditProgress {
  readonly audited: { readonly sweepId: bigint; readonly records: readonly ChainedRecord[] };
}

/** The stored rows have changed since the diff was taken. Nothing was written; the caller takes the diff again. */
export type OutdatedDiff = 'outdated';

/**
 * Writes the page and the sweep's progress. `key` makes person keys. `progress` is null for an answer that the sweep did not ask for:
 * its applications are stored, the sweep stays as it is.
 */
export async function commitPage(
  db: Database,
  key: KeyObject,
  page: ReadPage,
  diff: PageDiff,
  progress: PageProgress | null,
  crashPoint?: PassCrashPoint,
): Promise<PageSummary | OutdatedDiff> {
  crashPoint?.('pageCompared');
  try {
    const summary = await db.transaction(
      async (tx) => {
        // Sent first and awaited together with the writes. It throws when the lease is lost, and the transaction rolls back.
        const fenced = fence(tx, page.lease);
        const [written] = await Promise.all([writeCurrent(tx, key, page, diff, progress), fenced]);
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

/** While the other lane runs, takes the diff again under the lock: both lanes could write from an old diff otherwise. */
async function writeCurrent(
  tx: Transaction,
  key: KeyObject,
  page: ReadPage,
  diff: PageDiff,
  progress: PageProgress | null,
): Promise<PageSummary | OutdatedDiff> {
  if (diff.otherLane && !isSameDiff(diff, await diffPage(tx, page))) return 'outdated';
  if (progress !== null && 'audited' in progress && !(await isChainKept(tx, page.advertiserId, progress.audited)))
    return 'outdated';
  return await write(tx, key, page, diff, progress);
}

async function write(
  tx: Transaction,
  key: KeyObject,
  page: ReadPage,
  diff: PageDiff,
  progress: PageProgress | null,
): Promise<PageSummary> {
  const events: ApplicationEvent[] = [];
  const isToBeWritten = await resolveElements(tx, page);
  const { fresh, erased } = await splitOffErased(tx, key, page, diff.fresh.filter(isToBeWritten), events);
  if (fresh.length > 0) {
    if (page.sweep.purpose === 'live') await noteLateness(tx, page, fresh);
    await insertNew(tx, key, page, fresh, events);
  }
  const { changed, stale } = await applyChanges(tx, key, page, diff.changed.filter(isToBeWritten), events);
  if (diff.returned.length > 0) await unmarkAbsent(tx, page.advertiserId, diff.returned, events);
  const quarantined = await quarantine(tx, key, page, page.sweep.sweepId);
  if (diff.otherLane && page.applications.length > 0) await recordRecentPage(tx, page);
  const counts = { added: fresh.length, changed, quarantined };
  const received = page.applications.length;
  const gone = new Set([...erased, ...(await findErasedLeaves(tx, page, progress, fresh))]);
  if (progress === null) await appendEvents(tx, page.advertiserId, events);
  else if ('audited' in progress) {
    await saveAudit(tx, page, progress, gone);
    await appendEvents(tx, page.advertiserId, events);
  } else {
    const ended = await saveProgress(tx, page, progress, { ...counts, received }, gone);
    await appendEvents(tx, page.advertiserId, [...events, ...ended]);
  }
  return { ...counts, stale };
}

/** Applications of the evidence that are erased. What was stored just now is not, so a first load asks nothing. */
async function findErasedLeaves(
  tx: Queryable,
  { advertiserId }: ReadPage,
  progress: PageProgress | null,
  fresh: readonly Application[],
): Promise<bigint[]> {
  const evidence = progress === null ? null : 'audited' in progress ? progress.audited : progress.evidence;
  const isNew = new Set(fresh.map(({ id }) => id));
  const ids = (evidence?.records ?? []).flatMap(({ leaves }) =>
    leaves.entries.flatMap((entry) => (isErased(entry) || isNew.has(entry.id) ? [] : [entry.id])),
  );
  return ids.length === 0 ? [] : await findErasedRows(tx, advertiserId, ids);
}

/** Appends an audit to the proof that it was asked of. */
async function saveAudit(
  tx: Queryable,
  { advertiserId }: ReadPage,
  { audited }: AuditProgress,
  erased: ReadonlySet<bigint>,
): Promise<void> {
  const { sweepId, records } = audited;
  const last = records.at(-1);
  if (last === undefined) return;
  await Promise.all([
    saveEvidence(tx, advertiserId, sweepId, records, erased),
    noteLastHash(tx, advertiserId, sweepId, last),
  ]);
}

/**
 * The hot path. The diff says that these applications are new, so they go in by COPY; if one is there after all, the duplicate key makes
 * the diff outdated. COPY takes 105 us of Postgres' CPU an application; one jsonb parameter took 134 (measured alternately).
 */
async function insertNew(
  tx: Transaction,
  key: KeyObject,
  page: ReadPage,
  fresh: readonly Application[],
  events: ApplicationEvent[],
): Promise<void> {
  const copied = tx.copy(toCopies(key, page, fresh));
  await Promise.all([copied, ...(fresh.every(isReady) ? [] : [notifyQueued(tx, page.advertiserId)])]);
  for (const { id } of fresh) events.push({ applicationId: id, type: 'application.received' });
  for (const application of fresh) {
    if (isReady(application)) events.push({ applicationId: application.id, type: 'application.ready' });
  }
}

/** Records how late an id below the cursor came: at least as late as the next higher stored id is old. */
async function noteLateness(tx: Queryable, page: ReadPage, fresh: readonly Application[]): Promise<void> {
  await tx.query(
    `WITH late AS (
       SELECT max(extract(epoch FROM now() - passed.first_seen_at) * 1000)::bigint AS ms
       FROM unnest($2::bigint[]) AS id
       JOIN intake.cursors c ON c.advertiser_id = $1 AND id < c.after_id
       CROSS JOIN LATERAL (
         SELECT a.first_seen_at FROM intake.applications a
         WHERE a.advertiser_id = $1 AND a.application_id > id ORDER BY a.application_id LIMIT 1) AS passed
     )
     UPDATE intake.advertisers v SET late_ms = late.ms, late_at = now() FROM late
     WHERE v.advertiser_id = $1 AND late.ms > 0
       AND (v.late_ms IS NULL OR late.ms >= v.late_ms OR v.late_at < now() - interval '30 days')`,
    [page.advertiserId, fresh.map((a) => a.id)],
  );
}

/** An application that was missing and shows again is announced as changed: a consumer may have dropped it. One that was only absent had no event and gets none. */
async function unmarkAbsent(
  tx: Queryable,
  advertiserId: bigint,
  ids: readonly bigint[],
  events: ApplicationEvent[],
): Promise<void> {
  const rows = await tx.query<ChangedRow>(
    `WITH before AS MATERIALIZED (
       SELECT application_id, missing_since IS NOT NULL AS missing FROM intake.applications
       WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) ORDER BY application_id FOR NO KEY UPDATE
     )
     UPDATE intake.applications a SET absent_since = NULL, missing_since = NULL FROM before
     WHERE a.advertiser_id = $1 AND a.application_id = ANY ($2::bigint[]) AND a.application_id = before.application_id
     RETURNING a.application_id, before.missing`,
    [advertiserId, ids],
  );
  for (const row of rows) {
    if (row.missing) events.push({ applicationId: row.application_id, type: 'application.changed' });
  }
}

/** Splits off erased applications whose row is gone and whose tombstone remains; inserts them as an id and a date only. */
async function splitOffErased(
  tx: Queryable,
  key: KeyObject,
  { advertiserId }: ReadPage,
  fresh: readonly Application[],
  events: ApplicationEvent[],
): Promise<{ readonly fresh: readonly Application[]; readonly erased: ReadonlySet<bigint> }> {
  if (fresh.length === 0) return { fresh, erased: new Set() };
  const erased = await findErasedIds(
    tx,
    key,
    advertiserId,
    fresh.map((a) => a.id),
  );
  if (erased.size === 0) return { fresh, erased };
  await tx.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq, erased_at)
     SELECT $1, id, '', 0, now() FROM unnest($2::bigint[]) AS id`,
    [advertiserId, [...erased]],
  );
  for (const id of erased) events.push({ applicationId: id, type: 'application.erased' });
  return { fresh: fresh.filter((a) => !erased.has(a.id)), erased };
}

/** Resolves the quarantined elements that this page was parsed from. An application whose element was erased meanwhile is not stored. */
async function resolveElements(
  tx: Queryable,
  { advertiserId, replayed }: ReadPage,
): Promise<(application: Application) => boolean> {
  if (replayed === undefined) return () => true;
  const resolved = await resolveQuarantine(tx, advertiserId, replayed);
  return ({ id }) => resolved.has(id);
}

/** Remembers that request `seq` has seen these ids, so that a slower, older request does not overwrite them (P5). */
async function recordRecentPage(tx: Queryable, page: ReadPage): Promise<void> {
  const ids = page.applications.map((a) => a.id);
  await tx.query(
    `WITH old AS (
       DELETE FROM intake.recent_pages WHERE advertiser_id = $1 AND lane = $3 AND finished_at < now() - interval '20 minutes'
     )
     INSERT INTO intake.recent_pages (advertiser_id, seq, lane, lowest_id, highest_id)
     SELECT $1, $2, $3, min(id), max(id) FROM unnest($4::bigint[]) AS id`,
    [page.advertiserId, page.seq, page.lease.lane, ids],
  );
}

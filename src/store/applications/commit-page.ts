// commitPage: everything one list answer means for the database, in one transaction or not at all (P4).
// New applications take the fast way (COPY), known ones that changed the careful way (update.ts),
// unchanged ones are not touched: no row version, no lock, no WAL.
import type { KeyObject } from 'node:crypto';
import type { Application } from '../../domain/application.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { type ApplicationEvent, appendEvents } from '../events.ts';
import { notifyQueued } from '../files/download-queue.ts';
import { type Database, type Queryable, type Transaction, untilSettled } from '../postgres/database.ts';
import { fence, laneLock } from '../sweeps/leases.ts';
import { type Progress, saveProgress } from '../sweeps/sweeps.ts';
import { findErasedIds } from '../tombstones.ts';
import { compare, type Found, loadSurroundings, type PageCommit, type Surroundings, toFound } from './diff-page.ts';
import { toCopies } from './insert.ts';
import { quarantine, resolveQuarantine } from './quarantine.ts';
import { isReady } from './rows.ts';
import { applyChanges } from './update.ts';

export interface PageSummary {
  readonly added: number;
  readonly changed: number;
  readonly quarantined: number;
  /** False when there was nothing to write at all. */
  readonly recorded: boolean;
  /** Changes read by a request older than one that another lane has finished over the same id: not written, to be asked again. */
  readonly stale: readonly bigint[];
}

/** Writes a page, its queued downloads, its events, the sweep's progress and the cursor together. `key` makes person keys. */
export async function commitPage(
  db: Database,
  key: KeyObject,
  page: PageCommit,
  lookAround: (page: PageCommit) => Promise<Surroundings> = (one) => lookAlone(db, one),
  crashPoint?: PassCrashPoint,
): Promise<PageSummary> {
  return await untilSettled(async () => {
    const isEmpty = page.applications.length + page.rejects.length === 0;
    const found = isEmpty ? toFound(await lookAround(page)) : await compare(db, page);
    const isAhead =
      page.isApart === true && !found.otherLane && found.writes > 0 && found.writes === found.fresh.length;
    // Written ahead of its turn, a page learns of the pages before it within its transaction.
    const progress = isAhead ? null : await page.learn(found.seen);
    if (found.writes === 0 && progress?.quiet && !found.otherLane) return nothingWritten;
    crashPoint?.('pageCompared');
    const summary = await db.transaction(
      async (tx) => {
        const written = await (progress === null
          ? writeAhead(tx, key, page, found)
          : writeFenced(tx, key, page, { ...found, progress }));
        crashPoint?.('pageWritten');
        return written;
      },
      laneLock(page.advertiserId, page.lease.lane),
    );
    crashPoint?.('pageCommitted');
    return summary;
  });
}

async function lookAlone(db: Queryable, page: PageCommit): Promise<Surroundings> {
  const [around] = await loadSurroundings(db, [page]);
  return around ?? { otherLane: false, missing: [] };
}

/** The fence is asked first and not waited for: a lease that was lost takes back whatever was written behind it. */
async function writeFenced(tx: Transaction, key: KeyObject, page: PageCommit, plan: Plan): Promise<PageSummary> {
  const fenced = fence(tx, page.lease);
  const written = plan.otherLane ? writeComparedAgain(tx, key, page) : write(tx, key, page, plan);
  const [summary] = await Promise.all([written, fenced]);
  return summary;
}

/** Beside a running other lane the comparison must happen under the lock, or both could write what they compared earlier. */
async function writeComparedAgain(tx: Transaction, key: KeyObject, page: PageCommit): Promise<PageSummary> {
  const found = await compare(tx, page);
  return await write(tx, key, page, { ...found, progress: await page.learn(found.seen) });
}

/**
 * New rows first, then the turn of this page, then its progress: two pages of a backfill are written at once and committed in order. The
 * fence comes after the turn: writers that always overlap would share the lease's row without a gap, and its renewal would starve.
 */
async function writeAhead(tx: Transaction, key: KeyObject, page: PageCommit, found: Found): Promise<PageSummary> {
  const events: ApplicationEvent[] = [];
  const fresh = await withoutErased(tx, key, page, found.fresh, events);
  if (fresh.length > 0) await insertNew(tx, key, page, fresh, events);
  const progress = await page.learn(found.seen);
  const summary = { ...nothingWritten, added: fresh.length, recorded: !progress.outside };
  const fenced = fence(tx, page.lease);
  const recorded = recordProgress(tx, page, progress, summary, events);
  await Promise.all([fenced, recorded]);
  return summary;
}

const nothingWritten: PageSummary = { added: 0, changed: 0, quarantined: 0, recorded: false, stale: [] };

interface Plan extends Found {
  readonly progress: Progress;
}

async function write(tx: Transaction, key: KeyObject, page: PageCommit, plan: Plan): Promise<PageSummary> {
  const events: ApplicationEvent[] = [];
  const isHere = await resolveElements(tx, page);
  const fresh = await withoutErased(tx, key, page, plan.fresh.filter(isHere), events);
  if (fresh.length > 0) {
    if (plan.progress.sweep.purpose === 'live') await noteLateness(tx, page, fresh);
    await insertNew(tx, key, page, fresh, events);
  }
  const { changed, stale } = await applyChanges(tx, key, page, plan.changed.filter(isHere), events);
  if (plan.returned.length > 0) await unmarkAbsent(tx, page.advertiserId, plan.returned, events);
  const quarantined = await quarantine(tx, key, page, plan.progress.sweep.sweepId);
  if (plan.otherLane && page.applications.length > 0) await recordReading(tx, page);
  const summary = {
    added: fresh.length,
    changed,
    quarantined,
    recorded: !plan.progress.outside,
    stale,
  };
  await recordProgress(tx, page, plan.progress, summary, events);
  return summary;
}

/** The last of a page: what the sweep learned from it, and what happened to its applications. */
async function recordProgress(
  tx: Transaction,
  page: PageCommit,
  progress: Progress,
  summary: PageSummary,
  events: readonly ApplicationEvent[],
): Promise<void> {
  const ended = await saveProgress(tx, page, progress, { ...summary, received: page.applications.length });
  await appendEvents(tx, page.advertiserId, [...events, ...ended]);
}

/**
 * The hot path, by COPY: the comparison has just said that these are new. A key met all the same is an error and a second look. As one
 * jsonb parameter taken apart by Postgres the same rows took 134 us of its CPU an application instead of 105 (measured in turns).
 */
async function insertNew(
  tx: Transaction,
  key: KeyObject,
  page: PageCommit,
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

/** An id below the cursor that shows only now was late: by how much, the next higher id tells, which was there before it. */
async function noteLateness(tx: Queryable, page: PageCommit, fresh: readonly Application[]): Promise<void> {
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

/** An application that was missing and is shown again has changed: a consumer may have dropped it. Absent ones were never told of. */
async function unmarkAbsent(
  tx: Queryable,
  advertiserId: bigint,
  ids: readonly bigint[],
  events: ApplicationEvent[],
): Promise<void> {
  const rows = await tx.query<{ application_id: bigint; missing: boolean }>(
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

/** Of those that are not held, erased ones (their row was lost, not their tombstone) come back as an id and a date, and nothing more. */
async function withoutErased(
  tx: Queryable,
  key: KeyObject,
  { advertiserId }: PageCommit,
  fresh: readonly Application[],
  events: ApplicationEvent[],
): Promise<readonly Application[]> {
  if (fresh.length === 0) return fresh;
  const erased = await findErasedIds(
    tx,
    key,
    advertiserId,
    fresh.map((a) => a.id),
  );
  if (erased.size === 0) return fresh;
  await tx.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq, erased_at)
     SELECT $1, id, '', 0, now() FROM unnest($2::bigint[]) AS id`,
    [advertiserId, [...erased]],
  );
  for (const id of erased) events.push({ applicationId: id, type: 'application.erased' });
  return fresh.filter((a) => !erased.has(a.id));
}

/** What was read from quarantine is resolved together with it; an application whose element was erased meanwhile is not kept. */
async function resolveElements(
  tx: Queryable,
  { advertiserId, replayed }: PageCommit,
): Promise<(application: Application) => boolean> {
  if (replayed === undefined) return () => true;
  const resolved = await resolveQuarantine(tx, advertiserId, replayed);
  return ({ id }) => resolved.has(id);
}

/** Remembers that a request numbered `seq` has seen these ids, for changes that a slower, older request may still bring (P5). */
async function recordReading(tx: Queryable, page: PageCommit): Promise<void> {
  const ids = page.applications.map((a) => a.id);
  await tx.query(
    `WITH old AS (
       DELETE FROM intake.readings WHERE advertiser_id = $1 AND lane = $3 AND finished_at < now() - interval '20 minutes'
     )
     INSERT INTO intake.readings (advertiser_id, seq, lane, lowest_id, highest_id)
     SELECT $1, $2, $3, min(id), max(id) FROM unnest($4::bigint[]) AS id`,
    [page.advertiserId, page.seq, page.lease.lane, ids],
  );
}

// The statements of verify: loads an advertiser's blobs by key or by when they were last read, records damage, and counts orphans.
import { type BlobFacts, toBlobKey } from '../../domain/blob.ts';
import { lostResume } from '../../domain/prefill.ts';
import { nightMs, type UnreadBytes } from '../../domain/reread.ts';
import { appendEvents, type ChangedRow, toEvents } from '../events.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { isOrphan, lockHolders } from './blobs.ts';
import { takeBackAnnounced } from './download-queue.ts';
import { reopenAttachments } from './file-states.ts';

/** `keptVersions`: those that the store kept when the object was last deleted. */
export type BlobRow = BlobFacts & Readonly<Columns<'blobs', 'key' | 'state'>> & { readonly keptVersions: number };

const blobColumns = 'sha256, size_bytes::float8 AS "sizeBytes", key, state, kept_versions AS "keptVersions"';

const pageSize = 1_000;

/** Rows that are loaded page by page, each page behind the last row of the one before. `load` returns up to `size` rows. */
export async function* inPages<T>(size: number, load: (after: T | undefined) => Promise<T[]>): AsyncGenerator<T> {
  for (let after: T | undefined; ; ) {
    const rows = await load(after);
    yield* rows;
    if (rows.length < size) return;
    after = rows.at(-1);
  }
}

export function loadBlobs(db: Queryable, advertiserId: bigint): AsyncGenerator<BlobRow> {
  return inPages(pageSize, (after) =>
    db.query<BlobRow>(
      `SELECT ${blobColumns} FROM intake.blobs
       WHERE advertiser_id = $1 AND sha256 > $2 ORDER BY sha256 LIMIT ${pageSize}`,
      [advertiserId, after?.sha256 ?? ''],
    ),
  );
}

/** Sets times of a wrong clock to now: otherwise bytes would stay unread, or orphans be kept or deleted again, until they have passed. */
export async function resetFutureTimes(db: Queryable, advertiserId: bigint): Promise<void> {
  await db.query(
    `UPDATE intake.blobs SET verified_at = least(verified_at, now()), intended_at = least(intended_at, now())
     WHERE advertiser_id = $1 AND (verified_at > now() OR intended_at > now())`,
    [advertiserId],
  );
}

/** Bytes by the number of nights left to read them. The last is one night before the deadline: a night may fail. Empty blobs count as 1. */
export async function loadBytesByNights(db: Queryable, advertiserId: bigint, withinMs: number): Promise<UnreadBytes[]> {
  return await db.query<UnreadBytes>(
    `SELECT greatest(1, floor((date_part('epoch', verified_at - now()) * 1000 + $2::float8) / $3::float8))::int AS nights,
       sum(greatest(size_bytes, 1))::float8 AS bytes
     FROM intake.blobs WHERE advertiser_id = $1 AND state = 'stored' GROUP BY 1`,
    [advertiserId, withinMs, nightMs],
  );
}

/** An advertiser's stored blobs, the longest unread first, by the state of the rows when each page is loaded. */
export function loadLongestUnread(db: Queryable, advertiserId: bigint): AsyncGenerator<BlobRow> {
  // As text: a Date has no microseconds, and rows would be returned twice.
  return inPages<BlobRow & { verified_at: string }>(pageSize, (after) =>
    db.query(
      `SELECT ${blobColumns}, verified_at::text AS verified_at FROM intake.blobs
       WHERE advertiser_id = $1 AND state = 'stored' AND (verified_at, sha256) > ($2::timestamptz, $3)
       ORDER BY blobs.verified_at, sha256 LIMIT ${pageSize}`,
      [advertiserId, after?.verified_at ?? '-infinity', after?.sha256 ?? ''],
    ),
  );
}

export async function markVerified(db: Queryable, advertiserId: bigint, sha256: string): Promise<void> {
  const sql = `UPDATE intake.blobs SET verified_at = now() WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored'`;
  await db.query(sql, [advertiserId, sha256]);
}

/** Puts bytes that somebody could not read as they were stored before all others. Verify decides: a store may answer wrongly once. */
export async function markSuspect(db: Queryable, advertiserId: bigint, sha256: string): Promise<void> {
  await db.query(
    `UPDATE intake.blobs SET verified_at = (SELECT min(verified_at) FROM intake.blobs WHERE advertiser_id = $1 AND state = 'stored') - interval '1 ms'
     WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored'`,
    [advertiserId, sha256],
  );
}

/** Records lost bytes: only attachments can be fetched again. Null when the blob is not `stored` any more, or was never completed. */
export async function markDamaged(db: Database, advertiserId: bigint, sha256: string) {
  return await db.transaction(async (tx) => {
    await lockHolders(tx, advertiserId, [sha256]);
    const [blob] = await tx.query<Columns<'blobs', 'state'>>(
      `SELECT state FROM intake.blobs WHERE advertiser_id = $1 AND sha256 = $2`,
      [advertiserId, sha256],
    );
    // Another verify has recorded it already.
    if (blob?.state === 'damaged') return { requeued: 0, lost: 0 };
    // The object was lost after the put, before its download was completed. Without its claim, that cannot be completed without bytes.
    if (blob?.state === 'writing') await takeBackAnnounced(tx, advertiserId, [sha256]);
    const resumes = await tx.query(
      `UPDATE intake.prefills SET resume_reason = $3 WHERE advertiser_id = $1 AND resume_sha256 = $2 AND resume_reason IS NULL
       RETURNING 1`,
      [advertiserId, sha256, lostResume],
    );
    const marked = await tx.query(
      `UPDATE intake.blobs SET state = 'damaged' WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored' RETURNING 1`,
      [advertiserId, sha256],
    );
    if (marked.length === 0) return null;
    // As in file-states.ts: locks the applications of files that were completed with these bytes since the first lock.
    await lockHolders(tx, advertiserId, [sha256]);
    const lost = await tx.query<ChangedRow>(
      `UPDATE intake.attachment_versions v SET state = 'missing', reason = 'the stored bytes were lost' FROM intake.applications a
       WHERE v.advertiser_id = $1 AND v.sha256 = $2 AND v.state = 'stored'
         AND a.advertiser_id = $1 AND a.application_id = v.application_id
       RETURNING a.application_id, a.missing_since IS NOT NULL AS missing`,
      [advertiserId, sha256],
    );
    const references = await tx.query<Columns<'attachments', 'application_id' | 'kind'>>(
      `SELECT application_id, kind FROM intake.attachments WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored'`,
      [advertiserId, sha256],
    );
    const reopened = await reopenAttachments(tx, advertiserId, references, ['stored']);
    await appendEvents(tx, advertiserId, [...toEvents('application.changed', lost), ...reopened]);
    return { requeued: references.length, lost: lost.length + resumes.length };
  });
}

/** True of a blob `b` whose bytes were lost and not yet replaced. Lost bytes of an earlier version cannot be replaced and do not count. */
export const isUnrepaired = `b.state = 'damaged'
  AND EXISTS (SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = b.advertiser_id AND a.sha256 = b.sha256)`;

export async function loadUnrepaired(db: Queryable, advertiserId: bigint): Promise<number> {
  const [row] = await db.query<{ unrepaired: number }>(
    `SELECT count(*)::int AS unrepaired FROM intake.blobs b WHERE b.advertiser_id = $1 AND ${isUnrepaired}`,
    [advertiserId],
  );
  return row?.unrepaired ?? 0;
}

/** Bytes that were found in the store, or of which it keeps versions, are deleted again, unless a run that deletes them now confirms it. */
export async function markUndeleted(db: Queryable, advertiserId: bigint, sha256: string): Promise<void> {
  const sql = `UPDATE intake.blobs SET deleted_at = NULL WHERE advertiser_id = $1 AND sha256 = $2`;
  await db.query(sql, [advertiserId, sha256]);
}

/** Adds a row for bytes that are in the blob store without one: an orphan, announced now. False when they were announced meanwhile. */
export async function adoptBlob(db: Queryable, advertiserId: bigint, blob: BlobFacts): Promise<boolean> {
  const rows = await db.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state)
     VALUES ($1, $2, $3, $4, 'damaged') ON CONFLICT DO NOTHING RETURNING 1`,
    [advertiserId, blob.sha256, blob.sizeBytes, toBlobKey(advertiserId, blob.sha256)],
  );
  return rows.length > 0;
}

/** Some of the blobs that nothing refers to, and that were last announced or linked more than a day ago. */
export async function loadOrphans(db: Queryable, advertiserId: bigint): Promise<string[]> {
  const rows = await db.query<Columns<'blobs', 'sha256'>>(
    `SELECT b.sha256 FROM intake.blobs b WHERE ${isOrphan} AND b.intended_at < now() - interval '1 day' LIMIT 10000`,
    [advertiserId],
  );
  return rows.map((row) => row.sha256);
}

/** How many of an advertiser's blobs nothing refers to, and how many there are. */
export async function countOrphans(db: Queryable, advertiserId: bigint) {
  const [row] = await db.query<{ orphans: number; blobs: number }>(
    `SELECT (SELECT count(*)::int FROM intake.blobs b WHERE ${isOrphan}) AS orphans,
       (SELECT count(*)::int FROM intake.blobs WHERE advertiser_id = $1) AS blobs`,
    [advertiserId],
  );
  return row ?? { orphans: 0, blobs: 0 };
}

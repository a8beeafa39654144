// What follows when the state of a file changes. An application is ready when all of its attachments are in a final state: the transaction
// that completes the last one sets `ready_at`, one that reopens one clears it; both append an event. Bytes that the source has flagged are
// infected (P8): no attachment or prefill of the advertiser may keep them readable. The row of their blob stays, so that they are detected
// if they return; blobs.ts begins the deletion of the object. When no flag is left on the bytes, they are freed and fetched again.
import type { AttachmentState } from '../../domain/application.ts';
import { toBlobKey } from '../../domain/blob.ts';
import { infectedResume } from '../../domain/prefill.ts';
import { type ApplicationEvent, appendEvents, type ChangedRow, toEvents } from '../events.ts';
import { columnsOf, type Database, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns, NotNull } from '../schema/rows.ts';
import { lockHolders } from './blobs.ts';
import { type Claim, type FileFacts, isFree, notifyQueued, takeBackAnnounced } from './download-queue.ts';

/**
 * Returns the events: one that is no longer ready gets `application.changed`. LIMIT keeps it at one index lookup per application: with NOT
 * EXISTS it was planned as three scans of all pending attachments (measured for 33 of 3,000 applications: 8 ms, with LIMIT 1.7 ms).
 */
export async function updateReady(tx: Queryable, advertiserId: bigint, ids: readonly bigint[]) {
  if (ids.length === 0) return [];
  const rows = await tx.query<ChangedRow & { ready: boolean }>(
    `WITH final AS MATERIALIZED (
       SELECT s.id, f.pending IS NULL AS ready FROM unnest($2::bigint[]) AS s (id) LEFT JOIN LATERAL (
         SELECT true AS pending FROM intake.attachments f
         WHERE f.advertiser_id = $1 AND f.application_id = s.id AND f.state = 'pending' LIMIT 1) AS f ON true
     )
     UPDATE intake.applications a SET ready_at = CASE WHEN s.ready THEN now() END FROM final s
     WHERE a.advertiser_id = $1 AND a.application_id = ANY ($2::bigint[]) AND a.application_id = s.id
       AND (a.ready_at IS NOT NULL) <> s.ready AND a.erased_at IS NULL
     RETURNING a.application_id, s.ready, a.missing_since IS NOT NULL AS missing`,
    [advertiserId, [...new Set(ids)]],
  );
  return rows.flatMap((row) => toEvents(row.ready ? 'application.ready' : 'application.changed', [row]));
}

/** Every writer locks applications first, in the order of their ids. */
export async function lockApplications(tx: Queryable, advertiserId: bigint, ids: readonly bigint[]): Promise<void> {
  await tx.query(
    `SELECT 1 FROM intake.applications WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[])
     ORDER BY application_id FOR NO KEY UPDATE`,
    [advertiserId, ids],
  );
}

/**
 * Attachments become pending and queued, due now with all attempts. A claimed download stays as it is, and so does a file that is no longer
 * in `from`: the caller chose it without a lock. Where bytes were lost, sha256 stays until there are others, so that the loss is visible.
 */
export async function reopenAttachments(
  tx: Transaction,
  advertiserId: bigint,
  chosen: readonly Columns<'attachments', 'application_id' | 'kind'>[],
  from: readonly AttachmentState[],
): Promise<ApplicationEvent[]> {
  if (chosen.length === 0) return [];
  const ids = chosen.map((row) => row.application_id);
  await lockApplications(tx, advertiserId, ids);
  await tx.query(
    `WITH chosen AS (SELECT * FROM unnest($2::bigint[], $3::text[]) AS k (application_id, kind)), opened AS (
       UPDATE intake.attachments a SET state = 'pending', reason = NULL, linked = false, stored_at = NULL, sha256 = (
         SELECT b.sha256 FROM intake.blobs b WHERE b.advertiser_id = $1 AND b.sha256 = a.sha256 AND b.state = 'damaged')
       FROM chosen k WHERE a.advertiser_id = $1 AND a.application_id = k.application_id AND a.kind = k.kind
         AND a.state = ANY ($4::text[]) RETURNING a.application_id, a.kind
     )
     INSERT INTO intake.downloads AS d (advertiser_id, application_id, kind, priority)
     SELECT $1, application_id, kind, 0 FROM opened
     ON CONFLICT (advertiser_id, application_id, kind) DO UPDATE SET due_at = now(), attempts = 0, lapses = 0, priority = 0,
       trouble = NULL, trouble_kind = NULL, failed_at = NULL, lease_token = NULL, leased_until = NULL WHERE ${isFree}`,
    [advertiserId, ids, chosen.map((row) => row.kind), from],
  );
  const events = await updateReady(tx, advertiserId, ids);
  await notifyQueued(tx, advertiserId);
  return events;
}

/** With the bytes that came, unless they are about to be written. */
export type ReplacedBytes = Pick<Claim, 'applicationId' | 'kind'> & { readonly sha256?: string };

/** Other bytes came of the same upload: the ones before become an earlier version, without a Hash, because theirs is no longer known. */
export async function replaceBytes(tx: Queryable, advertiserId: bigint, files: readonly ReplacedBytes[]) {
  if (files.length === 0) return;
  await tx.query(
    `WITH came AS (
       SELECT * FROM unnest($2::bigint[], $3::text[], $4::text[]) AS c (application_id, kind, other)
     ), kept AS (
       INSERT INTO intake.attachment_versions (advertiser_id, application_id, kind, version, state, reason, size_bytes, has_virus,
         uploaded_at, sha256, content_type, detected_type, file_name, stored_at)
       SELECT a.advertiser_id, a.application_id, a.kind, a.version, a.state, a.reason, a.size_bytes, a.has_virus,
         a.uploaded_at, a.sha256, a.content_type, a.detected_type, a.file_name, a.stored_at
       FROM came c JOIN intake.attachments a ON a.advertiser_id = $1 AND a.application_id = c.application_id AND a.kind = c.kind
       WHERE a.sha256 IS NOT NULL AND a.state <> 'pending' RETURNING application_id, kind
     )
     UPDATE intake.attachments a SET sha256 = c.other, stored_at = NULL,
       state = CASE WHEN a.has_virus AND c.other IS NOT NULL THEN 'infected' ELSE 'pending' END,
       version = a.version + (kept.kind IS NOT NULL)::int
     FROM came c LEFT JOIN kept USING (application_id, kind)
     WHERE a.advertiser_id = $1 AND a.application_id = c.application_id AND a.kind = c.kind`,
    [advertiserId, ...columnsOf(files, 'applicationId', 'kind', 'sha256')],
  );
}

/** The bytes of flagged files of these applications: all that came of a flagged upload, also before its Hash has changed. */
export async function loadFlagged(tx: Queryable, advertiserId: bigint, ids: readonly bigint[]): Promise<string[]> {
  const rows = await tx.query<NotNull<Columns<'attachments', 'sha256'>>>(
    `WITH flagged AS (SELECT * FROM intake.attachments WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) AND has_virus)
     SELECT sha256 FROM flagged WHERE sha256 IS NOT NULL
     UNION SELECT v.sha256 FROM intake.attachment_versions v JOIN flagged f USING (advertiser_id, application_id, kind)
     WHERE v.uploaded_at = f.uploaded_at AND v.sha256 IS NOT NULL`,
    [advertiserId, ids],
  );
  return rows.map((row) => row.sha256);
}

/** Called after applications changed: marks the bytes of their flagged files as infected, and frees bytes of `before` without a flag. */
export async function markFlagged(tx: Transaction, advertiserId: bigint, ids: readonly bigint[], before: string[]) {
  const hashes = await loadFlagged(tx, advertiserId, ids);
  const recalled = hashes.length > 0 ? await markInfected(tx, advertiserId, hashes) : [];
  const doubtful = before.filter((sha256) => !hashes.includes(sha256));
  return [...recalled, ...(doubtful.length > 0 ? await unmark(tx, advertiserId, doubtful) : [])];
}

/** Called when a claim was lost while its bytes were fetched: they are infected if the file was flagged meanwhile, in the same upload. */
export async function markFetched(db: Database, file: Pick<FileFacts, 'claim' | 'uploadedAt'>, sha256: string) {
  const { advertiserId, applicationId, kind } = file.claim;
  await db.repeatTransaction(async (tx) => {
    await lockHolders(tx, advertiserId, [sha256], [applicationId]);
    const flagged = await tx.query(
      `SELECT 1 FROM intake.attachments
       WHERE advertiser_id = $1 AND application_id = $2 AND kind = $3 AND state = 'infected' AND has_virus
         AND sha256 IS DISTINCT FROM $4 AND uploaded_at IS NOT DISTINCT FROM $5`,
      [advertiserId, applicationId, kind, sha256, file.uploadedAt],
    );
    if (flagged.length === 0) return;
    await replaceBytes(tx, advertiserId, [{ applicationId, kind, sha256 }]);
    await appendEvents(tx, advertiserId, await markInfected(tx, advertiserId, [sha256]));
  });
}

/** Returns an event for each application that has these bytes, now or in an earlier version: a consumer may have copied them. */
async function markInfected(tx: Transaction, advertiserId: bigint, hashes: readonly string[]) {
  await lockHolders(tx, advertiserId, hashes);
  // Bytes that were never announced, or that were deleted as orphans, have no row. They get one, so that they are detected if they return.
  await tx.query(
    `INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state, infected_at)
     SELECT $1, f.sha256, 0, f.key, 'infected', now() FROM unnest($2::text[], $3::text[]) AS f (sha256, key) ORDER BY f.sha256
     ON CONFLICT (advertiser_id, sha256) DO UPDATE SET state = 'infected', infected_at = now(), deleted_at = NULL
       WHERE b.state <> 'infected'`,
    [advertiserId, hashes, hashes.map((sha256) => toBlobKey(advertiserId, sha256))],
  );
  // Locks the applications of files that were completed with these bytes since the first lock; the locked blob keeps others from
  // following. This takes locks against the usual order (applications before blobs), so it can deadlock, and the caller retries.
  await lockHolders(tx, advertiserId, hashes);
  const rows = await tx.query<ChangedRow>(
    `WITH screen AS (
       DELETE FROM intake.screens WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])
     ), resume AS (
       UPDATE intake.prefills SET resume_reason = $4 WHERE advertiser_id = $1 AND resume_sha256 = ANY ($2::text[])
     ), earlier AS (
       UPDATE intake.attachment_versions SET state = 'infected', reason = $3
       WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state = 'stored' RETURNING application_id
     ), current AS (
       UPDATE intake.attachments SET state = 'infected', reason = $3, stored_at = NULL, linked = false, parser_version = NULL
       WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state = 'stored' RETURNING application_id
     )
     SELECT a.application_id, a.missing_since IS NOT NULL AS missing FROM intake.applications a
     WHERE a.advertiser_id = $1 AND a.application_id IN (SELECT application_id FROM earlier UNION SELECT application_id FROM current)`,
    [advertiserId, hashes, sameBytes, infectedResume],
  );
  return toEvents('application.changed', rows);
}

/** Why an attachment without a flag of its own is infected. */
export const sameBytes = 'the source has flagged the same bytes on another attachment';

/** Frees bytes that no flag is left on. The flag of a file that another upload replaced stays in force; a changed Hash is no new upload. */
async function unmark(tx: Transaction, advertiserId: bigint, hashes: readonly string[]): Promise<ApplicationEvent[]> {
  const freed = await tx.query<Columns<'blobs', 'sha256'>>(
    `UPDATE intake.blobs b SET state = 'writing', infected_at = NULL, deleted_at = NULL, kept_versions = 0
     WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state = 'infected' AND NOT EXISTS (
       SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = $1 AND a.sha256 = b.sha256 AND a.has_virus) AND NOT EXISTS (
         SELECT 1 FROM intake.attachment_versions v JOIN intake.attachments a USING (advertiser_id, application_id, kind)
         JOIN intake.attachment_versions f USING (advertiser_id, application_id, kind)
         WHERE v.advertiser_id = $1 AND v.sha256 = b.sha256 AND v.uploaded_at IS DISTINCT FROM a.uploaded_at
           AND f.has_virus AND f.uploaded_at IS NOT DISTINCT FROM v.uploaded_at)
     RETURNING sha256`,
    [advertiserId, hashes],
  );
  const freedHashes = freed.map((row) => row.sha256);
  // Downloads that announced the same bytes may have put them before the object was deleted: they fetch and announce them again.
  await takeBackAnnounced(tx, advertiserId, freedHashes);
  // None of these can be flagged before it is reopened: that page would have to lock all applications with these bytes, also ours.
  const references = await tx.query<Columns<'attachments', 'application_id' | 'kind'>>(
    `SELECT application_id, kind FROM intake.attachments
     WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state = 'infected' AND has_virus IS NOT TRUE`,
    [advertiserId, freedHashes],
  );
  return await reopenAttachments(tx, advertiserId, references, ['infected']);
}

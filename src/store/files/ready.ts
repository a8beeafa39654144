// An application is ready when all of its attachments are in a final state. The transaction that completes the last attachment sets
// `ready_at`; one that reopens an attachment clears it. Both append an event.
import type { AttachmentState } from '../../domain/application.ts';
import { type ApplicationEvent, type ChangedRow, toEvents } from '../events.ts';
import { columnsOf, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { type Claim, isFree, notifyQueued } from './download-queue.ts';

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

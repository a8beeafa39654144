// The table of blobs: bytes are announced before they are put, and stored once a download is completed.
import { type BlobFacts, toBlobKey } from '../../domain/blob.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { isBeingDeleted, isOrphan } from './delete-blobs.ts';
import type { Claim } from './download-queue.ts';

/**
 * What to do with announced bytes: `put` them; drop them, because they are `infected` or the claim is `lost`; or wait, because the object
 * of the same bytes is being deleted (`deleting`).
 */
export type AnnounceAnswer = 'put' | 'infected' | 'lost' | 'deleting';

export interface BlobAnnouncement {
  readonly claim: Claim;
  readonly blob: BlobFacts;
}

/**
 * Locks the applications that have these bytes, now or in an earlier version, and the applications in `more`. Every writer takes these locks
 * before those of blobs, in the order of ids. What is read of the applications afterwards, such as `missing_since`, stays true until COMMIT.
 */
export async function lockHolders(
  tx: Queryable,
  advertiserId: bigint,
  hashes: readonly string[],
  more: readonly bigint[] = [],
): Promise<void> {
  await tx.query(
    `SELECT 1 FROM intake.applications WHERE advertiser_id = $1 AND application_id IN (
       SELECT application_id FROM intake.attachments WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])
       UNION SELECT application_id FROM intake.attachment_versions WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])
       UNION SELECT unnest($3::bigint[]))
     ORDER BY application_id FOR NO KEY UPDATE`,
    [advertiserId, hashes, more],
  );
}

/** Announces bytes that have a row `b` already: a delete that nobody carries out any more ends, one that is under way has to end first. */
export const announceKnown = `ON CONFLICT (advertiser_id, sha256) DO UPDATE SET
    intended_at = CASE WHEN b.state = 'infected' THEN b.intended_at ELSE now() END,
    state = CASE WHEN b.state = 'deleting' AND ${isBeingDeleted} IS NOT TRUE THEN 'writing' ELSE b.state END
  RETURNING sha256, CASE WHEN b.state = 'infected' THEN 'infected' WHEN ${isBeingDeleted} THEN 'deleting' ELSE 'put' END AS answer`;

/**
 * Announces bytes of one advertiser before they are put, so that the store holds no unknown bytes. It writes them to the table blobs, and
 * to the rows of their downloads, so that an erasure knows which bytes are in transfer. The commit does not wait for the disk: a database
 * crash may lose an announcement, and verify then finds the bytes in the store.
 */
export async function announceBlobs(db: Queryable, announcements: readonly BlobAnnouncement[]) {
  const advertiserId = announcements[0]?.claim.advertiserId ?? 0n;
  const toKey = ({ sha256 }: BlobFacts) => toBlobKey(advertiserId, sha256);
  const intended = announcements.map(({ claim, blob }) => ({ ...claim, ...blob, key: toKey(blob) }));
  const rows = await db.query<{ at: number; answer: AnnounceAnswer }>(
    `WITH unhurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), intended AS MATERIALIZED (
       SELECT * FROM unnest($2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::uuid[])
         WITH ORDINALITY AS i (sha256, size_bytes, key, application_id, kind, token, at)
     ), claimed AS (
       UPDATE intake.downloads d SET sha256 = i.sha256 FROM intended i
       WHERE d.advertiser_id = $1 AND d.application_id = ANY ($5::bigint[]) AND d.application_id = i.application_id AND d.kind = i.kind AND d.lease_token = i.token
       RETURNING i.at, i.sha256, i.size_bytes, i.key
     ), announced AS (
       INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state)
       SELECT DISTINCT ON (c.sha256) $1::bigint, c.sha256, c.size_bytes, c.key, 'writing' FROM unhurried, claimed c ORDER BY c.sha256
       ${announceKnown}
     )
     SELECT c.at::int - 1 AS at, a.answer FROM claimed c JOIN announced a USING (sha256)`,
    [advertiserId, ...columnsOf(intended, 'sha256', 'sizeBytes', 'key', 'applicationId', 'kind', 'token')],
  );
  const answers = new Map(rows.map(({ at, answer }) => [at, answer]));
  return announcements.map((_, at) => answers.get(at) ?? 'lost');
}

/** Hashes of announced bytes that nothing refers to any more. They may have been put. */
export async function loadForgotten(db: Queryable, advertiserId: bigint): Promise<string[]> {
  const rows = await db.query<Columns<'blobs', 'sha256'>>(
    `SELECT b.sha256 FROM intake.blobs b WHERE b.state = 'writing' AND ${isOrphan}`,
    [advertiserId],
  );
  return rows.map((row) => row.sha256);
}

// The table of blobs: bytes are announced before they are put, stored once a download is completed, and deleted without a network call
// inside a transaction. A delete takes four steps:
//
//   1. drop     an unreferenced blob becomes `deleting`; an infected one stays `infected`. Nobody holds a token yet.
//   2. begin    one transaction: the row gets a token and the time at which it expires.
//   3. delete   the caller deletes the object. No transaction is open, so no server timeout can release a lock in the middle.
//   4. confirm  one transaction, by the token: sets `deleted_at`. Until a day after the announcement the object is deleted again and again,
//               since a put may end late. Then a `deleting` row goes, unless the store keeps versions: the status tells it until they are gone.
//
// Why this never deletes an object that an attachment refers to. A download announces its bytes before it puts them (`announceBlobs`): one
// statement writes the blob's row and the download's sha256. A prefill does the same. The lock on the row leaves four orders.
//
// - The announcement comes before drop, which locks the row, looks for references in a later statement, and finds it.
// - It comes between drop and begin: it sets the row back to `writing`, and begin no longer chooses it.
// - It comes between begin and confirm: it finds the token and answers `deleting`. Nothing is put; the download waits and asks again.
// - It comes after confirm. The store had answered the delete before confirm, so the put creates a new object.
//
// A flag may be lifted while the infected blob is being deleted. A new announcement waits for confirm; downloads that had announced the same
// bytes before lose their claims (file-states.ts), since their object may be gone. Where a flag comes during a put, the process that
// completes the download clears the token, and the next run deletes again.
//
// The process may die, be paused, or get no answer, and the store deletes later. The token expires 10 s after the longest time that a delete
// may take. Then the next run deletes again, or an announcement takes the row over. The confirm of the first finds that; its caller checks
// whether the object exists, and if not, the files that refer to it are fetched again.
import { hash, randomUUID } from 'node:crypto';
import { type BlobFacts, type Deleted, toBlobKey } from '../../domain/blob.ts';
import { columnsOf, isBefore, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import type { Claim } from './download-queue.ts';

const deleteMs = 20_000;
/** How long a token is valid. The store is assumed not to carry out a delete that was given up, once the token has expired. */
const tokenMs = deleteMs + 10_000;

/** True while a delete of blob `b`'s object may be running. */
const isBeingDeleted = isBefore('b.delete_until', tokenMs);

/** `put` the announced bytes; drop them (`infected`, or the claim is `lost`); or wait: an object of equal bytes is being deleted. */
export type AnnounceAnswer = 'put' | 'infected' | 'lost' | 'deleting';

export interface BlobAnnouncement {
  readonly claim: Claim;
  readonly blob: BlobFacts;
}

/**
 * Locks the applications that have these bytes, now or in an earlier version, and the applications in `more`. Every writer takes these locks
 * before those of blobs, in the order of ids. What is read of the applications afterwards, such as `missing_since`, stays true until COMMIT.
 */
export async function lockHolders(tx: Transaction, advertiserId: bigint, hashes: readonly string[], more?: bigint[]) {
  await tx.query(
    `SELECT 1 FROM intake.applications WHERE advertiser_id = $1 AND application_id IN (
       SELECT application_id FROM intake.attachments WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])
       UNION SELECT application_id FROM intake.attachment_versions WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])
       UNION SELECT unnest($3::bigint[]))
     ORDER BY application_id FOR NO KEY UPDATE`,
    [advertiserId, hashes, more ?? []],
  );
}

/** Announces bytes that have a row `b` already: a delete that nobody carries out any more ends, one that is under way has to end first. */
export const announceKnown = `ON CONFLICT (advertiser_id, sha256) DO UPDATE SET
    intended_at = CASE WHEN b.state = 'infected' THEN b.intended_at ELSE now() END,
    state = CASE WHEN b.state = 'deleting' AND ${isBeingDeleted} IS NOT TRUE THEN 'writing' ELSE b.state END
  RETURNING sha256, CASE WHEN b.state = 'infected' THEN 'infected' WHEN ${isBeingDeleted} THEN 'deleting' ELSE 'put' END AS answer`;

/**
 * Before bytes are put: the store holds no unknown bytes, and the row of the download tells an erasure which are in transfer. The commit does
 * not wait for the disk: a crash of the database may lose an announcement, and verify then finds the bytes in the store.
 */
export async function announceBlobs(db: Queryable, announcements: readonly BlobAnnouncement[]) {
  const advertiserId = announcements[0]?.claim.advertiserId ?? 0n;
  const intended = announcements.map(({ claim, blob }) => {
    return { ...claim, ...blob, key: toBlobKey(advertiserId, blob.sha256) };
  });
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

type DeletableBlob = BlobFacts & { readonly advertiserId: bigint; readonly key: string };
type DeletedBlob = DeletableBlob & Pick<Deleted, 'keptVersions'>;

/**
 * True of a blob `b` that a run has to delete: not yet deleted, or deleted less than a day after it was announced, since a put may have ended
 * later. It is deleted again every 30 s for ten minutes, then ever more rarely. The first line is the condition of the index blobs_to_delete.
 */
const isToBeDeleted = `(b.state = 'infected' AND (b.deleted_at IS NULL OR b.deleted_at - b.intended_at < interval '1 day') OR b.state = 'deleting')
  AND (b.deleted_at IS NULL OR b.deleted_at > now()
    OR b.deleted_at < now() - least(greatest(interval '30 seconds', b.deleted_at - b.intended_at - interval '10 minutes'), interval '6 hours'))`;

/** No delete of it was begun since it is due. Those come first: many that the store refuses would keep others waiting. */
const isUntried = `b.delete_until IS NULL`;

/** True while bytes are left to be deleted, also where another run holds their tokens: it may have failed. */
export async function hasDueDeletes(db: Queryable): Promise<boolean> {
  const rows = await db.query(`SELECT 1 FROM intake.blobs b WHERE ${isToBeDeleted} LIMIT 1`);
  return rows.length > 0;
}

/** Begins to delete what is due, of any advertiser. The caller gives up after `withinMs`, counted from before it asked for the token. */
export async function beginDueDeletes(db: Queryable, limit: number) {
  const token = randomUUID();
  const blobs = await db.query<DeletableBlob>(
    `WITH chosen AS MATERIALIZED (
       SELECT b.advertiser_id, b.sha256 FROM intake.blobs b WHERE ${isToBeDeleted}
         AND (NOT EXISTS (SELECT 1 FROM intake.blobs b WHERE ${isToBeDeleted} AND ${isUntried}) OR ${isUntried})
         AND ${isBeingDeleted} IS NOT TRUE
       LIMIT ${limit} FOR UPDATE SKIP LOCKED)
     UPDATE intake.blobs b SET delete_token = $1::uuid, delete_until = now() + interval '${tokenMs} milliseconds' FROM chosen
     WHERE b.advertiser_id = chosen.advertiser_id AND b.sha256 = chosen.sha256
     RETURNING b.advertiser_id AS "advertiserId", b.sha256, b.size_bytes::float8 AS "sizeBytes", b.key`,
    [token],
  );
  return { token, withinMs: deleteMs, blobs };
}

/** True where an attachment, an earlier version, a prefill or a download that has announced it refers to blob `b`. $1 is the advertiser. */
const inAttachment = `EXISTS (SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = $1 AND a.sha256 = b.sha256)`;
const inVersion = `EXISTS (SELECT 1 FROM intake.attachment_versions v WHERE v.advertiser_id = $1 AND v.sha256 = b.sha256)`;
const inPrefill = `EXISTS (SELECT 1 FROM intake.prefills p WHERE p.advertiser_id = $1 AND p.resume_sha256 = b.sha256)`;
const inDownload = `EXISTS (SELECT 1 FROM intake.downloads d WHERE d.advertiser_id = $1 AND d.sha256 = b.sha256)`;
/** True of an orphan: nothing refers to it, and it is neither infected nor being deleted. Written so that Postgres can use anti-joins. */
export const isOrphan = `b.advertiser_id = $1 AND b.state NOT IN ('infected', 'deleting') AND NOT ${inAttachment} AND NOT ${inVersion} AND NOT ${inPrefill} AND NOT ${inDownload}`;

/** Hashes of announced bytes that nothing refers to any more. They may have been put. */
export async function loadForgotten(db: Queryable, advertiserId: bigint): Promise<string[]> {
  const rows = await db.query<Columns<'blobs', 'sha256'>>(
    `SELECT b.sha256 FROM intake.blobs b WHERE b.state = 'writing' AND ${isOrphan}`,
    [advertiserId],
  );
  return rows.map((row) => row.sha256);
}

/** Leaves an object that earlier releases kept under another key to `beginDueDeletes`, with the key's sha256 in place of its own. */
export async function dropEarlierResume(db: Queryable, advertiserId: bigint, key: string): Promise<number> {
  const rows = await db.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, delete_token, intended_at)
     VALUES ($1, $2, 0, $3, 'deleting', gen_random_uuid(), to_timestamp(0)) ON CONFLICT DO NOTHING RETURNING 1`,
    [advertiserId, hash('sha256', key), key],
  );
  return rows.length;
}

/**
 * Leaves bytes that nothing refers to to `beginDueDeletes`; returns how many stay. A missing row is inserted, so that nobody puts the bytes
 * meanwhile; an infected one stays known. A run that is deleting one loses its token: it may be too early for a put.
 */
export async function dropUnneeded(tx: Transaction, advertiserId: bigint, unsorted: readonly string[]) {
  const hashes = [...new Set(unsorted)].toSorted();
  await tx.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state)
     SELECT $1, b.sha256, 0, b.key, 'damaged' FROM unnest($2::text[], $3::text[]) AS b (sha256, key) ON CONFLICT DO NOTHING`,
    [advertiserId, hashes, hashes.map((sha256) => toBlobKey(advertiserId, sha256))],
  );
  await tx.query(
    `SELECT 1 FROM intake.blobs WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) ORDER BY sha256 FOR UPDATE`,
    [advertiserId, hashes],
  );
  // A separate statement: one that also takes the lock would not see what was committed while it waited for the lock.
  const needed = await tx.query<Columns<'blobs', 'sha256'>>(
    `SELECT sha256 FROM intake.blobs b WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state <> 'infected'
       AND (${inAttachment} OR ${inVersion} OR ${inPrefill} OR ${inDownload})`,
    [advertiserId, hashes],
  );
  await tx.query(
    `UPDATE intake.blobs b SET state = CASE WHEN b.state = 'infected' THEN b.state ELSE 'deleting' END, delete_token = gen_random_uuid(),
       deleted_at = NULL WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND sha256 <> ALL ($3::text[])`,
    [advertiserId, hashes, needed.map((row) => row.sha256)],
  );
  return needed.length;
}

/** How many of these bytes are still to be deleted, and how many versions the store keeps of the others. */
export async function loadLeft(db: Queryable, advertiserId: bigint, hashes: readonly string[]) {
  const [row] = await db.query<{ left: number; keptVersions: number }>(
    `SELECT (count(*) FILTER (WHERE deleted_at IS NULL))::int AS left, coalesce(sum(kept_versions), 0)::int AS "keptVersions"
     FROM intake.blobs WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state IN ('infected', 'deleting')`,
    [advertiserId, hashes],
  );
  return row ?? { left: 0, keptVersions: 0 };
}

/** True of a deleted blob `b` that no announced put can bring back, and of which the store keeps no version. */
const isOver = `(d.kept = 0 AND b.intended_at < now() - interval '1 day')`;

/** Returns the blobs whose token this run has lost, and those that were flagged meanwhile: the next run deletes them again. */
export async function confirmDeletion(db: Queryable, token: string, deleted: readonly DeletedBlob[]) {
  const rows = await db.query<Columns<'blobs', 'advertiser_id' | 'sha256'>>(
    `WITH d AS MATERIALIZED (
       SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[]) AS d (advertiser_id, sha256, kept)
     ), gone AS (
       DELETE FROM intake.blobs b USING d
       WHERE b.advertiser_id = d.advertiser_id AND b.sha256 = d.sha256 AND b.delete_token = $4 AND b.state = 'deleting' AND ${isOver}
       RETURNING b.advertiser_id, b.sha256
     ), emptied AS (
       UPDATE intake.blobs b SET delete_until = NULL, deleted_at = now(), kept_versions = d.kept FROM d
       WHERE b.advertiser_id = d.advertiser_id AND b.sha256 = d.sha256 AND (b.state <> 'deleting' OR NOT ${isOver})
         AND b.delete_token = $4 AND (b.state = 'infected' OR ${isBeingDeleted})
       RETURNING b.advertiser_id, b.sha256
     )
     SELECT * FROM gone UNION ALL SELECT * FROM emptied`,
    [...columnsOf(deleted, 'advertiserId', 'sha256', 'keptVersions'), token],
  );
  const confirmed = new Set(rows.map((row) => `${row.advertiser_id} ${row.sha256}`));
  return deleted.filter((blob) => !confirmed.has(`${blob.advertiserId} ${blob.sha256}`));
}

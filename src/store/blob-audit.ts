// The statements of verify: the books of an advertiser's blobs in the order of their keys, what is done about damage, and the collection
// of bytes that nothing refers to, in two phases with a grace between. A row is locked while its bytes are deleted, so that nobody can
// announce them again at that moment.
import { type BlobFacts, toBlobKey } from '../domain/blob.ts';
import { type Database, type Queryable, untilSettled } from './database.ts';
import { reopenAttachments } from './ready.ts';

/** A blob as the books have it. */
export interface BookedBlob extends BlobFacts {
  readonly key: string;
  readonly state: 'writing' | 'stored' | 'damaged' | 'condemned';
}

const pageSize = 1_000;

/** An advertiser's blobs in the order of their keys. */
export async function* loadBlobs(db: Queryable, advertiserId: bigint): AsyncGenerator<BookedBlob> {
  for (let after = ''; ; ) {
    const rows = await db.query<{ sha256: string; size_bytes: bigint; key: string; state: BookedBlob['state'] }>(
      `SELECT sha256, size_bytes, key, state FROM intake.blobs
       WHERE advertiser_id = $1 AND sha256 > $2 ORDER BY sha256 LIMIT ${pageSize}`,
      [advertiserId, after],
    );
    for (const row of rows) {
      yield { sha256: row.sha256, sizeBytes: Number(row.size_bytes), key: row.key, state: row.state };
      after = row.sha256;
    }
    if (rows.length < pageSize) return;
  }
}

/** Books that the store was just proven to hold these bytes. */
export async function markVerified(db: Queryable, advertiserId: bigint, hashes: readonly string[]): Promise<void> {
  await db.query(
    `UPDATE intake.blobs SET verified_at = now() WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state = 'stored'`,
    [advertiserId, hashes],
  );
}

/**
 * Books lost bytes: what refers to them now is fetched again; of earlier versions the source has no copy, and they are missing. Null when
 * nobody has to hold them any more: they were erased or condemned since the caller read their row.
 */
export async function markDamaged(
  db: Database,
  advertiserId: bigint,
  sha256: string,
): Promise<{ readonly requeued: number; readonly lost: number } | null> {
  return await db.transaction(async (tx) => {
    const [blob] = await tx.query<{ state: BookedBlob['state'] }>(
      `SELECT state FROM intake.blobs WHERE advertiser_id = $1 AND sha256 = $2 FOR NO KEY UPDATE`,
      [advertiserId, sha256],
    );
    // Another verify was there first.
    if (blob?.state === 'damaged') return { requeued: 0, lost: 0 };
    if (blob?.state !== 'stored') return null;
    await tx.query(`UPDATE intake.blobs SET state = 'damaged' WHERE advertiser_id = $1 AND sha256 = $2`, [
      advertiserId,
      sha256,
    ]);
    const lost = await tx.query(
      `UPDATE intake.attachment_versions SET state = 'missing', reason = 'the stored bytes were lost'
       WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored' RETURNING 1`,
      [advertiserId, sha256],
    );
    const held = await tx.query<{ application_id: bigint; kind: string }>(
      `SELECT application_id, kind FROM intake.attachments WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored'`,
      [advertiserId, sha256],
    );
    await reopenAttachments(
      tx,
      advertiserId,
      held.map((row) => ({ applicationId: row.application_id, kind: row.kind })),
    );
    return { requeued: held.length, lost: lost.length };
  });
}

/** True of a blob `b` whose bytes were lost and whose files have no others yet. Lost bytes of an earlier version have no way back. */
export const isUnrepaired = `b.state = 'damaged'
  AND EXISTS (SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = b.advertiser_id AND a.sha256 = b.sha256)`;

/** How many blobs of an advertiser were found missing or damaged and are not replaced yet. */
export async function loadUnrepaired(db: Queryable, advertiserId: bigint): Promise<number> {
  const [row] = await db.query<{ unrepaired: number }>(
    `SELECT count(*)::int AS unrepaired FROM intake.blobs b WHERE b.advertiser_id = $1 AND ${isUnrepaired}`,
    [advertiserId],
  );
  return row?.unrepaired ?? 0;
}

/** Condemned bytes that were found in the store are to be deleted once more. */
export async function markUnemptied(db: Queryable, advertiserId: bigint, sha256: string): Promise<void> {
  await db.query(
    `UPDATE intake.blobs SET emptied_at = NULL WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'condemned'`,
    [advertiserId, sha256],
  );
}

/** Takes bytes into the books that lie in the store and that nobody announced, as orphans. False when they were announced meanwhile. */
export async function adoptBlob(db: Queryable, advertiserId: bigint, blob: BlobFacts): Promise<boolean> {
  const rows = await db.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, orphaned_at)
     VALUES ($1, $2, $3, $4, 'damaged', now()) ON CONFLICT DO NOTHING RETURNING 1`,
    [advertiserId, blob.sha256, blob.sizeBytes, toBlobKey(advertiserId, blob.sha256)],
  );
  return rows.length > 0;
}

const isUnreferenced = `b.advertiser_id = $1 AND b.state <> 'condemned'
  AND NOT EXISTS (SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = $1 AND a.sha256 = b.sha256)
  AND NOT EXISTS (SELECT 1 FROM intake.attachment_versions v WHERE v.advertiser_id = $1 AND v.sha256 = b.sha256)`;

/** First phase: marks what nothing refers to and nobody has announced for a while. Returns all that are marked now, of how many. */
export async function markOrphans(
  db: Queryable,
  advertiserId: bigint,
  restMs: number,
): Promise<{ readonly orphans: number; readonly blobs: number }> {
  await db.query(
    `UPDATE intake.blobs b SET orphaned_at = now()
     WHERE ${isUnreferenced} AND b.orphaned_at IS NULL AND b.intended_at < now() - $2 * interval '1 millisecond'`,
    [advertiserId, restMs],
  );
  const [row] = await db.query<{ orphans: bigint; blobs: bigint }>(
    `SELECT count(*) FILTER (WHERE orphaned_at IS NOT NULL) AS orphans, count(*) AS blobs
     FROM intake.blobs WHERE advertiser_id = $1`,
    [advertiserId],
  );
  return { orphans: Number(row?.orphans ?? 0), blobs: Number(row?.blobs ?? 0) };
}

/** Second phase: deletes what has been an orphan for the grace and still is. `remove` deletes the bytes while the rows are locked. */
export async function collectOrphans(
  db: Database,
  advertiserId: bigint,
  graceMs: number,
  remove: (keys: readonly string[]) => Promise<void>,
): Promise<number> {
  for (let collected = 0; ; ) {
    const count = await db.transaction(async (tx) => {
      const rows = await tx.query<{ sha256: string; key: string }>(
        `SELECT sha256, key FROM intake.blobs b
         WHERE ${isUnreferenced} AND b.orphaned_at < now() - $2 * interval '1 millisecond'
           AND b.intended_at < now() - $2 * interval '1 millisecond'
         ORDER BY b.orphaned_at LIMIT 100 FOR UPDATE SKIP LOCKED`,
        [advertiserId, graceMs],
      );
      if (rows.length === 0) return 0;
      await remove(rows.map((row) => row.key));
      await tx.query(`DELETE FROM intake.blobs WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])`, [
        advertiserId,
        rows.map((row) => row.sha256),
      ]);
      return rows.length;
    });
    if (count === 0) return collected;
    collected += count;
  }
}

/**
 * Deletes bytes at once that nobody refers to and nobody is about to put; gives back the hashes of those that others still need.
 * Rows that are no more are made for the moment, so that nobody can announce the same bytes while they are deleted.
 */
export async function dropBlobs(
  db: Database,
  advertiserId: bigint,
  hashes: readonly string[],
  remove: (keys: readonly string[]) => Promise<void>,
): Promise<string[]> {
  const needed: string[] = [];
  const sorted = hashes.toSorted();
  for (let at = 0; at < sorted.length; at += 100) {
    const some = sorted.slice(at, at + 100);
    needed.push(...(await untilSettled(() => db.transaction((tx) => dropSome(tx, advertiserId, some, remove)))));
  }
  return needed;
}

async function dropSome(
  tx: Queryable,
  advertiserId: bigint,
  hashes: readonly string[],
  remove: (keys: readonly string[]) => Promise<void>,
): Promise<string[]> {
  const keys = hashes.map((sha256) => toBlobKey(advertiserId, sha256));
  await tx.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state)
     SELECT $1, b.sha256, 0, b.key, 'damaged' FROM unnest($2::text[], $3::text[]) AS b (sha256, key) ON CONFLICT DO NOTHING`,
    [advertiserId, hashes, keys],
  );
  await tx.query(
    `SELECT 1 FROM intake.blobs WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) ORDER BY sha256 FOR UPDATE`,
    [advertiserId, hashes],
  );
  // A statement of its own: a look taken together with the lock would not see what was committed while the lock was waited for.
  const rows = await tx.query<{ sha256: string; key: string; state: string; needed: boolean }>(
    `SELECT sha256, key, state, EXISTS (SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = $1 AND a.sha256 = b.sha256)
       OR EXISTS (SELECT 1 FROM intake.attachment_versions v WHERE v.advertiser_id = $1 AND v.sha256 = b.sha256)
       OR EXISTS (SELECT 1 FROM intake.downloads d WHERE d.advertiser_id = $1 AND d.sha256 = b.sha256) AS needed
     FROM intake.blobs b WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])`,
    [advertiserId, hashes],
  );
  const free = rows.filter((row) => !row.needed && row.state !== 'condemned');
  const condemned = rows.filter((row) => row.state === 'condemned');
  // A condemned blob keeps its row, by which the same bytes are known again; what is put after this goes with the next drain.
  await tx.query(
    `UPDATE intake.blobs SET emptied_at = NULL WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state = 'condemned'`,
    [advertiserId, hashes],
  );
  await remove([...free, ...condemned].map((row) => row.key));
  await tx.query(`DELETE FROM intake.blobs WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])`, [
    advertiserId,
    free.map((row) => row.sha256),
  ]);
  return rows.filter((row) => row.needed).map((row) => row.sha256);
}

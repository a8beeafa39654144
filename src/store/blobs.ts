// The books of the bytes we hold: announced before they are written, proven when an attachment refers to them, condemned, damaged or
// orphaned. And which store they lie in: the one that was used first, and no other. Knows no store, only what is said of it.
import type { BlobFacts } from '../domain/blob.ts';
import { WrongStore } from '../domain/trouble.ts';
import type { Database, Queryable } from './database.ts';

/**
 * Announces bytes of one advertiser before they are put, so that none can lie in the store unknown. False: they are condemned and must
 * not be put. Not waited for on the platter: a crash of the database may forget it, and verify then finds the bytes from the other side.
 */
export async function intendBlobs(
  db: Queryable,
  blobs: readonly BlobIntent[],
): Promise<readonly PromiseSettledResult<boolean>[]> {
  const rows = await db.query<{ sha256: string; state: string }>(
    `WITH unhurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
     INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state)
     SELECT DISTINCT ON (i.sha256) $1, i.sha256, i.size_bytes, i.key, 'writing'
     FROM unhurried, unnest($2::text[], $3::bigint[], $4::text[]) AS i (sha256, size_bytes, key) ORDER BY i.sha256
     ON CONFLICT (advertiser_id, sha256) DO UPDATE SET intended_at = now(), orphaned_at = NULL
     RETURNING sha256, state`,
    [
      blobs[0]?.advertiserId,
      blobs.map((blob) => blob.sha256),
      blobs.map((blob) => blob.sizeBytes),
      blobs.map((blob) => blob.key),
    ],
  );
  const condemned = new Set(rows.filter((row) => row.state === 'condemned').map((row) => row.sha256));
  return blobs.map((blob) => ({ status: 'fulfilled', value: !condemned.has(blob.sha256) }));
}

export interface BlobIntent extends BlobFacts {
  readonly advertiserId: bigint;
  readonly key: string;
}

/**
 * Deletes the bytes of condemned blobs and books it; returns how many. `remove` works while the rows are locked: a flag that is lifted at
 * that moment waits, or the bytes would be fetched anew and found in place just before they go. A crash in between deletes once more.
 */
export async function emptyCondemned(
  db: Database,
  advertisers: readonly bigint[],
  remove: (keys: readonly string[]) => Promise<void>,
): Promise<number> {
  for (let emptied = 0; ; ) {
    const count = await db.transaction(async (tx) => {
      const rows = await tx.query<{ advertiser_id: bigint; sha256: string; key: string }>(
        `SELECT advertiser_id, sha256, key FROM intake.blobs
         WHERE advertiser_id = ANY ($1::bigint[]) AND state = 'condemned' AND emptied_at IS NULL LIMIT 100 FOR UPDATE SKIP LOCKED`,
        [advertisers],
      );
      if (rows.length === 0) return 0;
      await remove(rows.map((row) => row.key));
      await tx.query(
        `UPDATE intake.blobs b SET emptied_at = now() FROM unnest($1::bigint[], $2::text[]) AS e (advertiser_id, sha256)
         WHERE b.advertiser_id = e.advertiser_id AND b.sha256 = e.sha256`,
        [rows.map((row) => row.advertiser_id), rows.map((row) => row.sha256)],
      );
      return rows.length;
    });
    if (count === 0) return emptied;
    emptied += count;
  }
}

/** Remembers the store at its first use; any other one, later, is refused: a wrong bucket must not read as a million lost files. */
export async function pinBlobStore(db: Queryable, identity: string, location: string): Promise<void> {
  await db.query(
    `INSERT INTO intake.blob_store (identity, location) SELECT $1, $2
     WHERE NOT EXISTS (SELECT 1 FROM intake.blob_store) ON CONFLICT DO NOTHING`,
    [identity, location],
  );
  const pinned = await loadBlobStore(db);
  if (pinned?.identity !== identity) {
    throw new WrongStore(
      `The blobs of this database lie at ${pinned?.location}; ${location} is another store. Nothing was read or written there.`,
    );
  }
}

/** The store that was first used, if any was. */
export async function loadBlobStore(db: Queryable): Promise<{ identity: string; location: string } | null> {
  const [row] = await db.query<{ identity: string; location: string }>(
    `SELECT identity, location FROM intake.blob_store`,
  );
  return row ?? null;
}

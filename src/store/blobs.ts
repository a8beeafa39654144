// The books of the bytes we hold: announced before they are written, proven when an attachment refers to them, condemned, damaged or
// orphaned. And which store they lie in: the one that was used first, and no other. Knows no store, only what is said of it.
import type { BlobFacts } from '../domain/blob.ts';
import { WrongStore } from '../domain/trouble.ts';
import type { Queryable } from './database.ts';
import type { Claim } from './downloads.ts';

/** What may be done with announced bytes: put them, nothing (condemned), or nothing because the claim is not ours any more. */
export type Intent = 'put' | 'condemned' | 'lost';

/**
 * Announces bytes before they are put, so that none can lie in the store unknown: in the books of blobs, and on the download they are
 * put for, so that whoever erases its person knows what is on its way. Not waited for on the platter: a crash of the database may
 * forget it, and verify then finds the bytes from the other side.
 */
export async function intendBlob(
  db: Queryable,
  { advertiserId, applicationId, kind, token }: Claim,
  blob: BlobFacts & { readonly key: string },
): Promise<Intent> {
  const rows = await db.query<{ state: string }>(
    `WITH unhurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), claim AS (
       UPDATE intake.downloads SET sha256 = $2
       WHERE advertiser_id = $1 AND application_id = $5 AND kind = $6 AND lease_token = $7 RETURNING 1
     )
     INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state)
     SELECT $1, $2, $3, $4, 'writing' FROM unhurried, claim
     ON CONFLICT (advertiser_id, sha256) DO UPDATE SET intended_at = now(), orphaned_at = NULL
     RETURNING state`,
    [advertiserId, blob.sha256, blob.sizeBytes, blob.key, applicationId, kind, token],
  );
  const [row] = rows;
  return row === undefined ? 'lost' : row.state === 'condemned' ? 'condemned' : 'put';
}

/** Condemned blobs whose bytes may still be in the store. */
export async function loadCondemned(
  db: Queryable,
  advertisers: readonly bigint[],
): Promise<{ advertiserId: bigint; sha256: string; key: string }[]> {
  const rows = await db.query<{ advertiser_id: bigint; sha256: string; key: string }>(
    `SELECT advertiser_id, sha256, key FROM intake.blobs
     WHERE advertiser_id = ANY ($1::bigint[]) AND state = 'condemned' AND emptied_at IS NULL LIMIT 1000`,
    [advertisers],
  );
  return rows.map((row) => ({ advertiserId: row.advertiser_id, sha256: row.sha256, key: row.key }));
}

/** Books that condemned bytes are deleted. */
export async function markEmptied(
  db: Queryable,
  blobs: readonly { readonly advertiserId: bigint; readonly sha256: string }[],
): Promise<void> {
  await db.query(
    `UPDATE intake.blobs b SET emptied_at = now() FROM unnest($1::bigint[], $2::text[]) AS e (advertiser_id, sha256)
     WHERE b.advertiser_id = e.advertiser_id AND b.sha256 = e.sha256 AND b.state = 'condemned'`,
    [blobs.map((b) => b.advertiserId), blobs.map((b) => b.sha256)],
  );
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

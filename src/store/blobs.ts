// The books of the bytes we hold: announced before they are written, proven when an attachment refers to them, condemned, damaged or
// orphaned. And which store they lie in: the one that was used first, and no other. Knows no store, only what is said of it.
import type { BlobFacts } from '../domain/blob.ts';
import { WrongStore } from '../domain/trouble.ts';
import type { Database, Queryable } from './database.ts';
import type { Claim } from './downloads.ts';

/** What may be done with announced bytes: put them, nothing (condemned), or nothing because the claim is not ours any more. */
export type Intent = 'put' | 'condemned' | 'lost';

export interface BlobIntent {
  readonly claim: Claim;
  readonly blob: BlobFacts & { readonly key: string };
}

/**
 * Announces bytes of one advertiser before they are put, so that none can lie in the store unknown: in the books of blobs, and on the
 * downloads they are put for, so that whoever erases their person knows what is on its way. Not waited for on the platter: a crash of
 * the database may forget it, and verify then finds the bytes from the other side.
 */
export async function intendBlobs(
  db: Queryable,
  intents: readonly BlobIntent[],
): Promise<readonly PromiseSettledResult<Intent>[]> {
  const rows = await db.query<{ at: number; state: string }>(
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
       ON CONFLICT (advertiser_id, sha256) DO UPDATE SET intended_at = now(), orphaned_at = NULL
       RETURNING sha256, state
     )
     SELECT c.at::int - 1 AS at, a.state FROM claimed c JOIN announced a USING (sha256)`,
    [
      intents[0]?.claim.advertiserId,
      intents.map(({ blob }) => blob.sha256),
      intents.map(({ blob }) => blob.sizeBytes),
      intents.map(({ blob }) => blob.key),
      intents.map(({ claim }) => claim.applicationId),
      intents.map(({ claim }) => claim.kind),
      intents.map(({ claim }) => claim.token),
    ],
  );
  const states = new Map(rows.map((row) => [row.at, row.state]));
  return intents.map((_, at) => {
    const state = states.get(at);
    return { status: 'fulfilled', value: state === undefined ? 'lost' : state === 'condemned' ? 'condemned' : 'put' };
  });
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

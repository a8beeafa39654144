// The id of this database and the identity of the blob store that it owns: one row. A process that takes a store writes the identity here
// first, then into the store, then confirms it. After a crash in between, the next process finishes.
import type { RecordedStore } from '../../domain/store-owner.ts';
import { type Queryable, sqlState } from '../postgres/database.ts';

/** The number of the cluster, where anybody may read it: every role then sees the same one. */
const cluster = `CASE WHEN has_function_privilege('public', 'pg_control_system()', 'EXECUTE')
  THEN (SELECT system_identifier || '.' FROM pg_control_system()) ELSE '' END`;

const select = (where: string) =>
  `SELECT database_id || '@' || ${where} || d.oid AS "databaseId", identity, next_identity AS "nextIdentity", location
   FROM intake.blob_store, pg_database d WHERE d.datname = current_database()`;

/** Null where this database has met no store yet. Its id says where it lives: a copy has another, a promoted replica not. */
export async function loadRecordedStore(db: Queryable): Promise<RecordedStore | null> {
  const rows = db.query<RecordedStore>(select(cluster)).catch((error: unknown) => {
    // The server does not let this role call that function, or has none.
    if (!/^42(?:501|883)$/.test(sqlState(error) ?? '')) throw error;
    return db.query<RecordedStore>(select(`''`));
  });
  return (await rows)[0] ?? null;
}

/** What is recorded. The id of the database is made here, at the first use of a store, so that copies of an unused database differ. */
export async function ensureRecordedStore(db: Queryable): Promise<RecordedStore> {
  for (;;) {
    const recorded = await loadRecordedStore(db);
    if (recorded !== null) return recorded;
    await db.query(`INSERT INTO intake.blob_store DEFAULT VALUES ON CONFLICT DO NOTHING`);
  }
}

/** Records the identity that is about to be written into the store, in place of an earlier plan. False if another process was first. */
export async function planIdentity(db: Queryable, before: string | null, identity: string): Promise<boolean> {
  const rows = await db.query(
    `UPDATE intake.blob_store SET next_identity = $2 WHERE next_identity IS NOT DISTINCT FROM $1 RETURNING 1`,
    [before, identity],
  );
  return rows.length > 0;
}

/** Records that the store has this identity. Does nothing if another process has confirmed it, or plans a later one. */
export async function confirmIdentity(db: Queryable, identity: string, location: string): Promise<void> {
  await db.query(
    `UPDATE intake.blob_store SET identity = next_identity, next_identity = NULL, location = $2, pinned_at = now()
     WHERE next_identity = $1`,
    [identity, location],
  );
}

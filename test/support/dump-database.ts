// A database as SQL, without pg_dump, which no package brings: the migrations that made it, then its rows and sequences. A dump of an earlier
// release stays a fixture after its migrations have become part of a baseline.
import { readFileSync } from 'node:fs';
import { openTestDatabase, type TestDatabase } from './test-database.ts';

/** Renders a database whose migrations are in the folder. */
export async function renderDump({ query }: TestDatabase, folder = 'migrations'): Promise<string> {
  const { entries } = JSON.parse(readFileSync(`${folder}/meta/_journal.json`, 'utf8')) as {
    entries: readonly { readonly tag: string; readonly when: number }[];
  };
  const applied = await query<{ at: string }>(`SELECT created_at::text AS at FROM intake.migrations ORDER BY 1`);
  const files = applied.map(({ at }) => entries.find(({ when }) => String(when) === at)?.tag ?? `unknown-${at}`);
  const tables = await query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'intake'::regnamespace AND relkind = 'r' ORDER BY 1`,
  );
  const rows: string[] = [];
  for (const { name } of tables) {
    // As text from the server: no number passes through JavaScript.
    const [held] = await query<{ rows: string | null }>(`SELECT jsonb_agg(to_jsonb(t))::text AS rows FROM ${name} t`);
    if (held?.rows)
      rows.push(`INSERT INTO ${name} OVERRIDING SYSTEM VALUE
      SELECT * FROM jsonb_populate_recordset(NULL::${name}, '${held.rows.replaceAll("'", "''")}');`);
  }
  const sequences = await query<{ sql: string }>(
    `SELECT format('SELECT setval(%L, %s);', schemaname || '.' || sequencename, last_value) AS sql
     FROM pg_sequences WHERE schemaname = 'intake' AND last_value IS NOT NULL`,
  );
  return [
    'CREATE SCHEMA intake;',
    'CREATE TABLE intake.migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint);',
    ...files.map((tag) => readFileSync(`${folder}/${tag}.sql`, 'utf8')),
    // Without triggers: what they would write is among the rows, and the order of tables does not matter.
    'SET session_replication_role = replica;',
    'DELETE FROM intake.migrations;',
    ...rows,
    'SET session_replication_role = DEFAULT;',
    ...sequences.map(({ sql }) => sql),
  ].join('\n');
}

/** A database with what was dumped. */
export async function openRestored(dump: string): Promise<TestDatabase> {
  const restored = await openTestDatabase();
  await restored.query(`DROP SCHEMA intake, intake_analytics CASCADE`);
  await restored.query(dump);
  return restored;
}

// The tables of src/store/schema, from which row types come, against the migrations that make the tables of a database.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DrizzleSnapshotJSON, generateDrizzleJson, generateMigration } from 'drizzle-kit/api';
import { describe, expect } from 'vitest';
import { openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';

const root = join(import.meta.dirname, '../../..');

/** Indexes for the views of intake_analytics: the migration has them as SQL, beside the views. */
const undescribed =
  /^CREATE INDEX (?:applications_job|applications_local_day|applications_person|attachments_problems) /;

describe('the tables of drizzle', () => {
  test('need no other migration than those that are there', async () => {
    const snapshots = globSync('migrations/meta/*_snapshot.json', { cwd: root }).toSorted();
    const newest = JSON.parse(readFileSync(join(root, snapshots.at(-1) ?? ''), 'utf8')) as DrizzleSnapshotJSON;
    expect(
      await generateMigration(newest, await loadTables()),
      'src/store/schema is ahead of migrations/: npx drizzle-kit generate --name what_it_is',
    ).toEqual([]);
  });

  test('are those of a migrated database: columns, keys, checks, indexes and sequences', async ({ database }) => {
    await using made = await openTestDatabase();
    await made.query('DROP SCHEMA intake, intake_analytics CASCADE');
    for (const statement of await generateMigration(generateDrizzleJson({}), await loadTables())) {
      await made.query(statement);
    }
    const [migrated, described] = [await loadCatalog(database), await loadCatalog(made)];
    expect(described.length).toBeGreaterThan(300);
    expect(migrated.filter((line) => !undescribed.test(line))).toEqual(described);
    expect(migrated.filter((line) => undescribed.test(line))).toHaveLength(4);
  });
});

async function loadTables(): Promise<DrizzleSnapshotJSON> {
  const files = globSync('src/store/schema/*.ts', { cwd: root });
  const modules = await Promise.all(files.map(async (file) => (await import(join(root, file))) as object));
  return generateDrizzleJson(Object.assign({}, ...modules) as Record<string, unknown>, undefined, ['intake']);
}

/** One line for each part of the schema intake. The table `migrations` is the migrator's own. */
async function loadCatalog(database: TestDatabase): Promise<string[]> {
  const rows = await database.query<{ line: string }>(
    `WITH tables AS (
       SELECT oid, relname FROM pg_class
       WHERE relnamespace = 'intake'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'migrations'
     )
     SELECT concat_ws(' ', t.relname, a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
       nullif(a.attidentity, ''), 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid)) AS line
     FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
     LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
     UNION ALL
     SELECT concat_ws(' ', t.relname, c.conname, pg_get_constraintdef(c.oid)) FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid
     UNION ALL
     SELECT pg_get_indexdef(i.indexrelid) FROM tables t JOIN pg_index i ON i.indrelid = t.oid
     UNION ALL
     SELECT concat_ws(' ', s.sequencename, s.data_type, s.start_value, s.increment_by, s.max_value, s.cache_size, s.cycle)
     FROM pg_sequences s WHERE s.schemaname = 'intake' AND s.sequencename <> 'migrations_id_seq'
     ORDER BY 1`,
  );
  return rows.map(({ line }) => line);
}

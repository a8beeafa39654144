// Upgrades: every migration is applied to data that was written before it, and a version that meets a newer schema stops with one line.
import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { loadSchema, migrate } from '../../../src/store/postgres/migrations.ts';
import { copyDatabase, openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { runIntake } from '../../support/processes/intake.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openSmallIntake } from '../../support/small-intake.ts';

const { entries } = JSON.parse(readFileSync('migrations/meta/_journal.json', 'utf8')) as {
  entries: readonly { readonly tag: string; readonly when: number }[];
};

/** Tables that a sync fills, whatever the order in which its files come. */
const filled = [
  ...['advertisers', 'applications', 'attachments', 'attachment_versions', 'blobs', 'coverage', 'cursors', 'downloads'],
  ...[
    'events',
    'leases',
    'primary_job_seeking_info',
    'quarantine',
    'screens',
    'screen_answers',
    'screen_questions',
    'sweeps',
  ],
];

describe('migrations', () => {
  test('keep every row that was written before, from any of them on', { tags: ['slow'] }, async ({ database }) => {
    // Every table that a sync fills holds something: applications, files and their versions, the queue, screens, quarantine, events, sweeps.
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
    intake.board.fault({ kind: 'poison', on: 'list', json: '{"ID": null}' });
    await intake.sweep();
    await intake.runDownloads();
    const [first] = [...intake.board.truth()].map(({ id }) => id);
    const newer = [{ kind: 'resume', content: 'a newer resume', uploadedAt: Date.now() }];
    intake.board.change(first as bigint, { attachments: newer });
    await intake.sweep(true);
    await using bare = await openBare();
    for (const { tag, when } of entries) {
      await step(bare, tag, when);
      await using older = await copyDatabase(bare);
      const before = await fillFrom(older, database);
      expect(Number(before.applications)).toBe(12);
      expect(filled.filter((table) => before[table] === 0)).toEqual([]);
      await migrate(older.url);
      {
        await using db = openDatabase({ url: older.url, role: 'test' });
        expect((await loadSchema(db)).state).toBe('current');
      }
      // A table without rows may have been dropped.
      const kept = Object.entries(before).filter(([, count]) => count > 0);
      for (const [table, count] of kept) expect(await countOf(older, table), table).toBe(count);
      // Every view still answers over old rows.
      const views = await older.query<{ view: string }>(
        `SELECT format('%I.%I', table_schema, table_name) AS view FROM information_schema.views WHERE table_schema LIKE 'intake%'`,
      );
      for (const { view } of views) await older.query(`SELECT * FROM ${view}`);
    }
  });

  test('rise in time, so that none is skipped', () => {
    const times = entries.map(({ when }) => when);
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
  });

  test('that break an older version stop its worker with one line and exit code 7', { tags: ['slow'] }, async () => {
    await using newer = await openTestDatabase();
    await newer.query(`INSERT INTO intake.migrations (hash, created_at, lowest) VALUES ('x', 9999999999999, '99.0.0')`);
    const env = { ...toEnvironment(newer, { url: 'http://127.0.0.1:1', credential: 'x' }), LOG_FORMAT: 'json' };
    const { code, stderr } = await runIntake(['worker'], env);
    expect(code).toBe(7);
    expect(stderr).toMatch(
      /\n?The database was migrated by a newer version of Intake, and this one may no longer use it\.\n {2}Kept: .+\n {2}Next: .+\n$/,
    );
  });
});

/** A database before the first migration. */
async function openBare(): Promise<TestDatabase> {
  const bare = await openTestDatabase();
  // The migrator's own table is there before the first of them.
  await bare.query(
    `DROP SCHEMA intake CASCADE; DROP SCHEMA intake_analytics CASCADE; CREATE SCHEMA intake;
     CREATE TABLE intake.migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)`,
  );
  return bare;
}

async function step(database: TestDatabase, tag: string, when: number): Promise<void> {
  await database.query(`INSERT INTO intake.migrations (hash, created_at) VALUES ('earlier', ${when})`);
  for (const statement of readFileSync(`migrations/${tag}.sql`, 'utf8').split('--> statement-breakpoint')) {
    await database.query(statement);
  }
}

/** Copies what both schemas have in common; answers how many rows each table then holds. */
async function fillFrom(older: TestDatabase, newer: TestDatabase): Promise<Record<string, number>> {
  const tables = await older.query<{ table: string; columns: string[] }>(
    `SELECT c.table_name AS table, array_agg(c.column_name::text) AS columns FROM information_schema.columns c
     JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = 'intake' AND t.table_type = 'BASE TABLE' AND c.table_name <> 'migrations' GROUP BY 1`,
  );
  const counts: Record<string, number> = {};
  for (const { table, columns } of tables) {
    // Evidence of the earlier format is dropped by the migration.
    if (table === 'evidence' && !columns.includes('line')) continue;
    const rows = await newer
      .query<{ row: unknown }>(`SELECT to_jsonb(t) AS row FROM intake.${table} AS t`)
      .catch(() => []);
    // Without the foreign keys' triggers the order of tables does not matter; the rows hold together as they did.
    await older.query(
      `DO $$ BEGIN SET LOCAL session_replication_role = replica;
       INSERT INTO intake.${table} OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_recordset(NULL::intake.${table}, '${JSON.stringify(rows.map(({ row }) => row)).replaceAll("'", "''")}');
       END $$`,
    );
    counts[table] = await countOf(older, table);
  }
  return counts;
}

async function countOf(database: TestDatabase, table: string): Promise<number> {
  const [row] = await database.query<{ n: number }>(`SELECT count(*)::int AS n FROM intake.${table}`);
  return row?.n ?? -1;
}

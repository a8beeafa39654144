// Upgrades: every migration is applied to data that was written before it, and a version that meets a newer schema stops with one line.
import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { migrate } from '../../src/store/postgres/apply-migrations.ts';
import { openDatabase } from '../../src/store/postgres/database.ts';
import { loadSchema } from '../../src/store/postgres/migrations.ts';
import { openRestored, renderDump } from '../support/dump-database.ts';
import { runIntake } from '../support/intake.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { toEnvironment } from '../support/syncing.ts';
import { copyDatabase, openTestDatabase, type TestDatabase, test } from '../support/test-database.ts';

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
  test('keep every row that was written before them, from whichever one on', { tags: ['slow'] }, async ({
    database,
  }) => {
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

  test('drop evidence of an earlier format and sweeps that would go on with it; certificates stay', async () => {
    await using older = await openBare();
    const at = entries.findIndex(({ tag }) => tag.startsWith('0006'));
    for (const { tag, when } of entries.slice(0, at)) await step(older, tag, when);
    await older.query(
      `INSERT INTO intake.advertisers (name, advertiser_id, learned) VALUES ('acme', 7, '{"capacity": {"count": 100}}');
       INSERT INTO intake.sweeps (advertiser_id, sweep_id, lane, purpose, axis, low, state, certificate, risk, reason, started_at, last_progress_at, ended_at)
       VALUES (7, 1, 'live', 'recheck', 'id', 1, 'closed', 'proven', 'none', 'test', now(), now(), now()),
         (7, 2, 'live', 'recheck', 'id', 1, 'running', NULL, NULL, NULL, now(), now(), NULL);
       INSERT INTO intake.ranges (advertiser_id, sweep_id, low, high, state, evidence)
       VALUES (7, 1, 1, 9, 'closed', '{}'), (7, 2, 1, 9, 'closed', '{}'), (7, 2, 10, NULL, 'open', '{}');
       INSERT INTO intake.coverage (advertiser_id, axis, low, certificate, risk, reason, as_of, complete_through, sweep_id, evidence_hash)
       VALUES (7, 'id', 1, 'proven', 'none', 'test', now(), now(), 1, sha256('x'));
       INSERT INTO intake.evidence (advertiser_id, sweep_id, n, record, hash) VALUES (7, 1, 0, 'x', sha256('x'))`,
    );
    await migrate(older.url);
    expect(await older.query(`SELECT certificate, evidence_hash FROM intake.coverage`)).toEqual([
      { certificate: 'proven', evidence_hash: null },
    ]);
    expect(await older.query(`SELECT state FROM intake.sweeps ORDER BY sweep_id`)).toEqual([
      { state: 'closed' },
      { state: 'dropped' },
    ]);
    for (const table of ['evidence', 'ranges']) expect(await countOf(older, table), table).toBe(0);
    expect(await older.query(`SELECT learned FROM intake.advertisers`)).toEqual([{ learned: {} }]);
  });

  test('lead from a dump of an earlier schema to this one, with every row', { tags: ['slow'] }, async ({
    database,
  }) => {
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
    await intake.sweep();
    await using older = await openBare();
    for (const { tag, when } of entries.slice(0, 6)) await step(older, tag, when);
    const before = await fillFrom(older, database);
    await using restored = await openRestored(await renderDump(older));
    await migrate(restored.url);
    for (const table of ['applications', 'attachments', 'downloads', 'events', 'sweeps']) {
      expect(before[table], table).toBeGreaterThan(0);
      expect(await countOf(restored, table), table).toBe(before[table]);
    }
    await using db = openDatabase({ url: restored.url, role: 'test' });
    expect((await loadSchema(db)).state).toBe('current');
  });

  test('rise in time, so that none is skipped', () => {
    const times = entries.map(({ when }) => when);
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
  });

  test('that break an older version stop its worker with one clear line and exit code 7', {
    tags: ['slow'],
  }, async () => {
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

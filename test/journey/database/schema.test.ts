// A command that only looks, or acts on stored rows, leaves the schema as it is: one look from a newer checkout must not lock out the
// version that production runs.
import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { openTestDatabase, type TestDatabase } from '../../support/database/test-database.ts';
import { test } from '../../support/processes/site.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

/** A schema as the version before this one left it, as far as reading needs it. */
async function openOlder(): Promise<TestDatabase> {
  const older = await openTestDatabase();
  await older.query(`UPDATE intake.migrations SET created_at = created_at - 1`);
  await older.query(`ALTER TABLE intake.advertisers DROP COLUMN troubles`);
  await older.query(`ALTER TABLE intake.migrations DROP COLUMN version`);
  return older;
}

async function countMigrations({ query }: TestDatabase): Promise<number> {
  return (await query<{ n: number }>(`SELECT count(*)::int AS n FROM intake.migrations`))[0]?.n ?? -1;
}

const others = [
  ...['unhalt', 'retry', 'verify', 'reparse', 'quarantine list', 'quarantine replay', 'url 1 resume', 'export 1'],
  ...['erase --application 1 --dry-run', 'erase --application 1 --yes', 'grants', 'backfill --dry-run'],
];

describe('a schema that is behind', () => {
  test('stays as it is when status looks, which shows what it can and says so', async ({ openSite }) => {
    await using older = await openOlder();
    const { intake } = await openSite({ applications: 3, database: older });
    await older.query(`INSERT INTO intake.advertisers (name) VALUES ('default')`);
    const before = await countMigrations(older);
    const { code, stdout } = await intake('status');
    expect({ code, after: await countMigrations(older) }).toEqual({ code: 0, after: before });
    expect(stdout).toContain('The schema is behind: run intake migrate.');
    expect(stdout).toContain('Nothing has been read yet.');
  });

  test('stays as it is by other commands, which end with 7', { tags: ['slow'] }, async ({ openSite }) => {
    await using older = await openOlder();
    const { intake } = await openSite({ database: older });
    const before = await countMigrations(older);
    for (const line of others) {
      const { code, stderr } = await intake(line);
      expect({ line, code, stderr }).toEqual({ line, code: 7, stderr: expect.stringContaining('intake migrate') });
      expect(await countMigrations(older)).toBe(before);
    }
  });
});

test('a schema that is ahead is shown by status; the others end with 7', { tags: ['slow'] }, async ({ openSite }) => {
  await using newer = await openTestDatabase();
  const { intake, sync } = await openSite({ applications: 3, database: newer });
  await sync();
  await newer.query(
    `INSERT INTO intake.migrations (hash, created_at, version, lowest) VALUES ('x', 9999999999999, '99.1.0', '99.1.0')`,
  );
  const { code, stdout } = await intake('status');
  expect(code).toBe(0);
  expect(stdout).toContain('The schema is ahead: use version 99.1.0 or newer.');
  expect(stdout).toContain('3 applications');
  for (const line of [...others, 'sync']) {
    const { code: ended, stderr } = await intake(line);
    expect({ line, ended, stderr }).toEqual({ line, ended: 7, stderr: expect.stringContaining('99.1.0') });
    expect(stderr).not.toContain('intake migrate');
  }
});

test('an estimate before the first load creates the schema', async ({ openSite }) => {
  await using bare = await openTestDatabase();
  await bare.query(`DROP SCHEMA intake CASCADE; DROP SCHEMA intake_analytics CASCADE`);
  const { intake } = await openSite({ applications: 3, database: bare });
  expect(await intake('backfill --dry-run')).toMatchObject({ code: 0, stdout: expect.stringContaining('about 3') });
});

test('a database without a schema ends a look with 7, and is filled by intake migrate', async ({ openSite }) => {
  await using bare = await openTestDatabase();
  await bare.query(`DROP SCHEMA intake CASCADE; DROP SCHEMA intake_analytics CASCADE`);
  const { intake } = await openSite({ database: bare });
  const { code, stderr } = await intake('status');
  expect({ code, stderr }).toEqual({ code: 7, stderr: expect.stringContaining('intake migrate') });
  expect(await bare.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'intake'`)).toEqual([]);
  expect((await intake('migrate')).code).toBe(0);
  expect(await bare.query(`SELECT DISTINCT version FROM intake.migrations`)).toEqual([{ version }]);
  expect((await intake('status')).code).toBe(0);
});

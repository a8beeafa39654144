// A command that only looks, or acts on stored rows, leaves the schema as it is: one look from a newer checkout must not lock out the
// version that production runs.
import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openScratch } from '../support/blob-stores.ts';
import { callIntake } from '../support/intake.ts';
import { syncBoard, toEnvironment } from '../support/syncing.ts';
import { openTestDatabase, type TestDatabase, test } from '../support/test-database.ts';

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
  ['unhalt'],
  ['retry'],
  ['verify'],
  ['reparse'],
  ['quarantine', 'list'],
  ['quarantine', 'replay'],
  ['url', '1', 'resume'],
  ['export', '1'],
  ['erase', '--application', '1', '--dry-run'],
  ['erase', '--application', '1', '--yes'],
  ['grants'],
  ['backfill', '--dry-run'],
] as const;

describe('a schema that is behind', () => {
  test('stays as it is when status looks, which shows what it can and says so', async () => {
    await using older = await openOlder();
    await using board = await openSandbox({ applications: 3 });
    await older.query(`INSERT INTO intake.advertisers (name) VALUES ('default')`);
    const before = await countMigrations(older);
    const { code, stdout } = await callIntake(['status'], toEnvironment(older, board));
    expect({ code, after: await countMigrations(older) }).toEqual({ code: 0, after: before });
    expect(stdout).toContain('The schema is behind: run intake migrate.');
    expect(stdout).toContain('Nothing has been read yet.');
  });

  test('stays as it is when any other command is run, which ends with 7 and names intake migrate', {
    tags: ['slow'],
  }, async () => {
    await using older = await openOlder();
    await using board = await openSandbox();
    await using scratch = await openScratch();
    const before = await countMigrations(older);
    for (const args of others) {
      const { code, stderr } = await callIntake(args, toEnvironment(older, board, scratch.path));
      expect({ args, code, stderr }).toEqual({ args, code: 7, stderr: expect.stringContaining('intake migrate') });
      expect(await countMigrations(older)).toBe(before);
    }
  });
});

describe('a schema that is ahead', () => {
  test('is shown by status as far as this version can, with the version to use; the others end with 7', {
    tags: ['slow'],
  }, async () => {
    await using newer = await openTestDatabase();
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    await syncBoard(newer, board);
    await newer.query(
      `INSERT INTO intake.migrations (hash, created_at, version) VALUES ('x', 9999999999999, '99.1.0')`,
    );
    const env = toEnvironment(newer, board, scratch.path);
    const { code, stdout } = await callIntake(['status'], env);
    expect(code).toBe(0);
    expect(stdout).toContain('The schema is ahead: use version 99.1.0 or newer.');
    expect(stdout).toContain('3 applications');
    for (const args of [...others, ['sync'] as const]) {
      const { code: ended, stderr } = await callIntake(args, env);
      expect({ args, ended, stderr }).toEqual({ args, ended: 7, stderr: expect.stringContaining('99.1.0') });
      expect(stderr).not.toContain('intake migrate');
    }
  });
});

describe('a database without a schema', () => {
  test('ends a look with 7, is left bare, and is filled by intake migrate, which leaves its version', async () => {
    await using bare = await openTestDatabase();
    await bare.query(`DROP SCHEMA intake CASCADE; DROP SCHEMA intake_analytics CASCADE`);
    await using board = await openSandbox();
    const env = toEnvironment(bare, board);
    const { code, stderr } = await callIntake(['status'], env);
    expect({ code, stderr }).toEqual({ code: 7, stderr: expect.stringContaining('intake migrate') });
    expect(await bare.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'intake'`)).toEqual([]);
    expect((await callIntake(['migrate'], env)).code).toBe(0);
    expect(await bare.query(`SELECT DISTINCT version FROM intake.migrations`)).toEqual([{ version }]);
    expect((await callIntake(['status'], env)).code).toBe(0);
  });
});

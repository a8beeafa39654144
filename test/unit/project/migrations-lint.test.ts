// The lint of migrations: what would make a worker wait that goes on beside a migration is refused.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

function lint(sql: string): string[] {
  const { stdout } = spawnSync('node_modules/.bin/squawk', ['--reporter', 'gcc', '--stdin-filepath', 'new.sql'], {
    input: sql,
    encoding: 'utf8',
  });
  return Array.from(stdout.matchAll(/(?:warning|error): ([\w-]+)/g), ([, rule = '']) => rule);
}

test.for([
  ['CREATE INDEX a ON intake.applications (email);', 'require-concurrent-index-creation'],
  ['ALTER TABLE intake.blobs ADD CONSTRAINT a CHECK (size_bytes >= 0);', 'constraint-missing-not-valid'],
  ['ALTER TABLE intake.blobs ALTER COLUMN size_bytes TYPE numeric;', 'changing-column-type'],
  ['ALTER TABLE intake.blobs RENAME COLUMN key TO place;', 'renaming-column'],
  ['DROP TABLE intake.blobs;', 'ban-drop-table'],
] as const)('refuses %s', ([sql, rule]) => {
  expect(lint(sql)).toContain(rule);
});

test('takes what blocks nobody', () => {
  expect(lint('ALTER TABLE intake.blobs ADD COLUMN seen_at timestamptz;')).toEqual([]);
  expect(
    lint(`-- squawk-ignore-file ban-concurrent-index-creation-in-transaction
-- no transaction
DROP INDEX CONCURRENTLY IF EXISTS intake.a;
CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON intake.applications (email);`),
  ).toEqual([]);
});

test('leaves out only migrations that were there before it', () => {
  const [, list = ''] = readFileSync('.squawk.toml', 'utf8').split('excluded_paths');
  const left = Array.from(list.matchAll(/"migrations\/(\d+)_\w+\.sql"/g), ([, number]) => Number(number));
  expect(Math.max(...left)).toBeLessThan(17);
  expect(left.length).toBeLessThan(readdirSync('migrations').length);
});

test('every later migration says whether older versions go on beside it, and a breaking one is one transaction', () => {
  const later = readdirSync('migrations').filter((name) => /^(?!000|001[0-6])\d{4}_\w+\.sql$/.test(name));
  expect(later.length).toBeGreaterThan(0);
  for (const name of later) {
    const sql = readFileSync(`migrations/${name}`, 'utf8');
    expect(sql, name).toMatch(/^(?:-- squawk-ignore-file .*\n)?-- (?:expand|breaking: \d+\.\d+\.\d+)\n/);
    if (/^-- breaking/m.test(sql)) expect(sql, name).not.toMatch(/^-- no transaction/m);
  }
});

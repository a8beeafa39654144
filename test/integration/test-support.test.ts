import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, inject } from 'vitest';
import { query } from '../support/embedded-root.ts';
import { openTestDatabase, test } from '../support/test-database.ts';
import { openTestRun } from '../support/test-run.ts';

const { serverUrl } = inject('template');

async function loadDatabases(like: string): Promise<string[]> {
  const rows = await query(serverUrl, `SELECT datname FROM pg_database WHERE datname LIKE '${like}%' ORDER BY 1`);
  return rows.map(({ datname }) => datname as string);
}

describe('a database per file', () => {
  test('two databases know nothing of each other, and begin as the template was prepared', {
    tags: ['slow'],
  }, async () => {
    await using run = await openTestRun(serverUrl, async (url) => {
      await query(url, 'CREATE TABLE prepared (id int)');
    });
    await using one = await openTestDatabase(run.template);
    await using other = await openTestDatabase(run.template);
    await one.query('INSERT INTO prepared VALUES ($1)', [1]);
    expect(await one.query('TABLE prepared')).toEqual([{ id: 1 }]);
    expect(await other.query('TABLE prepared')).toEqual([]);
  });

  test('a file’s tests share one database', async ({ database }) => {
    const [row] = await database.query<{ name: string }>('SELECT current_database() AS name');
    expect(database.url).toContain(row?.name);
  });

  test('a pool left open fails the close of the database, which is dropped all the same', {
    tags: ['slow'],
  }, async () => {
    const database = await openTestDatabase();
    const forgotten = new pg.Pool({ connectionString: database.url, application_name: 'forgotten' });
    forgotten.on('error', () => undefined);
    await forgotten.query('SELECT 1');
    await expect(database[Symbol.asyncDispose]()).rejects.toThrow(/Left open: 1 connection.*'forgotten', idle/);
    expect(await loadDatabases(new URL(database.url).pathname.slice(1))).toEqual([]);
    await forgotten.end();
  });

  test('a run drops its own databases and those of killed runs, never those of a living one', {
    tags: ['slow'],
  }, async () => {
    await using living = await openTestRun(serverUrl, async () => undefined);
    const killed = `intake_test_${randomBytes(4).toString('hex')}`;
    await query(serverUrl, `CREATE DATABASE ${killed}`);
    await query(serverUrl, `CREATE DATABASE ${killed}_1`);
    const run = await openTestRun(serverUrl, async () => undefined);
    await openTestDatabase(run.template);
    expect(await loadDatabases(killed)).toEqual([]);
    expect(await loadDatabases(living.template.name)).toEqual([living.template.name]);
    await run[Symbol.asyncDispose]();
    expect(await loadDatabases(run.template.name)).toEqual([]);
  });
});

describe('the leak guard', { tags: ['slow'] }, () => {
  const project = join(import.meta.dirname, '../..');
  // Inside the project, for its packages; outside test/, where another run would take it for one of its own files.
  mkdirSync(join(project, '.intake'), { recursive: true });
  const folder = mkdtempSync(join(project, '.intake/leak-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const guard = join(project, 'test/support/leak-guard.ts');
  writeFileSync(
    join(folder, 'vitest.config.ts'),
    `export default { test: { include: ['*.test.ts'], setupFiles: [${JSON.stringify(guard)}], pool: 'forks' } };`,
  );

  const leaks = {
    server: "createServer().listen(0, '127.0.0.1')",
    pool: "await new pg.Pool({ connectionString: process.env.SERVER }).query('SELECT 1')",
    child: "spawn('sleep', ['30'])",
    warning: "process.emitWarning('something is odd')",
    nothing: 'createServer()',
  };

  test('sees a file that leaves a server, a pool or a child process open, says which line opened it, and a warning of Node', () => {
    for (const [name, leak] of Object.entries(leaks)) {
      writeFileSync(
        join(folder, `${name}.test.ts`),
        `import { spawn } from 'node:child_process';
       import { createServer } from 'node:http';
       import pg from 'pg';
       import { test } from 'vitest';
       test('leaks', async () => { ${leak}; [spawn, createServer, pg]; });`,
      );
    }
    const vitest = join(project, 'node_modules/vitest/vitest.mjs');
    const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, 'run', '--root', folder, '--no-color'], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, SERVER: serverUrl },
    });
    expect(stdout).toContain('5 passed');
    expect(status).toBe(1);
    expect(stderr).toMatch(/server on .*127\.0\.0\.1.*server\.test\.ts:5/);
    expect(stderr).toMatch(/socket to .*pool\.test\.ts:5/);
    expect(stderr).toMatch(/process \d+ \(sleep\).*child\.test\.ts:5/);
    expect(stderr).toMatch(/Node warned:\s+- Warning: something is odd/);
    expect(stderr).not.toContain('nothing.test.ts');
  });
});

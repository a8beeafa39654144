import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, inject } from 'vitest';
import { query } from '../support/database/embedded-root.ts';
import { openTestDatabase, test } from '../support/database/test-database.ts';

const { serverUrl } = inject('template');

async function loadDatabases(like: string): Promise<string[]> {
  const rows = await query(serverUrl, `SELECT datname FROM pg_database WHERE datname LIKE '${like}%' ORDER BY 1`);
  return rows.map(({ datname }) => datname as string);
}

test('a pool left open fails the close of its database, which is dropped', { tags: ['slow'] }, async () => {
  const database = await openTestDatabase();
  const forgotten = new pg.Pool({ connectionString: database.url, application_name: 'forgotten' });
  forgotten.on('error', () => undefined);
  await forgotten.query('SELECT 1');
  await expect(database[Symbol.asyncDispose]()).rejects.toThrow(/Left open: 1 connection.*'forgotten', idle/);
  expect(await loadDatabases(new URL(database.url).pathname.slice(1))).toEqual([]);
  await forgotten.end();
});

describe('the leak guard', { tags: ['slow'] }, () => {
  const project = join(import.meta.dirname, '../..');
  // Inside the project, for its packages; outside test/, where another run would take it for one of its own files.
  mkdirSync(join(project, '.intake'), { recursive: true });
  const folder = mkdtempSync(join(project, '.intake/leak-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const guard = join(project, 'test/support/suite/leak-guard.ts');
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

// A database password that is changed while Intake runs: the file of DATABASE_URL is read again for every new connection.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import { openDatabase } from '../../src/store/postgres/database.ts';
import { query, succeeds } from '../support/database/embedded-root.ts';
import { openTestDatabase, type TestDatabase, test } from '../support/database/test-database.ts';
import { findDifferences } from '../support/equality.ts';
import { hireWorker, isRead, openSettings, probe, type TestWorker } from '../support/processes/worker.ts';
import { openScratch } from '../support/stores/blob-stores.ts';
import { until } from '../support/suite/until.ts';

/** A role whose password can be changed; `rotate` ends its sessions as well, as a managed database does at a failover. */
async function openRole(database: TestDatabase) {
  const role = `rotated_${randomBytes(6).toString('hex')}`;
  await database.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD 'first'`);
  const toUrl = (password: string) => Object.assign(new URL(database.url), { username: role, password }).href;
  if (await succeeds(query(toUrl('wrong'), 'SELECT 1')))
    throw new Error('The server checks no password (pg_hba.conf: trust), so none can be rotated.');
  return {
    role,
    toUrl,
    async rotate(password: string) {
      await database.query(`ALTER ROLE ${role} PASSWORD '${password}'`);
      await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, [role]);
    },
    async [Symbol.asyncDispose]() {
      await database.query(`DROP ROLE ${role}`);
    },
  };
}

/** What readiness says of the database. */
async function loadDatabaseDetail({ adminUrl }: TestWorker): Promise<string> {
  const { checks } = (await (await fetch(`${adminUrl}/readyz`)).json()) as {
    checks: { check: string; detail: string }[];
  };
  return checks.find(({ check }) => check === 'database')?.detail ?? '';
}

describe('a database password that is changed', () => {
  test('costs a worker no restart and loses nothing, also when its file follows late', { tags: ['slow'] }, async () => {
    await using database = await openTestDatabase();
    await using role = await openRole(database);
    await using scratch = await openScratch();
    const file = join(scratch.path, 'database-url');
    writeFileSync(file, `${role.toUrl('first')}\n`);
    await using board = await openSandbox({ applications: 20 });
    await using settings = await openSettings(database, board, { DATABASE_URL: '', DATABASE_URL_FILE: file });
    await using worker = await hireWorker(settings.env);
    await until(() => isRead(database, board));

    await role.rotate('second');
    board.add(3);
    await until(async () => (await probe(worker, '/readyz')).failed.includes('database'));
    expect(await probe(worker, '/livez')).toMatchObject({ status: 200 });
    // A file that was written wrongly is named, and not taken for a database of another name.
    for (const [wrong, told] of [
      ['not an address', 'must be a postgres:// address'],
      [`${role.toUrl('second')}?sslmode=requier`, 'must have as sslmode one of'],
      ['postgres://h1,h2/intake', 'names several hosts'],
    ]) {
      writeFileSync(file, `${wrong}\n`);
      await until(async () => (await loadDatabaseDetail(worker)).includes(`DATABASE_URL ${told}`));
    }
    writeFileSync(file, `${role.toUrl('second')}\n`);

    await until(() => isRead(database, board));
    await until(async () => (await probe(worker, '/readyz')).status === 200);
    await until(async () => (await database.query(`SELECT 1 FROM intake.downloads`)).length === 0);
    const listener = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'intake listen' AND usename = $1`;
    await until(async () => (await database.query(listener, [role.role])).length > 0);
    expect(await findDifferences(database, board)).toEqual([]);
  });

  test('is waited for by a process that had a connection, and named as a wrong setting to one that never had', async () => {
    await using database = await openTestDatabase();
    await using role = await openRole(database);
    let url = role.toUrl('first');
    await using db = openDatabase({ url: () => url, role: 'test' });
    await db.query('SELECT 1');
    await role.rotate('second');
    // The sessions that were ended are noticed by their next use.
    await until(async () => {
      const error = await db.query('SELECT 1').catch((thrown: unknown) => thrown);
      return error instanceof Trouble && /28P01/.test(error.message);
    });
    const met = await db.query('SELECT 1').catch((thrown: unknown) => thrown);
    expect(met).toMatchObject({ name: 'Trouble', at: 'database', message: expect.stringContaining('DATABASE_URL') });
    await using late = openDatabase({ url: () => url, role: 'test' });
    expect(await late.query('SELECT 1').catch((thrown: unknown) => thrown)).toMatchObject({ name: 'SettingTrouble' });
    url = role.toUrl('second');
    expect(await db.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(await late.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

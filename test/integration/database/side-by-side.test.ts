// Two releases on one database (P25): an older process goes on beside a schema that a later release has expanded. Once a breaking migration
// is applied it ends by itself, and no such migration is applied while it is alive.
import pg from 'pg';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { version } from '../../../src/domain/schema.ts';
import { loadMigrations, type Migration, migrate } from '../../../src/store/postgres/migrations.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { startPresence } from '../../../src/sync/presence.ts';
import { openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';
import { hireWorker, isDone, openSettings } from '../../support/processes/worker.ts';
import { until } from '../../support/suite/until.ts';

const at = 9_999_999_999_000;

/** The migrations of the next release: one that adds a column, and one that older versions cannot live with. */
const next: readonly Migration[] = [
  ...loadMigrations(),
  toMigration(at + 1, '99.0.0', `ALTER TABLE intake.cursors DROP COLUMN after_date`),
  toMigration(at + 2, null, `ALTER TABLE intake.applications ADD COLUMN later text`),
];

function toMigration(when: number, lowest: string | null, statement: string): Migration {
  const value = lowest === null ? 'NULL' : `'${lowest}'`;
  const record = `INSERT INTO intake.migrations (hash, created_at, version, lowest) VALUES ('x', ${when}, '99.0.0', ${value})`;
  return { name: `${when}`, at: BigInt(when), statements: [statement, record], inTransaction: true, lowest };
}

const open = ({ url }: TestDatabase): Store =>
  openStore({ url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
const loadLater = ({ query }: TestDatabase) =>
  query(`SELECT table_name FROM information_schema.columns WHERE column_name IN ('later', 'after_date') ORDER BY 1`);

describe('a later release', () => {
  test('expands the schema under a worker of this one, which goes on, and a second one starts', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 6 });
    const [account] = board.advertisers;
    if (account === undefined) throw new Error('The board has no account.');
    await using settings = await openSettings(database, board);
    {
      await using _worker = await hireWorker(settings.env);
      await until(() => isDone(database, account));
      expect(await migrate(database.url, { migrations: next })).toEqual([String(at + 2)]);
      account.add(3);
      await until(() => isDone(database, account));
    }
    account.add(3);
    {
      await using _second = await hireWorker(settings.env);
      await until(() => isDone(database, account));
    }
    const { stdout } = await callIntake(['doctor'], settings.env);
    expect(stdout).toContain('newer: version 99.0.0 has expanded it, and this one goes on');
    await migrate(database.url, { migrations: next, finish: true });
    const stdoutAhead = expect.stringContaining('ahead: use version 99.0.0 or newer');
    expect(await callIntake(['doctor'], settings.env)).toMatchObject({ code: 7, stdout: stdoutAhead });
  });

  test('does not finish while a process of this one is alive, and names it', async () => {
    await using database = await openTestDatabase();
    await using store = open(database);
    {
      await using _presence = await startPresence(store, 'worker on a-host (1, x)');
      await expect(migrate(database.url, { migrations: next, finish: true })).rejects.toMatchObject({
        name: 'SchemaTrouble',
        message: `Processes older than 99.0.0 are alive: worker on a-host (1, x), version ${version}.`,
        next: expect.stringContaining('intake migrate --finish'),
      });
      // It was expanded before, and nothing was taken away.
      expect(await loadLater(database)).toEqual([{ table_name: 'applications' }, { table_name: 'cursors' }]);
    }
    expect(await migrate(database.url, { migrations: next, finish: true })).toEqual([String(at + 1)]);
    expect(await loadLater(database)).toEqual([{ table_name: 'applications' }]);
    // The way back has ended.
    await expect(startPresence(store, 'worker on a-host (2, y)')).rejects.toMatchObject({
      name: 'SchemaTrouble',
      next: 'Use version 99.0.0 of Intake or newer.',
    });
  });

  test('takes a process that was not seen for a minute for dead, also one with a time in the future', async () => {
    await using database = await openTestDatabase();
    await database.query(
      `INSERT INTO intake.processes (process, version, started_at, seen_at)
       VALUES ('killed', '1.0.0', now(), now() - interval '61 seconds'), ('other clock', '1.0.0', now(), now() + interval '1 hour'),
         ('newer', '99.0.0', now(), now())`,
    );
    expect(await migrate(database.url, { migrations: next, finish: true })).toHaveLength(2);
  });

  test('is seen by a process that starts while a breaking migration is being applied', async () => {
    await using database = await openTestDatabase();
    await using store = open(database);
    const migrating = new pg.Client(database.url);
    await migrating.connect();
    try {
      await migrating.query(`BEGIN; LOCK TABLE intake.processes IN SHARE ROW EXCLUSIVE MODE;
        INSERT INTO intake.migrations (hash, created_at, lowest) VALUES ('x', ${at}, '99.0.0')`);
      const started = startPresence(store, 'worker on a-host (1, x)').catch((error: unknown) => error);
      await until(async () => {
        const waiting = await database.query(
          `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        return waiting.length > 0;
      });
      await migrating.query('COMMIT');
      expect(await started).toMatchObject({ name: 'SchemaTrouble' });
    } finally {
      await migrating.end();
    }
  });

  test('ends a worker of this one that was away while the schema was broken for it', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 6 });
    const [account] = board.advertisers;
    if (account === undefined) throw new Error('The board has no account.');
    await using settings = await openSettings(database, board);
    await using worker = await hireWorker(settings.env, { renewEveryMs: 20 });
    await until(() => isDone(database, account));
    await database.query(`INSERT INTO intake.migrations (hash, created_at, lowest) VALUES ('x', ${at}, '99.0.0')`);
    await expect(worker.ended).rejects.toMatchObject({
      name: 'SchemaTrouble',
      next: expect.stringContaining('99.0.0'),
    });
    for (const said of ['schema too new for this version', 'the worker has ended']) {
      expect(worker.lines.some((line) => line.includes(said))).toBe(true);
    }
    // It gave its lanes back, and is no longer on record.
    expect(await database.query(`SELECT 1 FROM intake.leases WHERE expires_at > now()`)).toEqual([]);
    expect(await database.query(`SELECT 1 FROM intake.processes`)).toEqual([]);
  });
});

test('a new database gets the breaking migrations with the others, since nobody runs on it', async () => {
  await using database = await openTestDatabase();
  await database.query(`DROP SCHEMA intake, intake_analytics CASCADE`);
  expect(await migrate(database.url, { migrations: next, dryRun: true })).toHaveLength(next.length);
  expect(await migrate(database.url, { migrations: next })).toEqual(next.map(({ name }) => name));
});

test('intake migrate says that nothing is left to finish; --finish may be run again', async () => {
  await using database = await openTestDatabase();
  const env = { DATABASE_URL: database.url };
  for (const line of [['migrate'], ['migrate', '--finish']]) {
    const { code, stdout } = await callIntake([...line, '--json'], env);
    expect({ code, told: JSON.parse(stdout) }).toEqual({ code: 0, told: { schema: 'current', finished: true } });
  }
});

// A separate database for each test file, copied from the run's template in tens of milliseconds. Closing it fails the file when a
// connection is still open (a forgotten pool is a defect of the code under test or of the test), or when a kept count is wrong.

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, test as base, beforeAll, inject } from 'vitest';
import { type TestTemplate, toDatabaseUrl } from './test-run.ts';
import { wrongDaysSql } from './wrong-days.ts';

declare module 'vitest' {
  interface ProvidedContext {
    template: TestTemplate;
  }
}

/** A database with the project's schema; dropped when disposed. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  /** Runs one statement on the test's own connections and returns its rows. */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** What the tests of a file share; disposed before the database is dropped. */
  readonly shared: AsyncDisposableStack;
}

/**
 * `test` with two fixtures. `database` is created when a test of the file first uses it, shared by the whole file and dropped after it.
 * `emptied` is the same database without rows: it costs 3 ms of CPU instead of the 30 to 100 ms of a separate one.
 */
export const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads a fixture's dependencies from the pattern; this one has none.
  .extend('database', { scope: 'file' }, async ({}, { onCleanup }) => {
    const database = await openTestDatabase();
    onCleanup(() => database[Symbol.asyncDispose]());
    return database;
  })
  .extend('emptied', async ({ database }) => {
    await emptyDatabase(database);
    return database;
  });

/** The database of a file whose tests all use it: created before the first of them, dropped after the last. */
export function shareDatabase(): TestDatabase {
  let opened: TestDatabase;
  beforeAll(async () => {
    opened = await openTestDatabase();
  });
  afterAll(() => opened[Symbol.asyncDispose]());
  return {
    get url() {
      return opened.url;
    },
    get shared() {
      return opened.shared;
    },
    query: (sql, values) => opened.query(sql, values),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

/** Creates a database as a copy of the template. */
export async function openTestDatabase({ serverUrl, name }: TestTemplate = inject('template')): Promise<TestDatabase> {
  const database = `${name}_${randomBytes(6).toString('hex')}`;
  const url = toDatabaseUrl(serverUrl, database);
  await onServer(serverUrl, (server) =>
    server.query(`CREATE DATABASE ${database} TEMPLATE ${name} STRATEGY FILE_COPY`),
  );
  const pool = new pg.Pool({ connectionString: url, application_name: 'test', max: 2 });
  // Tests restart servers and terminate sessions on purpose.
  pool.on('error', () => undefined);
  const shared = new AsyncDisposableStack();
  return {
    url,
    shared,
    async query<Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) {
      return (await pool.query<Row>(sql, [...values])).rows;
    },
    async [Symbol.asyncDispose]() {
      await shared.disposeAsync();
      const wrong = await findWrongTallies((sql) => pool.query(sql).then(({ rows }) => rows));
      await pool.end();
      await onServer(serverUrl, async (server) => {
        const open = await loadSessions(server, database);
        await server.query(`DROP DATABASE ${database} WITH (FORCE)`);
        if (open.length > 0) {
          throw new Error(`Left open: ${open.length} connection(s) to the test database (${open.join(', ')}).`);
        }
        if (wrong !== '') throw new Error(`Counts that the rows do not bear out: ${wrong}.`);
      });
    },
  };
}

/** Copies a database in its present state, like a backup. Terminates every session of the original. */
export async function copyDatabase({ url }: TestDatabase): Promise<TestDatabase> {
  const { serverUrl } = inject('template');
  const name = new URL(url).pathname.slice(1);
  await onServer(serverUrl, (server) =>
    server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, [name]),
  );
  return await openTestDatabase({ serverUrl, name });
}

/** Deletes every row. Uses DELETE because TRUNCATE creates a hundred files anew (30 ms of CPU instead of 0.3 ms). */
export async function emptyDatabase(database: TestDatabase): Promise<void> {
  const wrong = await findWrongTallies((sql) => database.query(sql));
  if (wrong !== '') throw new Error(`Counts that the rows do not bear out: ${wrong}.`);
  const tables = await database.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class
     WHERE relnamespace = 'intake'::regnamespace AND relkind = 'r' AND relname <> 'migrations'`,
  );
  const deletes = tables.map(({ name }) => `DELETE FROM ${name};`).join('');
  await database.query(`BEGIN; SET LOCAL session_replication_role = replica; ${deletes} COMMIT`);
}

/** Counts that differ from a recount, after whatever the tests of the file did. None in a database without the current schema. */
async function findWrongTallies(query: (sql: string) => Promise<Record<string, string>[]>): Promise<string> {
  const [found] = await query(`SELECT to_regclass('intake.recounted')::text AS view`);
  if (!found?.view) return '';
  const rows = await query(
    `SELECT what, sum(n) AS too_few FROM (
       SELECT advertiser_id, what, n FROM intake.recounted UNION ALL SELECT advertiser_id, what, -n FROM intake.tallies) AS compared
     GROUP BY advertiser_id, what HAVING sum(n) <> 0`,
  );
  const days = await query(wrongDaysSql);
  return [
    ...rows.map(({ what, too_few }) => `${what} ${-Number(too_few)} too many`),
    ...days.map(({ wrong }) => `${wrong}`),
  ].join(', ');
}

/** On a busy machine a closed session can linger. Less than ten seconds, after which a forgotten pool closes its idle sessions. */
const graceMs = 5_000;

/** The sessions that remain after the grace period: the server needs a moment to notice a closed socket. */
async function loadSessions(server: pg.Client, database: string): Promise<string[]> {
  const deadlineAt = performance.now() + graceMs;
  for (;;) {
    const { rows } = await server.query<{ session: string }>(
      `SELECT format('application_name %L, %s', application_name, state) AS session
       FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
      [database],
    );
    if (rows.length === 0 || performance.now() > deadlineAt) return rows.map(({ session }) => session);
    await sleep(10);
  }
}

async function onServer<Result>(serverUrl: string, work: (server: pg.Client) => Promise<Result>): Promise<Result> {
  const server = new pg.Client({ connectionString: serverUrl, application_name: 'test' });
  await server.connect();
  try {
    return await work(server);
  } finally {
    await server.end();
  }
}

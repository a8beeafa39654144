// One run's databases on a server it may share: a template with the schema, and copies of it. Every name carries the run's own mark and
// the run holds a session under that mark, so another run can tell what was left by a killed one from what is in use.

import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** The run's template; disposing drops every database of the run. */
export interface TestRun extends AsyncDisposable {
  /** What `openTestDatabase` needs to know. */
  readonly template: TestTemplate;
}

export interface TestTemplate {
  readonly serverUrl: string;
  /** The template's name, and the beginning of every copy's. */
  readonly name: string;
}

/** Drops what killed runs left, then makes the template: an empty database, prepared once (migrations) for all files. */
export async function openTestRun(serverUrl: string, prepare: (url: string) => Promise<void>): Promise<TestRun> {
  const name = `${mark}${randomBytes(4).toString('hex')}`;
  const session = new pg.Client({ connectionString: serverUrl, application_name: name });
  session.on('error', () => undefined);
  await session.connect();
  await dropLeftovers(session);
  await session.query(`CREATE DATABASE ${name} TEMPLATE template0`);
  await prepare(toDatabaseUrl(serverUrl, name));
  return {
    template: { serverUrl, name },
    async [Symbol.asyncDispose]() {
      await dropDatabases(session, [name]);
      await session.end();
    },
  };
}

/** The same server and login, another database. */
export function toDatabaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

const mark = 'intake_test_';

/** A run lives as long as its session. */
async function dropLeftovers(session: pg.Client): Promise<void> {
  const { rows } = await session.query<{ run: string }>(
    `SELECT DISTINCT substring(datname FROM $1) AS run FROM pg_database WHERE datname ~ $1
     EXCEPT SELECT application_name FROM pg_stat_activity`,
    [`^${mark}[0-9a-f]{8}`],
  );
  await dropDatabases(
    session,
    rows.map(({ run }) => run),
  );
}

async function dropDatabases(session: pg.Client, runs: readonly string[]): Promise<void> {
  const { rows } = await session.query<{ datname: string }>(
    'SELECT datname FROM pg_database, unnest($1::text[]) run WHERE starts_with(datname, run)',
    [runs],
  );
  // Two runs may find the same leftover.
  for (const { datname } of rows) await session.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
}

// The databases of one run on a server that runs may share: a template with the schema, and copies of it. Every database name starts with
// the run's unique name, and the run holds a session with that application_name. So another run can tell the leftovers of a killed run from
// databases in use.

import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** The run's template; disposing drops every database of the run. */
export interface TestRun extends AsyncDisposable {
  /** The argument of `openTestDatabase`. */
  readonly template: TestTemplate;
}

export interface TestTemplate {
  readonly serverUrl: string;
  /** The template's name, and the prefix of every copy's name. */
  readonly name: string;
}

/** Drops the databases that killed runs left, then creates the template: an empty database, migrated once for all files. */
export async function openTestRun(serverUrl: string, prepare: (url: string) => Promise<unknown>): Promise<TestRun> {
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

/** A run without a session is dead: drops its databases. */
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

// Chooses the Postgres of a test run: the one that TEST_DATABASE_URL names, else the embedded one. There is always one, so no test is skipped
// for lack of a database, and the run prints which one it uses.

import pg from 'pg';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';

/** A server on which this run may create databases. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  /** Printed at the start of the run. */
  readonly name: string;
}

export interface TestServerChoice {
  readonly testDatabaseUrl?: string | undefined;
  /** Only for the embedded server: `eager` visits every changed table every second, `off` disables autovacuum. */
  readonly autovacuum?: string | undefined;
  readonly root: string;
}

/** Opens the first of the two that is available. */
export async function openTestServer({ testDatabaseUrl, autovacuum, root }: TestServerChoice): Promise<TestServer> {
  if (testDatabaseUrl) {
    return { url: testDatabaseUrl, name: 'TEST_DATABASE_URL', async [Symbol.asyncDispose]() {} };
  }
  const embedded = await openEmbedded({ root, scratch: true });
  if (autovacuum) await setAutovacuum(embedded.url, autovacuum);
  return { url: embedded.url, name: 'embedded Postgres', [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose]() };
}

async function setAutovacuum(url: string, how: string): Promise<void> {
  const eager = ['naptime = 1', 'vacuum_threshold = 0', 'vacuum_scale_factor = 0', 'analyze_threshold = 0']
    .concat('analyze_scale_factor = 0', 'vacuum_insert_threshold = 0', 'vacuum_insert_scale_factor = 0')
    .map((setting) => `autovacuum_${setting}`);
  if (how !== 'eager' && how !== 'off') throw new Error('TEST_AUTOVACUUM is eager or off.');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const setting of how === 'eager' ? eager : ['autovacuum = off'])
      await client.query(`ALTER SYSTEM SET ${setting}`);
    await client.query('SELECT pg_reload_conf()');
  } finally {
    await client.end();
  }
}

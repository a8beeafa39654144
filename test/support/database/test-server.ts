// Chooses the Postgres of a test run: the one that TEST_DATABASE_URL names, else a container where Docker answers, else the embedded one.
// There is always one, so no test is skipped for lack of a database, and the run prints which one it uses.

import { request } from 'node:http';
import pg from 'pg';
import { openEmbedded } from '../../../src/dev/embedded/embedded.ts';

/** A server on which this run may create databases. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  /** Printed at the start of the run. */
  readonly name: string;
}

export interface TestServerChoice {
  readonly testDatabaseUrl?: string | undefined;
  readonly dockerHost?: string | undefined;
  /** Only for the embedded server: `eager` visits every changed table every second, `off` disables autovacuum. */
  readonly autovacuum?: string | undefined;
  readonly root: string;
  /** Called when Docker answers but starts no server. */
  readonly say: (line: string) => void;
}

/** Opens the first of the three that is available. */
export async function openTestServer({
  testDatabaseUrl,
  dockerHost,
  autovacuum,
  root,
  say,
}: TestServerChoice): Promise<TestServer> {
  if (testDatabaseUrl) {
    return { url: testDatabaseUrl, name: 'TEST_DATABASE_URL', async [Symbol.asyncDispose]() {} };
  }
  if (await dockerAnswers(dockerHost)) {
    try {
      return await openContainer();
    } catch (error) {
      say(`Docker answers but could not start Postgres (${(error as Error).message}).`);
    }
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

/** Sends one ping, about 10 ms where Docker runs. Importing testcontainers to find out would take a second. */
export function dockerAnswers(dockerHost = 'unix:///var/run/docker.sock'): Promise<boolean> {
  const url = URL.parse(dockerHost);
  const where =
    url?.protocol === 'unix:' ? { socketPath: url.pathname } : { host: url?.hostname, port: url?.port || '2375' };
  return new Promise((resolve) => {
    const ping = request({ ...where, path: '/_ping', timeout: 1000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.once('timeout', () => ping.destroy());
    ping.once('error', () => resolve(false)).end();
  });
}

async function openContainer(): Promise<TestServer> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const fast = ['fsync=off', 'full_page_writes=off', 'max_connections=200', 'timezone=UTC'];
  const container = await new PostgreSqlContainer('postgres:18-alpine')
    .withCommand(['postgres', ...fast.flatMap((setting) => ['-c', setting])])
    .start();
  return {
    url: container.getConnectionUri(),
    name: 'a container of postgres:18-alpine',
    async [Symbol.asyncDispose]() {
      await container.stop();
    },
  };
}

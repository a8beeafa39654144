// Runs Intake against real servers: every Postgres and every S3 store that this machine can start, each through the same steps.
//   npx node test/real/main.ts                              all of them, 2,000 applications each
//   npx node test/real/main.ts --applications 200        a shorter run
//   npx node test/real/main.ts --only swift              only servers whose name contains this
// REAL_CHROOTS lists root directories of other releases (made by debootstrap), separated by commas. S3_TEST_ENDPOINT names your own store.
// A line that starts with `none` names a server that is not available, and why. Exits with 1 when a step failed or none ran.
// docs/compatibility.md keeps the results.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import pg from 'pg';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { loadParent } from '../support/embedded-root.ts';
import { openPooler } from '../support/pooler.ts';
import { openTcpGate } from '../support/tcp-gate.ts';
import { type JourneyOptions, runJourney, type Tried } from './journey.ts';
import { findPostgres, loadTreeMs, openRealPostgres, type PostgresChoice } from './postgres.ts';
import { findStores, type RealStore, type StoreChoice } from './stores.ts';

const { values: options } = parseArgs({
  options: { applications: { type: 'string', default: '2000' }, only: { type: 'string', default: '' } },
});
const applications = Number(options.applications);
const results: (Tried & { readonly server: string })[] = [];
const say = (line: string) => void process.stdout.write(`${line}\n`);
const tellOf = (server: string) => (tried: Tried) => {
  results.push({ server, ...tried });
  say(`${tried.ok ? 'ok  ' : 'FAIL'} ${server}: ${tried.step} (${tried.detail})`);
};
const isWanted = (name: string) => name.toLowerCase().includes(options.only.toLowerCase());

const chroots = (process.env.REAL_CHROOTS ?? '').split(',').filter(Boolean);
const found = findPostgres(chroots);
if (found.length === 0) say('none Postgres of a distribution: not in /usr/lib/postgresql, nor in REAL_CHROOTS');
await using embedded = await openBaseline();
if (isWanted('embedded'))
  await onDatabase('Postgres embedded', {
    databaseUrl: await embedded.create('baseline'),
    loadCpuMs: embedded.loadCpuMs,
  });
for (const choice of found.filter(({ name }) => isWanted(name))) await tryServer(choice.name, () => onPostgres(choice));
for (const choice of findStores(process.env).filter(({ name }) => isWanted(name))) {
  if (choice.absent === null) await tryServer(choice.name, () => onStore(choice));
  else say(`none ${choice.name}: ${choice.absent}`);
}
report();

async function tryServer(name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    tellOf(name)({ step: 'start', ok: false, detail: (error as Error).message });
  }
}

async function onDatabase(
  server: string,
  more: Partial<JourneyOptions> & Pick<JourneyOptions, 'databaseUrl'>,
): Promise<void> {
  await runJourney({ env: {}, applications, tell: tellOf(server), ...more });
}

async function onPostgres(choice: PostgresChoice): Promise<void> {
  await using server = await openRealPostgres(choice);
  const { stop, start, loadCpuMs } = server;
  const create = (name: string) => createDatabase(server.url, name);
  await onDatabase(choice.name, {
    databaseUrl: await create('direct'),
    outage: { begin: stop, end: start },
    rotates: true,
    loadCpuMs,
  });
  await create('sockets');
  const socketUrl = server.socketUrl.replace('/postgres?', '/sockets?');
  await runJourney({
    databaseUrl: socketUrl,
    env: {},
    applications: 50,
    tell: tellOf(`${choice.name} by its Unix socket`),
  });
  const pooled = await create('pooled');
  await using pooler = await openPooler(pooled);
  if (pooler === null) return say(`none ${choice.name} behind pgbouncer: not installed`);
  const env = { DATABASE_URL_FILE: '', DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: pooled };
  await runJourney({ databaseUrl: pooled, env, applications: 200, tell: tellOf(`${choice.name} behind pgbouncer`) });
}

async function onStore(choice: StoreChoice): Promise<void> {
  await using store = await choice.open();
  await onContract(choice, store);
  await using gate = await openTcpGate(store.endpoint);
  const credentials = { AWS_ACCESS_KEY_ID: store.accessKeyId, AWS_SECRET_ACCESS_KEY: store.secretAccessKey };
  const env = {
    ...credentials,
    BLOBS_URL: `s3://${store.bucket}/journey`,
    S3_ENDPOINT: gate.url,
    S3_REGION: store.region,
    S3_FORCE_PATH_STYLE: 'true',
  };
  const outage = { begin: () => gate.shut(), end: () => gate.open() };
  const name = `store_${results.length}`;
  await runJourney({ databaseUrl: await embedded.create(name), env, applications, outage, tell: tellOf(choice.name) });
}

/** Runs the contract tests of all blob stores against this one. */
async function onContract({ name, conditionalPut }: StoreChoice, store: RealStore): Promise<void> {
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--config',
      'test/vitest.config.ts',
      'test/contract/blobs.test.ts',
      '-t',
      'S3_TEST_ENDPOINT',
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        NO_COLOR: '1',
        S3_TEST_ENDPOINT: store.endpoint,
        S3_TEST_CONDITIONAL_PUT: conditionalPut,
        S3_TEST_BUCKET: store.bucket,
        S3_TEST_REGION: store.region,
        AWS_ACCESS_KEY_ID: store.accessKeyId,
        AWS_SECRET_ACCESS_KEY: store.secretAccessKey,
      },
    },
  );
  const [said, , [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  const counts = /Tests\s+(.+)/.exec(said)?.[1] ?? 'did not run';
  const failed = [...said.matchAll(/^\s+× (.+?)(?: \d+ms)?$/gm)].map(([, title]) => title);
  const took = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
  tellOf(name)({ step: 'contract', ok: code === 0, detail: [took, counts, ...failed].join(', ') });
}

/** The embedded server with durable settings, as the demo runs it: the baseline for other servers, and the database in tests of stores. */
async function openBaseline() {
  const root = mkdtempSync(join(tmpdir(), 'intake-real-'));
  // The server's account must be able to enter this folder. Otherwise its data would be placed elsewhere and not be removed.
  chmodSync(root, 0o755);
  const server = await openEmbedded({ root });
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const postmaster = loadParent(rows[0]?.pid ?? 0);
  await client.end();
  return {
    create: (name: string) => createDatabase(server.url, name),
    loadCpuMs: () => loadTreeMs(postmaster),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

async function createDatabase(url: string, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  return url.replace(/\/[^/?]*(\?|$)/, `/${name}$1`);
}

function report(): void {
  const table = new Table({ head: ['server', 'step', '', 'detail'], style: { head: [], border: [] } });
  for (const { server, step, ok, detail } of results) table.push([server, step, ok ? 'ok' : 'FAILED', detail]);
  say(table.toString());
  const failed = results.filter(({ ok }) => !ok).length;
  say(`${results.length - failed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || results.length === 0 ? 1 : 0;
}

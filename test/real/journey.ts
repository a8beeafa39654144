// The steps that every real server goes through: a first load with files, a check of every byte, a signed address, an erasure, and where
// possible an outage and a password rotation. Each step runs a command or a worker in a separate process, as an operator does.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { openScratch } from '../support/blob-stores.ts';
import { findDifferences } from '../support/equality.ts';
import { type Ended, runIntake } from '../support/intake.ts';
import { toEnvironment } from '../support/syncing.ts';
import { until } from '../support/until.ts';
import { spawnWorker } from '../support/worker.ts';

export interface Tried {
  readonly step: string;
  readonly ok: boolean;
  readonly detail: string;
}

export interface JourneyOptions {
  readonly databaseUrl: string;
  readonly env: Readonly<Record<string, string>>;
  readonly applications: number;
  /** Makes a server unavailable while a worker runs, and brings it back. */
  readonly outage?: { readonly begin: () => Promise<void>; readonly end: () => Promise<void> };
  /** Whether to rotate the password of a database role. */
  readonly rotates?: boolean;
  readonly loadCpuMs?: () => number;
  readonly tell: (tried: Tried) => void;
}

/** Runs all steps on an empty database. A failed step does not stop the next ones. */
export async function runJourney(options: JourneyOptions): Promise<void> {
  const { databaseUrl, applications } = options;
  await using scratch = await openScratch();
  await using board = await openSandbox({ applications });
  const file = join(scratch.path, 'database-url');
  writeFileSync(file, `${databaseUrl}\n`);
  const { DATABASE_URL: _, ...base } = toEnvironment({ url: databaseUrl }, board, join(scratch.path, 'blobs'));
  const env = { ...base, DATABASE_URL_FILE: file, LOG_FORMAT: 'json', ...options.env };
  const step = async (name: string, work: () => Promise<string>) => {
    const startedAt = performance.now();
    const seconds = () => `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
    try {
      const detail = await work();
      options.tell({ step: name, ok: true, detail: `${seconds()}${detail && `, ${detail}`}` });
    } catch (error) {
      options.tell({ step: name, ok: false, detail: `${seconds()}, ${(error as Error).message}` });
    }
  };

  await step(
    'doctor',
    async () => expectDone(await runIntake(['migrate'], env)) && expectDone(await runIntake(['doctor'], env)) && '',
  );
  await step(`first load of ${applications}`, async () => {
    const before = options.loadCpuMs?.() ?? 0;
    const { stdout } = expectDone(await runIntake(['sync', '--json'], env));
    const cpuMs = (options.loadCpuMs?.() ?? 0) - before;
    const { files } = JSON.parse(lastLine(stdout)) as { files?: { stored?: number } };
    await expectEqual(databaseUrl, board);
    return `${files?.stored ?? '?'} files${cpuMs > 0 ? `, Postgres ${(cpuMs / 1_000).toFixed(1)} s of CPU` : ''}`;
  });
  await step('verify', async () => {
    const { stdout } = expectDone(await runIntake(['verify', '--full', '--json'], env));
    const { read } = JSON.parse(lastLine(stdout)) as { read?: number };
    return `${read} files read`;
  });
  const [id = 0n] = [...board.truth()].flatMap((one) =>
    one.attachments.some(({ kind, hasVirus }) => kind === 'resume' && hasVirus !== true) ? [one.id] : [],
  );
  await step('address', async () => {
    const { stdout } = expectDone(await runIntake(['url', String(id), 'resume', '--json'], env));
    const { url } = JSON.parse(stdout) as { url: string };
    if (url.startsWith('file:')) return 'a file';
    const answer = await fetch(url);
    const bytes = await answer.arrayBuffer();
    if (answer.status !== 200 || bytes.byteLength === 0) throw new Error(`The address answers ${answer.status}.`);
    return 'signed';
  });
  await step('erase', async () => {
    const { stdout } = expectDone(await runIntake(['erase', '--application', String(id), '--yes', '--json'], env));
    const { receipts } = JSON.parse(lastLine(stdout)) as {
      receipts: { closedAt: string | null; counts: { keptVersions: number } }[];
    };
    if (!receipts[0]?.closedAt) throw new Error('There is no closed receipt.');
    const { keptVersions } = receipts[0].counts;
    return keptVersions > 0 ? `${keptVersions} versions kept` : '';
  });
  if (options.outage) await step('outage', () => outlast(options, env, board));
  if (options.rotates) await step('rotation', () => rotate(databaseUrl, file, env, board));
}

/** The result of a command: long commands print their progress in the lines before it. */
function lastLine(said: string): string {
  return said.trim().split('\n').at(-1) ?? '{}';
}

function expectDone(ended: Ended): Ended {
  if (ended.code !== 0)
    throw new Error(`exit code ${ended.code}: ${ended.stderr.trim().split('\n').slice(-4).join(' / ')}`);
  return ended;
}

/** Throws unless every application of the board is stored once and equal. */
async function expectEqual(url: string, board: Sandbox): Promise<void> {
  const client = await connect(url);
  try {
    const query = async <Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) =>
      (await client.query<Row>(sql, [...values])).rows;
    const differences = await findDifferences({ query }, board);
    if (differences.length > 0) throw new Error(`${differences.length} differences: ${differences[0]}`);
  } finally {
    await client.end();
  }
}

const awake = { SYNC_SCHEDULE: '* * * * * *', RECHECK_SCHEDULE: 'off', AUDIT_SCHEDULE: 'off', LEASE: '5s' };

async function outlast(
  { databaseUrl, outage }: JourneyOptions,
  env: Record<string, string>,
  board: Sandbox,
): Promise<string> {
  await using worker = await spawnWorker({ ...env, ...awake });
  const ids = board.add(20);
  await until(() => isHeld(databaseUrl, ids));
  await outage?.begin();
  const later = board.add(20);
  await until(async () => (await fetch(`${worker.adminUrl}/readyz`)).status === 503);
  await outage?.end();
  await until(() => isHeld(databaseUrl, later));
  await until(async () => (await fetch(`${worker.adminUrl}/readyz`)).status === 200);
  return 'not ready during the outage, nothing lost';
}

async function rotate(databaseUrl: string, file: string, env: Record<string, string>, board: Sandbox): Promise<string> {
  const role = 'rotated';
  const toUrl = (password: string) => databaseUrl.replace(/\/\/[^@]*@/, `//${role}:${password}@`);
  const admin = await connect(databaseUrl);
  try {
    await admin.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD 'first'`);
    writeFileSync(file, toUrl('first'));
    await using worker = await spawnWorker({ ...env, ...awake });
    const before = board.add(1);
    await until(() => isHeld(databaseUrl, before));
    await admin.query(`ALTER ROLE ${role} PASSWORD 'second'`);
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, [role]);
    const ids = board.add(5);
    await until(async () => (await fetch(`${worker.adminUrl}/readyz`)).status === 503);
    writeFileSync(file, toUrl('second'));
    await until(() => isHeld(databaseUrl, ids));
    await until(async () => (await fetch(`${worker.adminUrl}/readyz`)).status === 200);
    return 'no restart, nothing lost';
  } finally {
    writeFileSync(file, databaseUrl);
    await admin.end();
  }
}

/** Whether these applications are stored and ready. */
async function isHeld(url: string, ids: readonly bigint[]): Promise<boolean> {
  const client = await connect(url).catch(() => null);
  if (client === null) return false;
  try {
    const { rows } = await client.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM intake.applications WHERE application_id = ANY ($1::bigint[]) AND ready_at IS NOT NULL`,
      [ids.map(String)],
    );
    return rows[0]?.n === ids.length;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  await client.connect();
  return client;
}

// A worker for several advertisers as an operator runs it: accounts in a file, each credential in its own file, free ports.
// The worker runs in the test's process or in a separate one. Tests query it through its admin port in both cases.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { runWorker, type WorkerRun } from '../../../src/app/worker.ts';
import { loadConfig } from '../../../src/config.ts';
import type { BoardAdvertiser } from '../../../src/dev/sandbox/account/account.ts';
import type { Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import { createLog } from '../../../src/log.ts';
import type { Pass } from '../../../src/sync/worker/pass.ts';
import { createWatchdog } from '../../../src/sync/worker/watchdog.ts';
import { startWorker, type Worker, type WorkerDeps } from '../../../src/sync/worker/worker.ts';
import type { TestDatabase } from '../database/test-database.ts';
import { openScratch } from '../stores/blob-stores.ts';
import { type Ended, startIntake } from './intake.ts';
import { toEnvironment } from './syncing.ts';

/** Settings of a worker, and the files that they name. */
export interface WorkerSettings extends AsyncDisposable {
  readonly env: Record<string, string>;
  readonly blobsPath: string;
  /** Writes an account's credential into its file. */
  rotate(name: string, credential: string): void;
}

/** Settings for every account of a board; the nth account is called `account-n`. */
export async function openSettings(
  database: Pick<TestDatabase, 'url'>,
  board: Pick<Sandbox, 'url' | 'credential' | 'advertisers'>,
  env: Record<string, string> = {},
): Promise<WorkerSettings> {
  const scratch = await openScratch();
  const rotate = (name: string, credential: string) =>
    writeFileSync(join(scratch.path, `${name}.credential`), `${credential}\n`);
  const accounts = board.advertisers.map(({ credential }, index) => {
    const name = `account-${index + 1}`;
    rotate(name, credential);
    return { name, credentialFile: `${name}.credential` };
  });
  const file = join(scratch.path, 'advertisers.json');
  writeFileSync(file, JSON.stringify(accounts));
  const { SOURCE_CREDENTIAL: _, ...base } = toEnvironment(database, board, join(scratch.path, 'blobs'));
  return {
    env: {
      ...base,
      ADVERTISERS_FILE: file,
      ADMIN_PORT: '0',
      SYNC_SCHEDULE: '* * * * * *',
      RECHECK_SCHEDULE: 'off',
      AUDIT_SCHEDULE: 'off',
      LEASE: '2s',
      LOG_FORMAT: 'json',
      ...env,
    },
    blobsPath: join(scratch.path, 'blobs'),
    rotate,
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  };
}

/** A running worker. */
export interface TestWorker {
  readonly adminUrl: string;
  /** The log lines so far. */
  readonly lines: readonly string[];
}

export interface HiredWorker extends TestWorker, AsyncDisposable {
  readonly passes: readonly Pass[];
  /** Rejects if the worker ends by itself. */
  readonly ended: Promise<void>;
}

/** Starts a worker in this process; disposing stops it. */
export async function hireWorker(env: Record<string, string>, timing: Partial<WorkerRun> = {}): Promise<HiredWorker> {
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'webhooks', 'extract'] as const;
  const config = loadConfig(env, { needs });
  const lines: string[] = [];
  const passes: Pass[] = [];
  const log = await createLog({ level: 'debug', format: 'json' }, { write: (line) => void lines.push(line) });
  const stop = new AbortController();
  const opened = Promise.withResolvers<string>();
  const ended = runWorker(config, {
    ...{ log, signal: stop.signal, onOpen: opened.resolve },
    onPass: (pass) => passes.push(pass),
    ...timing,
  });
  ended.catch(opened.reject);
  return {
    adminUrl: await opened.promise,
    lines,
    passes,
    ended,
    async [Symbol.asyncDispose]() {
      stop.abort();
      // A worker that is stopped while it still waits for its database rejects.
      await ended.catch(() => {});
    },
  };
}

export interface SpawnedWorker extends TestWorker, AsyncDisposable {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts a worker as a separate process; disposing kills it if it still runs. */
export async function spawnWorker(env: Record<string, string>, checkout?: string): Promise<SpawnedWorker> {
  const { url, ...process } = await spawnProcess('worker', env, /"admin":"([^"]+)"/, checkout);
  return { adminUrl: url, ...process };
}

/** Starts the process of the prefill routes in the same way. */
export async function spawnPrefill(
  env: Record<string, string>,
  checkout?: string,
): Promise<Omit<SpawnedWorker, 'adminUrl'> & { readonly url: string }> {
  return await spawnProcess('prefill', env, /"prefill":"([^"]+)"/, checkout);
}

async function spawnProcess(command: string, env: Record<string, string>, port: RegExp, checkout?: string) {
  const { child, ended } = startIntake([command], env, undefined, checkout);
  const lines: string[] = [];
  const opened = Promise.withResolvers<string>();
  if (child.stderr === null || child.pid === undefined) throw new Error(`The ${command} did not start.`);
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(line);
    const url = port.exec(line)?.[1];
    if (url) opened.resolve(url);
  });
  void ended.then(({ stderr }) => opened.reject(new Error(`The ${command} ended: ${stderr}`)));
  return {
    url: await opened.promise,
    lines,
    pid: child.pid,
    ended,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Starts the tasks of a worker without ports, downloads or read schedules. */
export function startBareWorker(
  deps: Pick<WorkerDeps, 'store' | 'accounts' | 'maintenance'>,
  signal: AbortSignal,
): Worker {
  return startWorker(
    {
      ...deps,
      log: { debug() {}, info() {}, warn() {} },
      watchdog: createWatchdog({ now: () => 0, stuckMs: 1 }),
      onPass: () => {},
      runDownloads: async () => null,
      untilQueued: (_, ended) => new Promise((resolve) => ended.addEventListener('abort', () => resolve())),
      webhooks: [],
      untilEvents: async () => {},
      onDelivered: () => {},
    },
    {
      schedule: null,
      recheckSchedule: null,
      auditSchedule: null,
      owner: 'a worker',
      leaseMs: 30_000,
      lagMs: 0,
      startAt: null,
      accountsAtOnce: 1,
      longAtOnce: 1,
      probeEveryMs: 1_000,
      signal,
    },
  );
}

/** The answer of a probe: its status, and the names of the checks that failed. */
export async function probe(
  { adminUrl }: TestWorker,
  path: '/readyz' | '/livez',
): Promise<{ readonly status: number; readonly failed: readonly string[] }> {
  const answer = await fetch(`${adminUrl}${path}`);
  const { checks } = (await answer.json()) as { checks: { check: string; ok: boolean }[] };
  return { status: answer.status, failed: checks.filter((one) => !one.ok).map((one) => one.check) };
}

/** Whether every application of an account is stored. */
export async function isRead(database: TestDatabase, { advertiserId, size }: BoardAdvertiser): Promise<boolean> {
  const [row] = await database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM intake.applications WHERE advertiser_id = $1`,
    [advertiserId],
  );
  return row?.n === size;
}

/** Whether no file of an account waits to be fetched. */
export async function isStored(
  { query }: TestDatabase,
  { advertiserId }: Pick<BoardAdvertiser, 'advertiserId'>,
): Promise<boolean> {
  return (await query(`SELECT 1 FROM intake.downloads WHERE advertiser_id = $1 LIMIT 1`, [advertiserId])).length === 0;
}

/** Whether an account is read, with all of its files. */
export async function isDone(database: TestDatabase, account: BoardAdvertiser): Promise<boolean> {
  return (await isRead(database, account)) && (await isStored(database, account));
}

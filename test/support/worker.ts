// A worker of several advertisers as an operator runs it: accounts in a file, each credential in a file of its own, free ports.
// In this process or as one of its own; either way it is asked through its admin port.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { runWorker, type WorkerRun } from '../../src/app/worker.ts';
import { loadConfig } from '../../src/config.ts';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import type { Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { createLog } from '../../src/log.ts';
import type { Pass } from '../../src/sync/worker/pass.ts';
import { openScratch } from './blob-stores.ts';
import { type Ended, startIntake } from './intake.ts';
import { toEnvironment } from './syncing.ts';
import type { TestDatabase } from './test-database.ts';

/** Settings of a worker, with what they name on disk. */
export interface WorkerSettings extends AsyncDisposable {
  readonly env: Record<string, string>;
  readonly blobsPath: string;
  /** Writes an account's credential into its file. */
  rotate(name: string, credential: string): void;
}

/** Settings for every account of a board; the n-th is called `account-n`. */
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

/** A worker that runs. */
export interface TestWorker {
  readonly adminUrl: string;
  /** What it has logged so far, a line each. */
  readonly lines: readonly string[];
}

export interface HiredWorker extends TestWorker, AsyncDisposable {
  readonly passes: readonly Pass[];
}

/** A worker in this process; it ends with its scope. */
export async function hireWorker(env: Record<string, string>, timing: Partial<WorkerRun> = {}): Promise<HiredWorker> {
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'prefill'] as const;
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
    async [Symbol.asyncDispose]() {
      stop.abort();
      // Stopped while it still waits for its database, it has nothing to give back and says so.
      await ended.catch(() => {});
    },
  };
}

export interface SpawnedWorker extends TestWorker, AsyncDisposable {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
}

/** A worker as a process of its own; what is left of it is killed with its scope. */
export async function spawnWorker(env: Record<string, string>): Promise<SpawnedWorker> {
  const { child, ended } = startIntake(['worker'], env);
  const lines: string[] = [];
  const opened = Promise.withResolvers<string>();
  if (child.stderr === null || child.pid === undefined) throw new Error('The worker did not start.');
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(line);
    const admin = /"admin":"([^"]+)"/.exec(line)?.[1];
    if (admin) opened.resolve(admin);
  });
  void ended.then(({ stderr }) => opened.reject(new Error(`The worker ended: ${stderr}`)));
  return {
    adminUrl: await opened.promise,
    lines,
    pid: child.pid,
    ended,
    kill: (signal) => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** What a probe answers: its status, and its checks by name. */
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

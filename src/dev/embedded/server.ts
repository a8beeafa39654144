// Creates, starts and stops one Postgres cluster. It is created completely or not at all, started on a free port of 127.0.0.1 with a
// password, and stopped in order. The caller is a keeper that holds the folder's lock, so a server that already runs here was left by a
// killed keeper. Does not know users.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { chown, copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Trouble } from '../../domain/trouble.ts';
import { cleanEnvironment, type Place, runAs } from './place.ts';

/** A server that accepts connections. */
export interface PostgresServer {
  readonly url: string;
  readonly port: number;
  /** Resolves when the server has ended, for whatever reason. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** Trades durability for speed. */
  readonly scratch: boolean;
  /** Used if it is free. */
  readonly port: number | null;
  /** The log file. It is passed to the server as an open descriptor, since the server's account may be unable to open it. */
  readonly log: string;
}

/** Stops a server that a killed keeper left running, creates the cluster if needed, and starts it. */
export async function openServer(place: Place, { scratch, port: wanted, log }: ServerOptions): Promise<PostgresServer> {
  const data = join(place.home, 'data');
  await endLeftover(data);
  if (!existsSync(data)) await createCluster(place, data, scratch);

  const password = (await readFile(join(place.home, 'password'), 'utf8')).trim();
  let port = wanted ?? (await findPort());
  for (let attempt = 1; ; attempt += 1) {
    const server = await start(place, data, port, scratch, log);
    if (server) {
      const stop = () => end(server.pid, server.hasEnded);
      return { url: `postgres://intake:${password}@127.0.0.1:${port}/intake`, port, ended: server.ended, stop };
    }
    const said = await readFile(log, 'utf8');
    const portTaken = said.includes('could not create any TCP/IP sockets');
    // The sessions of a killed server take a moment to exit, and Postgres does not start before they have.
    const notYetGone = said.includes('pre-existing shared memory block');
    if (attempt === 50 || !(portTaken || notYetGone)) throw new Trouble('local', said);
    if (portTaken) port = await findPort();
    await sleep(100);
  }
}

/** Stops a server that still runs on the cluster, and removes the cluster. */
export async function removeCluster({ home }: Place): Promise<void> {
  const data = join(home, 'data');
  await endLeftover(data);
  await rm(data, { recursive: true, force: true });
}

/** Creates a cluster with the empty database `intake`; the folder gets its final name only when it is complete. */
async function createCluster({ home, bin, account }: Place, data: string, scratch: boolean): Promise<void> {
  const made = `${data}.new`;
  const pwfile = `${made}.password`;
  const password = join(home, 'password');
  for (const path of [made, pwfile]) await rm(path, { recursive: true, force: true });
  // The password is kept when a scratch cluster is created again, so that its URL stays the same.
  if (!existsSync(password)) {
    await writeFile(pwfile, `${randomBytes(18).toString('hex')}\n`, { mode: 0o600 });
    await rename(pwfile, password);
  }
  await mkdir(made, { mode: 0o700 });
  await copyFile(password, pwfile);
  if (account) for (const path of [made, pwfile]) await chown(path, account.uid, account.gid);
  const initdb = [
    ...['--pgdata', made, '--username', 'intake', '--auth', 'scram-sha-256', '--pwfile', pwfile, '--no-instructions'],
    // The built-in provider sorts the same on every system, whatever locales are installed.
    ...['--encoding', 'UTF8', '--no-locale', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8'],
    ...(scratch ? ['--no-sync'] : []),
  ];
  await runAs(account, join(bin, 'initdb'), initdb).finally(() => rm(pwfile));
  const fsync = scratch ? 'off' : 'on';
  const single = runAs(account, join(bin, 'postgres'), ['--single', '-D', made, '-c', `fsync=${fsync}`, 'postgres']);
  single.child.stdin?.end('CREATE DATABASE intake\n');
  await single;
  await rename(made, data);
}

const settings = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'timezone=UTC',
  // The log is needed only to explain a failed start. Failing statements and their values may be personal data, so they are not logged.
  'log_min_messages=log',
  'log_min_error_statement=panic',
  'log_error_verbosity=terse',
  'log_timezone=UTC',
];

// Commits stay synchronous: without fsync that costs almost nothing, and committed data survive a kill -9 of the server.
const scratchSettings = ['fsync=off', 'full_page_writes=off', 'max_connections=200'];

/** Undefined when the server ended before it was ready; the log says why. */
async function start({ bin, account }: Place, data: string, port: number, scratch: boolean, log: string) {
  const chosen = [`port=${port}`, ...settings, ...(scratch ? scratchSettings : [])];
  const out = openSync(log, 'w', 0o600);
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...chosen.flatMap((setting) => ['-c', setting])], {
    ...account,
    cwd: '/',
    env: cleanEnvironment,
    stdio: ['ignore', out, out],
  });
  closeSync(out);
  let gone = false;
  const ended = new Promise<void>((resolve, reject) => child.once('exit', () => resolve()).once('error', reject));
  ended.finally(() => (gone = true)).catch(() => undefined);
  while (!gone) {
    if (isReady(data, child.pid)) return { pid: child.pid as number, ended, hasEnded: () => gone };
    await Promise.race([ended, sleep(10)]);
  }
  return undefined;
}

/** Parses postmaster.pid as pg_ctl does: the pid is in the first line, the state in the eighth. */
function loadPidFile(data: string): { pid: number; state: string } | undefined {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return { pid: Number(lines[0]), state: lines[7]?.trim() ?? '' };
  } catch {
    return undefined;
  }
}

function isReady(data: string, pid: number | undefined): boolean {
  const file = loadPidFile(data);
  return file !== undefined && file.pid === pid && file.state === 'ready';
}

async function endLeftover(data: string): Promise<void> {
  const pid = loadPidFile(data)?.pid;
  if (!pid || !isTaken(pid)) return;
  if (await isServerOf(data, pid)) await end(pid, async () => !(await isServerOf(data, pid)));
  // The pid may belong to another process by now (after a restart of the container or machine). Postgres would then refuse to start.
  await rm(join(data, 'postmaster.pid'), { force: true });
}

/** Checks the command line, which a zombie process does not have. */
async function isServerOf(data: string, pid: number): Promise<boolean> {
  const command =
    process.platform === 'linux'
      ? (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ')
      : (await runAs(undefined, 'ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))).stdout;
  return command.includes(`-D ${data} `);
}

function isTaken(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Requests a fast shutdown, then an immediate one, then kills the server. */
async function end(pid: number, hasEnded: () => boolean | Promise<boolean>): Promise<void> {
  for (const [signal, retryForMs] of stopSignals) {
    if (await hasEnded()) return;
    process.kill(pid, signal);
    const deadlineAt = performance.now() + retryForMs;
    while (performance.now() < deadlineAt) {
      if (await hasEnded()) return;
      await sleep(5);
    }
  }
}

const stopSignals = [
  ['SIGINT', 20_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 5_000],
] as const;

/** Finds a free port. If another process takes it before the server does, openServer tries the next one. */
async function findPort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** A message for the user: what happened, what was kept and what to do. */
export function toMessage(error: unknown, folder: string): string {
  const text = `${(error as { stderr?: string }).stderr ?? ''}\n${error instanceof Error ? error.message : String(error)}`;
  const advice = advices.find(([pattern]) => pattern.test(text))?.[1];
  const line =
    text.split('\n').find((line) => /FATAL|PANIC|error:|E[A-Z]{3,}/.test(line)) ?? text.trim().split('\n')[0] ?? '';
  const said = line.replace(/^.*?(?:FATAL|PANIC|error): */, '');
  return `The embedded Postgres did not start: ${said}. Nothing stored was removed. ${advice ?? 'Set DATABASE_URL to use another server.'} (${folder})`;
}

const advices: readonly (readonly [RegExp, string])[] = [
  [/ENOSPC|No space left/, 'Free some disk space and start again.'],
  [
    /EACCES|EPERM|Permission denied|cannot lock/,
    'Give this user access to the folder, or remove the folder to start with an empty database.',
  ],
  [
    /incompatible with server/,
    'The data is of another Postgres version: remove the folder to start with an empty database, or set DATABASE_URL.',
  ],
  [
    /ENOENT|cannot open shared object|not found/,
    'The binaries do not run on this system: set DATABASE_URL to a Postgres server.',
  ],
];

// A Postgres as a distribution ships it, with default settings, TLS with a certificate of a private authority, and SCRAM passwords.
// The search covers /usr/lib/postgresql here and in the root directories of other releases that REAL_CHROOTS names (made by debootstrap).

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { makeAuthority, makeCertificate } from '../support/authority.ts';
import { query, succeeds } from '../support/embedded-root.ts';
import { findFreePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';

export interface PostgresChoice {
  readonly name: string;
  /** The folder of its programs, relative to `root`. */
  readonly bin: string;
  /** The root directory of its system; empty for this one. */
  readonly root: string;
}

export interface RealPostgres extends AsyncDisposable {
  /** Uses the host name in the certificate, with sslmode=verify-full. */
  readonly url: string;
  /** Without TLS, by `host`. */
  readonly plainUrl: string;
  /** Uses the Unix socket, in the notation of psql. */
  readonly socketUrl: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** CPU time that the server and its sessions have used so far. */
  loadCpuMs(): number;
}

export function findPostgres(chroots: readonly string[]): PostgresChoice[] {
  return ['', ...chroots].flatMap((root) =>
    globSync(join(root, '/usr/{lib/postgresql/*,pgsql-*}/bin/postgres')).map((path) => {
      const bin = join(path, '..').slice(root.length);
      return { name: `Postgres ${toVersion(root, join(bin, 'postgres'))}`, bin, root };
    }),
  );
}

function toVersion(root: string, program: string): string {
  const said = execFileSync(...toCommand(root, [program, '--version']), { encoding: 'utf8' });
  return said.replace('postgres (PostgreSQL) ', '').trim();
}

/** Runs a command as the account that owns the cluster, because Postgres refuses to run as root. */
function toCommand(root: string, command: readonly string[]): [string, string[]] {
  if (process.getuid?.() !== 0) return [command[0] ?? '', command.slice(1)];
  return ['chroot', ['--userspec=postgres:postgres', root || '/', ...command]];
}

/** Starts a server with these settings; disposing stops it. By `host` it takes connections without TLS as well. */
export async function openRealPostgres(
  { bin, root }: PostgresChoice,
  { settings = [], access = 'hostssl' }: { settings?: readonly string[]; access?: 'host' | 'hostssl' } = {},
): Promise<RealPostgres> {
  mkdirSync(join(root, '/var/tmp'), { recursive: true });
  const folder = mkdtempSync(join(root, '/var/tmp/intake-real-'));
  const inside = folder.slice(root.length);
  const path = (name: string) => join(folder, name);
  chmodSync(folder, 0o777);
  const run = (...command: string[]) => execFileSync(...toCommand(root, command), { stdio: 'pipe', cwd: '/' });
  const password = randomBytes(12).toString('hex');
  writeFileSync(path('password'), `${password}\n`, { mode: 0o644 });
  const initdb = ['-D', join(inside, 'data'), '-U', 'intake', '--auth', 'scram-sha-256', '-E', 'UTF8', '--no-locale'];
  run(join(bin, 'initdb'), ...initdb, '--pwfile', join(inside, 'password'));
  makeAuthority(path('root'));
  makeCertificate(path('root'), path('server'));
  const [uid, gid] = process.getuid?.() === 0 ? loadOwner(root) : [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  for (const name of ['server.crt', 'server.key']) {
    const copy = join(folder, 'data', name);
    copyFileSync(path(name), copy);
    chmodSync(copy, 0o600);
    chownSync(copy, uid, gid);
  }
  const port = await findFreePort();
  appendFileSync(
    join(folder, 'data/postgresql.conf'),
    `\nlisten_addresses = '127.0.0.1'\nport = ${port}\nunix_socket_directories = '${inside}'\nssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n`,
  );
  writeFileSync(
    join(folder, 'data/pg_hba.conf'),
    `local all all scram-sha-256\n${access} all all 127.0.0.1/32 scram-sha-256\n`,
  );
  const chosen = settings.flatMap((setting) => ['-c', setting]);
  const tls = `sslmode=verify-full&sslrootcert=${path('root.crt')}`;
  const plain = `postgres://intake:${password}@localhost:${port}`;
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    const [program, args] = toCommand(root, [join(bin, 'postgres'), '-D', join(inside, 'data'), ...chosen]);
    server = spawn(program, args, { stdio: 'ignore', cwd: '/' });
    await until(() => succeeds(query(`${plain}/postgres?${tls}`, 'SELECT 1')));
  }
  async function stop(): Promise<void> {
    if (server === null) return;
    const ended = once(server, 'exit');
    server.kill('SIGINT');
    server = null;
    await ended;
  }
  await start();
  return {
    url: `${plain}/postgres?${tls}`,
    plainUrl: `${plain}/postgres`,
    socketUrl: `postgres://intake:${password}@/postgres?host=${folder}&port=${port}`,
    start,
    stop,
    loadCpuMs: () => loadTreeMs(server?.pid ?? 0),
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function loadOwner(root: string): [number, number] {
  const line = readFileSync(join(root, '/etc/passwd'), 'utf8')
    .split('\n')
    .find((one) => one.startsWith('postgres:'));
  const [, , uid, gid] = line?.split(':') ?? [];
  return [Number(uid), Number(gid)];
}

/** Linux counts CPU time in hundredths of a second. */
const tickMs = 10;

/** CPU time of a process, of its running children and of those that have ended. */
export function loadTreeMs(root: number): number {
  if (!existsSync(`/proc/${root}`)) return 0;
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => loadStat(Number(name)));
  const own = loadStat(root);
  const children = all.filter(({ parent }) => parent === root);
  return [own, ...children].reduce((sum, { ticks }) => sum + ticks, 0) * tickMs;
}

function loadStat(pid: number): { readonly parent: number; readonly ticks: number } {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    const at = (field: number) => fields[field - 3] ?? 0;
    return { parent: at(4), ticks: at(14) + at(15) + at(16) + at(17) };
  } catch {
    return { parent: 0, ticks: 0 };
  }
}

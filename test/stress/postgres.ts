// A Postgres as a distribution ships it, in a separate folder.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, chmodSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { query, succeeds } from '../support/database/embedded-root.ts';
import { findFreePort } from '../support/servers/free-port.ts';
import { until } from '../support/suite/until.ts';

export interface RealPostgres extends AsyncDisposable {
  readonly url: string;
}

/** The folder of the programs of this major version; undefined if it is not installed. */
export function findPostgres(major: number): string | undefined {
  return globSync(`/usr/{lib/postgresql/${major},pgsql-${major}}/bin`)[0];
}

/** Postgres refuses to run as root. */
function toCommand(command: readonly string[]): [string, string[]] {
  if (process.getuid?.() !== 0) return [command[0] ?? '', command.slice(1)];
  return ['chroot', ['--userspec=postgres:postgres', '/', ...command]];
}

/** Starts a server with these settings; disposing stops it. */
export async function openRealPostgres(bin: string, settings: readonly string[]): Promise<RealPostgres> {
  const folder = mkdtempSync('/var/tmp/intake-real-');
  chmodSync(folder, 0o777);
  const data = join(folder, 'data');
  const password = randomBytes(12).toString('hex');
  writeFileSync(join(folder, 'password'), `${password}\n`, { mode: 0o644 });
  const initdb = ['-D', data, '-U', 'intake', '--auth', 'scram-sha-256', '-E', 'UTF8', '--no-locale'];
  const [program, args] = toCommand([join(bin, 'initdb'), ...initdb, '--pwfile', join(folder, 'password')]);
  execFileSync(program, args, { stdio: 'pipe', cwd: '/' });
  const port = await findFreePort();
  const place = ["listen_addresses = '127.0.0.1'", `port = ${port}`, `unix_socket_directories = '${folder}'`];
  appendFileSync(join(data, 'postgresql.conf'), `\n${place.join('\n')}\n`);
  const server = start(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])]);
  const url = `postgres://intake:${password}@localhost:${port}/postgres`;
  await until(() => succeeds(query(url, 'SELECT 1')));
  return {
    url,
    async [Symbol.asyncDispose]() {
      const ended = once(server, 'exit');
      server.kill('SIGINT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function start(path: string, options: readonly string[]): ChildProcess {
  const [program, args] = toCommand([path, ...options]);
  return spawn(program, args, { stdio: 'ignore', cwd: '/' });
}

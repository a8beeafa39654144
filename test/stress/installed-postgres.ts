// Runs a server of a Postgres that is installed on this machine, in a separate folder; null when that version is not installed.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { query, succeeds } from '../support/embedded-root.ts';
import { findFreePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';

const password = 'only-a-test';

const settings = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'timezone=UTC',
  'fsync=off',
  'full_page_writes=off',
  'max_connections=200',
];

/** Starts the server; disposing stops it. */
export async function openInstalledPostgres(
  version: number,
  folder: string,
): Promise<({ readonly url: string } & AsyncDisposable) | null> {
  const bin = [`/usr/lib/postgresql/${version}/bin`, `/usr/pgsql-${version}/bin`].find((path) =>
    existsSync(join(path, 'initdb')),
  );
  if (!bin) return null;
  const account = loadAccount();
  mkdirSync(folder);
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, password);
  chmodSync(join(folder, '..'), 0o755);
  if (account) for (const path of [data, passwordFile]) chownSync(path, account.uid, account.gid);
  const initdb = ['--pgdata', data, '--username', 'intake', '--auth', 'scram-sha-256', '--pwfile', passwordFile];
  execFileSync(join(bin, 'initdb'), [...initdb, '--encoding', 'UTF8', '--no-locale', '--no-sync'], {
    ...account,
    cwd: '/',
    stdio: 'pipe',
  });
  const port = await findFreePort();
  const chosen = [`port=${port}`, ...settings].flatMap((setting) => ['-c', setting]);
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...chosen], { ...account, cwd: '/', stdio: 'ignore' });
  const url = `postgres://intake:${password}@127.0.0.1:${port}/postgres`;
  await until(() => succeeds(query(url, 'SELECT 1')));
  return {
    url,
    async [Symbol.asyncDispose]() {
      const gone = once(server, 'exit');
      server.kill('SIGINT');
      await gone;
    },
  };
}

/** The account that runs Postgres when the tests run as root, because Postgres refuses to run as root. */
function loadAccount(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => /^(postgres|nobody):/.test(each));
  const [, , uid = '65534', gid = '65534'] = line?.split(':') ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

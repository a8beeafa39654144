// A real pgbouncer in transaction mode in front of a test database, with few sessions for many clients, so that state left in a session
// reaches another client.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePort } from '../servers/free-port.ts';
import { openScratch } from '../stores/blob-stores.ts';
import { until } from '../suite/until.ts';
import { answers } from './embedded-root.ts';

export interface Pooler extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** kill -9: every client loses its connection. */
  kill(): Promise<void>;
  /** Starts it again at the same port. */
  start(): Promise<void>;
}

/** Opens the pooler; null where it is not installed. */
export async function openPooler(target: string, poolSize = 3): Promise<Pooler | null> {
  const { hostname, port, username, password, pathname } = new URL(target);
  const scratch = await openScratch();
  chmodSync(scratch.path, 0o755);
  const ownPort = await findFreePort();
  const file = join(scratch.path, 'pgbouncer.ini');
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${hostname} port=${port} user=${username}${password && ` password=${password}`}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${ownPort}`,
      'unix_socket_dir =',
      'server_tls_sslmode = prefer',
      'auth_type = any',
      'pool_mode = transaction',
      `default_pool_size = ${poolSize}`,
      'max_client_conn = 200',
      // After a failed login, pgbouncer retries the server after one second; its default is 15.
      'server_login_retry = 1',
    ].join('\n'),
  );
  const isRoot = process.getuid?.() === 0;
  const url = `postgres://intake@127.0.0.1:${ownPort}${pathname}`;
  let child: ChildProcess | null = null;

  async function launch(): Promise<boolean> {
    const started = spawn('pgbouncer', [...(isRoot ? ['-u', 'nobody'] : []), file], { stdio: 'ignore' });
    const failed = once(started, 'error').then(() => false);
    if (!(await Promise.race([once(started, 'spawn').then(() => true), failed]))) return false;
    child = started;
    return true;
  }
  async function kill(): Promise<void> {
    if (child === null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    child = null;
    await ended;
  }

  if (!(await launch())) {
    await scratch[Symbol.asyncDispose]();
    return null;
  }
  await until(() => answers(url));
  return {
    url,
    port: ownPort,
    kill,
    async start() {
      if (child === null) await launch();
    },
    async [Symbol.asyncDispose]() {
      await kill();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

// A real pgbouncer in transaction mode in front of a test database, with few sessions for many clients, so that whatever is left in a
// session meets somebody else.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openScratch } from './blob-stores.ts';
import { answers, eventually } from './embedded-root.ts';
import { findFreePort } from './prefill-stage.ts';

/** Opens the pooler; null where it is not installed. */
export async function openPooler(target: string): Promise<({ readonly url: string } & AsyncDisposable) | null> {
  const { hostname, port, username, password, pathname } = new URL(target);
  const scratch = await openScratch();
  chmodSync(scratch.path, 0o755);
  const ownPort = await findFreePort();
  const file = join(scratch.path, 'pgbouncer.ini');
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${hostname} port=${port} user=${username} password=${password}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${ownPort}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      'default_pool_size = 3',
      'max_client_conn = 200',
    ].join('\n'),
  );
  const isRoot = process.getuid?.() === 0;
  const child: ChildProcess = spawn('pgbouncer', [...(isRoot ? ['-u', 'nobody'] : []), file], { stdio: 'ignore' });
  const failed = once(child, 'error');
  const isThere = await Promise.race([once(child, 'spawn').then(() => true), failed.then(() => false)]);
  if (!isThere) {
    await scratch[Symbol.asyncDispose]();
    return null;
  }
  const url = `postgres://intake@127.0.0.1:${ownPort}${pathname}`;
  if (!(await eventually(() => answers(url)))) throw new Error('The pooler does not answer.');
  return {
    url,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await scratch[Symbol.asyncDispose]();
    },
  };
}

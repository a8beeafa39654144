// A project folder of a test's own for embedded servers, and what can be seen of a server from outside.

import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

/** An empty project folder; removed, with what was put elsewhere on its behalf, when disposed. */
export interface EmbeddedRoot extends Disposable {
  readonly path: string;
  /** Where the server's files lie. */
  home(): string;
  serverPid(): number;
}

/** With mode 0700 the account that serves root cannot reach it. */
export function openRoot({ mode = 0o755, folder = 'postgres' } = {}): EmbeddedRoot {
  const path = mkdtempSync(join(tmpdir(), 'intake-root-'));
  chmodSync(path, mode);
  const note = join(path, '.intake', folder, 'elsewhere');
  const home = () => (existsSync(note) ? readFileSync(note, 'utf8').trim() : join(path, '.intake', folder));
  return {
    path,
    home,
    serverPid: () => Number(readFileSync(join(home(), 'data', 'postmaster.pid'), 'utf8').split('\n')[0]),
    [Symbol.dispose]() {
      rmSync(home(), { recursive: true, force: true });
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Runs one statement over a connection of its own. */
export async function query(url: string, sql: string): Promise<pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Whether a server answers at the URL, in whatever state. */
export function answers(url: string): Promise<boolean> {
  return query(url, 'SELECT 1').then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ECONNREFUSED',
  );
}

export function succeeds(attempt: Promise<unknown>): Promise<boolean> {
  return attempt.then(
    () => true,
    () => false,
  );
}

/** A user in a process of its own that has been told the URL. */
export async function startUser(root: string): Promise<{ child: ChildProcessWithoutNullStreams; url: string }> {
  const script = fileURLToPath(new URL('./embedded-user.ts', import.meta.url));
  const child = spawn(process.execPath, [script, root]);
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return { child, url: line.trim() };
}

/** The keeper is the server's parent. */
export function loadParent(pid: number): number {
  if (process.platform !== 'linux')
    return Number(execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' }));
  return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

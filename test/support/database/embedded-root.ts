// A separate project folder for a test of embedded servers, and functions that observe a server from outside.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

/** An empty project folder. Disposing removes it, and the server's files where the server keeps them elsewhere. */
export interface EmbeddedRoot extends Disposable {
  readonly path: string;
  /** The folder of the server's files. */
  home(): string;
  serverPid(): number;
}

/** When root runs the tests, the server runs under another account, which cannot enter a folder with mode 0700. */
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

/** Runs one statement over a new connection. */
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

/** Whether a server answers at the URL, even with an error. */
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

/** Starts a user of the embedded server in a separate process and waits until it prints the URL. */
export async function startUser(root: string): Promise<{ child: ChildProcessWithoutNullStreams; url: string }> {
  const script = fileURLToPath(new URL('./embedded-user.ts', import.meta.url));
  const child = spawn(process.execPath, [script, root]);
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return { child, url: line.trim() };
}

// Runs a process to its end and tells its peak memory and the longest block of its event loop.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Watched } from './watched.ts';

/** Runs node to its end, with only PATH, HOME and `env` in its environment. */
export async function watchRun(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Watched> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-bench-'));
  try {
    const file = join(folder, 'watched.json');
    const child = spawn(process.execPath, ['--import', join(import.meta.dirname, 'watched.ts'), ...args], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, BENCH_WATCHED: file, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-2_000);
    });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error(`The process ended with ${code}: ${said}`);
    return JSON.parse(readFileSync(file, 'utf8')) as Watched;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Measures the peak memory of a process by the kernel's high-water mark. Linux only.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

/** Runs node to its end, with only PATH, HOME and `env` in its environment; returns its peak resident memory in bytes. */
export async function watchPeak(args: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-2_000);
  });
  let peakBytes = 0;
  const timer = setInterval(() => {
    try {
      const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
      peakBytes = Math.max(peakBytes, Number(kb ?? 0) * 1_024);
    } catch {
      // The process has just ended.
    }
  }, 20);
  const [code] = await once(child, 'exit');
  clearInterval(timer);
  if (code !== 0) throw new Error(`The process ended with ${code}: ${said}`);
  return peakBytes;
}

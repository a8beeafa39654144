// Loaded into a process that a bench watches (node --import): when it ends, it writes its peak memory and the longest block of its event
// loop to the file named by BENCH_WATCHED. Linux only: the peak is the kernel's high-water mark.

import { readFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface Watched {
  readonly peakBytes: number;
  readonly longestBlockMs: number;
  /** The most CPU that the main thread used between two looks at the loop. A longer block was the machine's, or a wait for the disk. */
  readonly longestOwnMs: number;
}

const file = process.env.BENCH_WATCHED;
if (file !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  let longestOwnMs = 0;
  let before = 0;
  const look = () => {
    const { user, system } = process.threadCpuUsage();
    const cpuMs = (user + system) / 1_000;
    if (before > 0) longestOwnMs = Math.max(longestOwnMs, cpuMs - before);
    before = cpuMs;
  };
  // The first seconds load the modules: at a start nobody waits for the loop.
  setTimeout(() => {
    delay.enable();
    setInterval(look, 10).unref();
  }, 2_000).unref();
  process.on('exit', () => {
    const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    const longestBlockMs = Math.max(0, delay.max / 1e6 - 10);
    const watched: Watched = { peakBytes: Number(kb) * 1_024, longestBlockMs, longestOwnMs };
    writeFileSync(file, JSON.stringify(watched));
  });
}

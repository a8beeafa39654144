// Loaded into a process that a bench watches (node --import): when it ends, it writes its peak memory and the longest block of its event
// loop to the file named by BENCH_WATCHED. Linux only: the peak is the kernel's high-water mark.

import { readFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface Watched {
  readonly peakBytes: number;
  readonly longestBlockMs: number;
}

const file = process.env.BENCH_WATCHED;
if (file !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  // The first seconds load the modules: at a start nobody waits for the loop.
  setTimeout(() => delay.enable(), 2_000).unref();
  process.on('exit', () => {
    const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    const watched: Watched = { peakBytes: Number(kb) * 1_024, longestBlockMs: Math.max(0, delay.max / 1e6 - 10) };
    writeFileSync(file, JSON.stringify(watched));
  });
}

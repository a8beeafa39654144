// The cost of polling an idle advertiser, and of an application that arrives at a busy one, and whether both stay the same with a thousand or
// ten thousand advertisers. idle-advertisers.ts measures it and prints a table for people; this file turns the rows into figures.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Figure, report, type Size, toCpuMs } from './support/figure.ts';
import type { Cost } from './support/place.ts';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const sizes = size.quick ? [10, 1_000] : [10, 1_000, 10_000];
  const args = [
    join(import.meta.dirname, 'idle-advertisers.ts'),
    ...sizes.map(String),
    ...(size.quick ? ['--quick'] : []),
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  let least: Cost | null = null;
  let first: Cost | null = null;
  let firstArrivalMs = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const cells = line.split('|').slice(1, -1).map(Number);
    const [advertisers = 0, pollsPerSecond = 0, workerMs = 0, postgresMs = 0, walBytes = 0, ratio = 0, , ms = 0] =
      cells;
    if (cells.length < 8 || Number.isNaN(ratio)) continue;
    const ours = { wallMs: 1_000 / pollsPerSecond, nodeMs: workerMs, postgresMs };
    // The row of the anchor comes first. Its name is not a number.
    if (Number.isNaN(advertisers)) least = ours;
    else if (advertisers === sizes[0]) {
      first = ours;
      firstArrivalMs = ms;
      const row = { ours, theirs: least };
      const anchor = 'the least possible: one request over HTTP and one SELECT';
      const cpuMs = workerMs + postgresMs;
      yield {
        ...row,
        figure: 'poll of an idle advertiser, CPU',
        anchor,
        ratio: cpuMs,
        unit: 'ms',
        goal: { atMost: 3 },
        note: least
          ? `${(toCpuMs(ours) / toCpuMs(least)).toFixed(1)} times the anchor's CPU`
          : 'no anchor was measured',
      };
      yield {
        ...row,
        figure: 'poll of an idle advertiser, WAL',
        anchor,
        ratio: walBytes,
        unit: 'bytes',
        goal: { atMost: 500 },
      };
    } else {
      const figure = `${advertisers} advertisers, idle: cost of each`;
      const row = { anchor: `at ${sizes[0]}`, goal: { atMost: 1.2 } };
      yield { ...row, figure, ratio, ours, theirs: first };
      yield {
        // At many advertisers it is polled seldom, and what arrived comes in one answer. That costs less than the noise of the polls.
        ...{ ...row, ratio: Math.max(0, ms / firstArrivalMs), ours: null, theirs: null },
        figure: `${advertisers} advertisers, one busy: cost of an application that arrives`,
        note: `${firstArrivalMs} ms and ${ms} ms of CPU`,
      };
    }
  }
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw new Error(`bench/idle-advertisers.ts ended with ${code}.`);
}

if (import.meta.main) await report(measure);

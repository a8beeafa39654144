// The published figures: npm run bench [-- NAME ..] [-- --quick] [-- --json]. Runs every bench, or those named, as separate processes, one
// after the other, and prints each figure when it is ready. A complete run at full size also writes bench/results.md.

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { type Figure, renderFigure, renderGoal } from './support/figure.ts';

/** In the order of the table. */
const benches = [
  'first-load',
  'sync-engine',
  're-poll',
  'whole-path',
  'xml-list',
  'files',
  'large-files',
  'queue',
  'sweep-requests',
  'idle',
  'start',
  'growth',
];

/** A figure as a bench prints it with --json. */
type Line = Omit<Figure, 'ours' | 'theirs'> & {
  readonly met: boolean | null;
  readonly ours: { readonly wallMs: number; readonly cpuMs: number } | null;
  readonly theirs: { readonly wallMs: number; readonly cpuMs: number } | null;
};

const { values, positionals: named } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const unknown = named.find((name) => !benches.includes(name));
if (unknown !== undefined) {
  console.error(`There is no bench "${unknown}". There are: ${benches.join(', ')}.`);
  process.exit(2);
}
const chosen = named.length > 0 ? named : benches;

const lines: Line[] = [];
const failed: string[] = [];
const loads = [loadavg()[0] ?? 0];
for (const name of chosen) {
  if (!(await run(name))) failed.push(name);
  loads.push(loadavg()[0] ?? 0);
}
if (!values.quick && named.length === 0) {
  writeFileSync(join(import.meta.dirname, 'results.md'), renderResults());
}
process.exitCode = failed.length > 0 ? 1 : 0;

/** Runs one bench; keeps and prints its lines. False if it failed. */
async function run(name: string): Promise<boolean> {
  const args = [join(import.meta.dirname, `${name}.ts`), '--json', ...(values.quick ? ['--quick'] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as Line;
    lines.push(line);
    console.log(
      values.json
        ? text
        : `${toVerdict(line).padEnd(8)} ${line.figure}: ${renderFigure(line)} (${line.ratio === null ? line.note : `goal ${renderGoal(line.goal, line.unit)}`})`,
    );
  }
  if ((await ended) === 0) return true;
  console.error(`bench/${name}.ts failed.`);
  return false;
}

function toVerdict({ met }: Line): string {
  return met === null ? '-' : met ? 'met' : 'not met';
}

function renderResults(): string {
  const cost = (side: Line['ours']) => (side === null ? '' : `${toSeconds(side.wallMs)} / ${toSeconds(side.cpuMs)}`);
  const rows = lines.map((line) =>
    [
      line.figure,
      line.anchor,
      renderGoal(line.goal, line.unit),
      `**${renderFigure(line)}**`,
      toVerdict(line),
      cost(line.ours),
      cost(line.theirs),
      line.note ?? '',
    ].join(' | '),
  );
  const [cpu] = cpus();
  const machine = `${cpus().length} x ${cpu?.model ?? process.arch}, ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform} ${process.arch}, Node ${process.version}`;
  return `# Figures

\`npm run bench\` on ${machine}, the embedded Postgres 18 with fsync on, ${new Date().toISOString().slice(0, 10)}; load average ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)} during the run.

Most figures are ratios to an anchor measured in the same run. Both sides alternate and run at least three times, or nine times where a run takes a few seconds; the lowest cost of each side counts. Each size of a growing account and each number of idle advertisers runs once. Requests are counted, not timed. Ratios are comparable between machines; seconds hold only for this machine. Seconds are wall time / CPU time of node and Postgres together. docs/performance.md explains the costs, and what did not help.

| figure | anchor | goal | measured | | ours, s | anchor, s | |
|---|---|---|---|---|---|---|---|
${rows.map((row) => `| ${row} |`).join('\n')}
${failed.length > 0 ? `\nFailed: ${failed.join(', ')}.\n` : ''}`;
}

function toSeconds(ms: number): string {
  return ms >= 100 ? (ms / 1_000).toFixed(2) : (ms / 1_000).toPrecision(2);
}

// The fault harness: real workers, a real Postgres, a source and a store that misbehave, and a network between them that does too.
//   npm run chaos -- --seeds 20 --seconds 30          twenty plans of half a minute
//   npm run chaos -- --seed 17 --seconds 30           one of them again
// Ends with 1 when a promise was broken. Over 20 seeds or more, a named moment at which no process ever died is a failure too.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type CrashPoint, crashPoints } from '../../src/domain/crash-point.ts';
import { openCluster } from './cluster.ts';
import { playSeed, type Verdict } from './play.ts';
import { toPlan } from './seed.ts';

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string' },
    /** Where a run of several begins. */
    from: { type: 'string', default: '1' },
    /** Only these rows of faults.ts, by comma. */
    faults: { type: 'string' },
    /** The first broken promise ends the run. */
    bail: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const seconds = Number(options.seconds);
const seeds =
  options.seed === undefined
    ? Array.from({ length: Number(options.seeds) }, (_, at) => Number(options.from) + at)
    : [Number(options.seed)];

// The seed under way is played to its end: what it opened must be closed.
let isStopping = false;
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    isStopping = true;
  });
}

const folder = mkdtempSync(join(tmpdir(), 'intake-chaos-'));
const fired = new Map<CrashPoint, number>();
const verdicts: Verdict[] = [];
const isFine = await playAll();
process.exitCode = isFine ? 0 : 1;
if (isFine) rmSync(folder, { recursive: true, force: true });
else console.log(`Logs and plans are kept in ${folder}.`);

async function playAll(): Promise<boolean> {
  await using cluster = await openCluster(mkdtempSync(join(tmpdir(), 'intake-chaos-pg-')));
  let turn = seeds[0] ?? 0;
  for (const seed of seeds) {
    if (isStopping || (options.bail && verdicts.some((one) => one.broken !== null))) break;
    const plan = toPlan(seed, seconds, options.faults?.split(','));
    const nextPoint = (among: readonly CrashPoint[]) => among[turn++ % among.length] as CrashPoint;
    const verdict = await playSeed(plan, { cluster, folder, fired, nextPoint }).catch((error: Error) => ({
      ...{ seed, counts: {}, applications: 0, files: 0, looks: 0, recoveredMs: 0 },
      broken: error.stack ?? error.message,
    }));
    verdicts.push(verdict);
    console.log(renderVerdict(verdict));
    if (verdict.broken === null) continue;
    console.log(`  plan: ${JSON.stringify({ ...plan, schedule: undefined })}`);
    for (const { atMs, name, forMs } of plan.schedule) console.log(`  ${atMs} ms: ${name}, ${forMs} ms`);
    const only = options.faults ? ` --faults ${options.faults}` : '';
    console.log(`  again: npm run chaos -- --seed ${seed} --seconds ${seconds}${only}`);
  }
  const broken = verdicts.filter((verdict) => verdict.broken !== null);
  const never = Object.values<readonly CrashPoint[]>(crashPoints)
    .flat()
    .filter((point) => !fired.has(point));
  console.log(renderSum(broken.length));
  if (never.length > 0) console.log(`Never reached: ${never.join(', ')}.`);
  return broken.length === 0 && (never.length === 0 || seeds.length < 20);
}

function renderVerdict({ seed, broken, counts, applications, files, looks, recoveredMs }: Verdict): string {
  if (broken !== null) return `seed ${seed} BROKE A PROMISE: ${broken}`;
  const played = ['process', 'database', 'network', 'source', 'storage', 'clock']
    .map((kind) => `${counts[kind] ?? 0} ${kind}`)
    .join(', ');
  return `seed ${seed}: ${applications} applications, ${files} files equal ${(recoveredMs / 1_000).toFixed(1)} s after the last fault; ${played}; ${counts.starts} starts, ${looks} looks`;
}

function renderSum(brokenSeeds: number): string {
  const sum: Record<string, number> = {};
  for (const { counts } of verdicts) for (const [name, n] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + n;
  const total = (pick: (verdict: Verdict) => number) => verdicts.reduce((all, verdict) => all + pick(verdict), 0);
  const facts = {
    seeds: verdicts.length,
    seconds,
    brokenSeeds,
    applications: total((one) => one.applications),
    files: total((one) => one.files),
    looks: total((one) => one.looks),
    longestRecoveryMs: Math.round(Math.max(...verdicts.map((one) => one.recoveredMs))),
    moments: Object.fromEntries(fired),
    counts: sum,
  };
  if (options.json) return JSON.stringify(facts);
  return `${facts.seeds} seeds of ${seconds} s, ${brokenSeeds} broke a promise; longest recovery ${facts.longestRecoveryMs} ms\n${JSON.stringify(facts, null, 1)}`;
}

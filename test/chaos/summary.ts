// The summary of a run, of one process or of several: the faults played, the broken promises, and the crash points that were never reached.
// A finding begins with the promise that is broken; the summary counts findings by it.

import { type CrashPoint, crashPoints } from '../../src/domain/crash-point.ts';
import type { FaultClass } from './faults/faults.ts';
import type { Verdict } from './play.ts';

const classes: readonly FaultClass[] = ['process', 'database', 'network', 'source', 'storage', 'clock'];
/** Those that a plan arms. Extracts are not part of a plan; test/integration/extract/extract.test.ts kills them at theirs. */
const { extract: _, ...played } = crashPoints;
const points: readonly CrashPoint[] = Object.values<readonly CrashPoint[]>(played).flat();

/** From this number of seeds on, every crash point must have been reached. */
export const enoughSeeds = 20;

/** Whether no promise was broken and, with enough seeds, every crash point was reached. */
export function isFine(verdicts: readonly Verdict[]): boolean {
  const isWhole = verdicts.length < enoughSeeds || findNever(verdicts).length === 0;
  return isWhole && verdicts.every((verdict) => verdict.broken === null);
}

function findNever(verdicts: readonly Verdict[]): CrashPoint[] {
  return points.filter((point) => !verdicts.some(({ fired }) => fired[point]));
}

/** One line about a seed. */
export function renderVerdict({ seed, broken, counts, applications, files, looks, recoveredMs }: Verdict): string {
  if (broken !== null) return `seed ${seed} BROKE A PROMISE: ${broken}`;
  const played = classes.map((kind) => `${counts[kind] ?? 0} ${kind}`).join(', ');
  return `seed ${seed}: ${applications} applications, ${files} files equal ${(recoveredMs / 1_000).toFixed(1)} s after the last fault; ${played}; ${counts.starts} starts, ${looks} looks`;
}

/** The table of a run, from which docs/reliability.md takes its figures. */
export function renderSummary(verdicts: readonly Verdict[]): string {
  const counts = addUp(verdicts.map((verdict) => verdict.counts));
  const fired = addUp(verdicts.map((verdict) => verdict.fired));
  const sum = (pick: (verdict: Verdict) => number) => verdicts.reduce((all, verdict) => all + pick(verdict), 0);
  const toList = (names: readonly string[], of: ReadonlyMap<string, number>) =>
    names.map((name) => `${of.get(name) ?? 0} ${name}`).join(', ');
  const n = (name: string) => counts.get(name) ?? 0;
  const broken = verdicts.flatMap((verdict) => (verdict.broken === null ? [] : [toKind(verdict.broken)]));
  const longest = verdicts.toSorted((a, b) => b.recoveredMs - a.recoveredMs)[0];
  const lengths = [...new Set(verdicts.map(({ seconds }) => seconds))].join(' and ');
  const unplayable = [...new Set(verdicts.flatMap((verdict) => verdict.unplayable))];
  const never = findNever(verdicts);
  const rows: readonly (readonly [string, string])[] = [
    ['seeds', `${verdicts.length} of ${lengths} s, ${broken.length} broke a promise`],
    ['applications, files compared', `${sum((one) => one.applications)}, ${sum((one) => one.files)}`],
    ['people erased', `${sum((one) => one.erased)} applications by ${n('erasures')} requests`],
    ['candidates', `${n('candidates')} came back, ${n('candidates erased')} were erased`],
    ['orphans laid', `${n('objects without a row')}`],
    ['processes started', `${n('starts')}, of them ${n('commands')} commands`],
    ['kill -9', `${n('kills')}`],
    ['faults by class', toList(classes, counts)],
    ['died or stopped at', toList(points, fired)],
    ['through pgbouncer', `${sum((one) => Number(one.pooled))} seeds, ${n('pooler kills')} kills of it`],
    ['full disks', `${n('diskFull')} under the database, ${n('spoolFull')} under the spool`],
    ['looks for a broken promise', `${sum((one) => one.looks)}, besides the triggers`],
    ...kinds.map(({ kind }) => [kind, `${broken.filter((one) => one === kind).length}`] as const),
    ['longest recovery', `${((longest?.recoveredMs ?? 0) / 1_000).toFixed(1)} s (seed ${longest?.seed})`],
  ];
  return [
    ...rows.map(([name, value]) => `| ${name.padEnd(28)} | ${value} |`),
    ...unplayable.map((what) => `Not played on this machine: ${what}.`),
    ...(never.length > 0 ? [`Never reached: ${never.join(', ')}.`] : []),
  ].join('\n');
}

/** The first matching row counts. */
const kinds: readonly { readonly kind: string; readonly promises: RegExp }[] = [
  { kind: 'leaks', promises: /^P1[789]\b|^P7, P17|^P8\b/ },
  { kind: 'duplicated', promises: /^P[27]\b/ },
  { kind: 'stale', promises: /^P5\b/ },
  { kind: 'lost', promises: /^P[1346]\b/ },
  { kind: 'otherwise broken', promises: /^/ },
];

function toKind(broken: string): string | undefined {
  return kinds.find(({ promises }) => promises.test(broken))?.kind;
}

function addUp(all: readonly Readonly<Record<string, number>>[]): Map<string, number> {
  const sum = new Map<string, number>();
  for (const one of all) for (const [name, by] of Object.entries(one)) sum.set(name, (sum.get(name) ?? 0) + by);
  return sum;
}

// The output of a bench: one figure per row of the published table, as a ratio to an anchor measured in the same run.
// A bench file exports `measure` and, when run alone, prints its own figures; main.ts runs all benches.

import { parseArgs } from 'node:util';
import type { Cost } from './place.ts';

/** One row, with the goal that it is judged by. A side that was not measured is null; `note` gives the reason. */
export interface Figure {
  readonly figure: string;
  readonly anchor: string;
  /** The figure: a ratio, or a number in `unit`. */
  readonly ratio: number | null;
  readonly unit?: string;
  readonly goal: Goal;
  /** The costs of Intake and of the anchor; null if not timed. */
  readonly ours: Cost | null;
  readonly theirs: Cost | null;
  readonly note?: string;
}

export type Goal = { readonly atLeast: number } | { readonly atMost: number };

export interface Size {
  /** Uses a tenth of the rows and files. */
  readonly quick: boolean;
  /** Interleaved runs of each side. */
  readonly repeats: number;
  /** The same for runs of a few seconds. They need more repeats, because the speed of a shared machine changes from second to second. */
  readonly shortRepeats: number;
}

/** A tenth of `full` in a quick run. */
export function toCount(size: Size, full: number): number {
  return size.quick ? Math.ceil(full / 10) : full;
}

function isMet({ ratio, goal }: Figure): boolean | null {
  if (ratio === null) return null;
  return 'atLeast' in goal ? ratio >= goal.atLeast : ratio <= goal.atMost;
}

/** Alternates between the sides, so that other load affects all of them, and keeps the lowest cost of each. */
export async function interleave<Name extends string>(
  repeats: number,
  sides: Readonly<Record<Name, () => Promise<Cost>>>,
): Promise<Record<Name, Cost>> {
  const best = new Map<string, Cost>();
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const [name, run] of Object.entries<() => Promise<Cost>>(sides)) {
      const cost = await run();
      best.set(name, toLeast(best.get(name), cost));
    }
  }
  return Object.fromEntries(best) as Record<Name, Cost>;
}

/** The lower wall time and the lower CPU time. Both parts of the CPU time come from the same run. */
export function toLeast(a: Cost | undefined, b: Cost): Cost {
  if (a === undefined) return b;
  const cpu = toCpuMs(a) < toCpuMs(b) ? a : b;
  return { wallMs: Math.min(a.wallMs, b.wallMs), nodeMs: cpu.nodeMs, postgresMs: cpu.postgresMs };
}

export function toCpuMs({ nodeMs, postgresMs }: Cost): number {
  return nodeMs + postgresMs;
}

/** One JSON line, as `--json` prints it. */
function renderLine(figure: Figure): string {
  const side = (cost: Cost | null) =>
    cost && {
      wallMs: round(cost.wallMs),
      cpuMs: round(toCpuMs(cost)),
      nodeMs: round(cost.nodeMs),
      postgresMs: round(cost.postgresMs),
    };
  const { ratio, unit, goal, anchor, ours, theirs, note } = figure;
  return JSON.stringify({
    figure: figure.figure,
    ratio: ratio === null ? null : Number(ratio.toPrecision(4)),
    ...(unit !== undefined && { unit }),
    goal,
    met: isMet(figure),
    anchor,
    ours: side(ours),
    theirs: side(theirs),
    ...(note !== undefined && { note }),
  });
}

/** The figure as text for people. */
export function renderFigure({ ratio, unit = 'x' }: Pick<Figure, 'ratio' | 'unit'>): string {
  if (ratio === null) return 'not measured';
  const digits = ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2;
  return unit === 'x' ? `${ratio.toFixed(digits)}x` : `${ratio.toFixed(digits)} ${unit}`;
}

export function renderGoal(goal: Goal, unit = 'x'): string {
  const [word, limit] = 'atLeast' in goal ? ['or more', goal.atLeast] : ['or less', goal.atMost];
  return `${limit}${unit === 'x' ? 'x' : ` ${unit}`} ${word}`;
}

/** A tenth of a millisecond from 100 ms on; three digits below, because some costs are a fraction of a millisecond. */
function round(ms: number): number {
  return ms >= 100 ? Math.round(ms * 10) / 10 : Number(ms.toPrecision(3));
}

/** Runs one bench by itself: `node bench/NAME.ts [--quick] [--json]`. */
export async function report(measure: (size: Size) => AsyncIterable<Figure>): Promise<void> {
  const { values } = parseArgs({
    options: { quick: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
  });
  for await (const figure of measure({ quick: values.quick, repeats: 3, shortRepeats: 9 })) {
    if (values.json) console.log(renderLine(figure));
    else {
      const verdict = { true: 'met', false: 'NOT met', null: 'no verdict' }[
        String(isMet(figure)) as 'true' | 'false' | 'null'
      ];
      const words = `${figure.figure}: ${renderFigure(figure)} (goal ${renderGoal(figure.goal, figure.unit)}, ${verdict})`;
      console.log(`${words}\n  against: ${figure.anchor}${figure.note === undefined ? '' : `\n  ${figure.note}`}`);
      for (const [name, cost] of [
        ['ours', figure.ours],
        ['anchor', figure.theirs],
      ] as const) {
        if (cost)
          console.log(
            `  ${name}: wall ${round(cost.wallMs)} ms, CPU ${round(cost.nodeMs)} node + ${round(cost.postgresMs)} Postgres`,
          );
      }
    }
  }
}

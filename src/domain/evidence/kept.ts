// Which sweeps keep their evidence: for every id, the newest sweep that covers it, the one before that, and the first one.

import { type Covered, contains, rangeOf } from '../coverage/position.ts';

/** The sweeps whose evidence is kept, out of ended sweeps in order, oldest first. */
export function findKept<Sweep extends Covered>(sweeps: readonly Sweep[]): Set<Sweep> {
  return new Set([...cover(sweeps, 1), ...cover(sweeps.toReversed(), 2)]);
}

/** Keeps each sweep with an id that fewer than `depth` of the kept sweeps cover. */
function cover<Sweep extends Covered>(sweeps: readonly Sweep[], depth: number): Sweep[] {
  const kept: Sweep[] = [];
  for (const sweep of sweeps) if (!isCovered(sweep, kept, depth)) kept.push(sweep);
  return kept;
}

/** True when at least `depth` of the others cover every id of the range. The number can only fall right after one of them ends. */
function isCovered(range: Covered, others: readonly Covered[], depth: number): boolean {
  const isInside = (one: Covered, id: bigint) => contains(rangeOf(one), id);
  const starts = [rangeOf(range).from, ...others.flatMap(({ high }) => (high === null ? [] : [high + 1n]))];
  const inside = starts.filter((id) => isInside(range, id));
  return inside.every((id) => others.filter((other) => isInside(other, id)).length >= depth);
}

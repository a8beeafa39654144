// Which sweeps keep their evidence: for every id the newest that covers it, the one before that, and the first.

import type { Covered } from '../coverage/range.ts';

/** Of sweeps that have ended, oldest first, those whose evidence is kept. */
export function findKept<Sweep extends Covered>(sweeps: readonly Sweep[]): Set<Sweep> {
  return new Set([...cover(sweeps, 1), ...cover(sweeps.toReversed(), 2)]);
}

/** Goes through sweeps and keeps each that some id needs, until `depth` of them cover it. */
function cover<Sweep extends Covered>(sweeps: readonly Sweep[], depth: number): Sweep[] {
  const kept: Sweep[] = [];
  for (const sweep of sweeps) {
    if (!isCovered(sweep, kept, depth)) kept.push(sweep);
  }
  return kept;
}

/** True when every id of a range lies in at least `depth` of the others. Only where one of them begins or ends can the number fall. */
function isCovered(range: Covered, others: readonly Covered[], depth: number): boolean {
  const starts = [range.low, ...others.flatMap(({ high }) => (high === null ? [] : [high + 1n]))];
  return starts
    .filter((id) => isInside(range, id))
    .every((id) => others.filter((other) => isInside(other, id)).length >= depth);
}

function isInside({ low, high }: Covered, id: bigint): boolean {
  return id >= low && (high === null || id <= high);
}

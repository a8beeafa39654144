// Which ids a sweep or a certificate covers. Certificates are stored with `low` and `high`, both included; a `high` of null is the end of
// the axis.

import { type IdRange, lastPosition, nearestPosition, wholeAxis, without } from './position.ts';

export interface Covered {
  readonly low: bigint;
  readonly high: bigint | null;
}

export function rangeOf({ low, high }: Covered): IdRange {
  return { from: nearestPosition(low), to: high === null ? lastPosition : nearestPosition(high) };
}

export function coveredOf({ from, to }: IdRange): Covered {
  return { low: from, high: to === lastPosition ? null : to };
}

/** The rows after a range was read again: overlapping rows are trimmed, rows inside it are removed. Unchanged rows are the same objects. */
export function withRange<T extends Covered>(rows: readonly T[], read: T): T[] {
  const range = rangeOf(read);
  const kept = rows.flatMap((row) => {
    const old = rangeOf(row);
    if (old.to < range.from || old.from > range.to) return [row];
    return without(old, range).map((part) => ({ ...row, ...coveredOf(part) }));
  });
  return [...kept, read].sort((a, b) => (a.low < b.low ? -1 : 1));
}

export function isTiled(rows: readonly Covered[], range = wholeAxis): boolean {
  let left = [range];
  for (const row of rows) left = left.flatMap((part) => without(part, rangeOf(row)));
  return left.length === 0;
}

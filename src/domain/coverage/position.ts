// Positions: the places on the axis of application ids, from 1 to 2^63 - 1. Only this file knows where the axis begins and ends. What is
// computed from positions is a plain bigint, and becomes a position again only by the checks of this file.

declare const isPosition: unique symbol;

export type Position = bigint & { readonly [isPosition]: true };

export const firstPosition = 1n as Position;
export const lastPosition = (2n ** 63n - 1n) as Position;

/** Ids from `from` to `to`, both included. */
export interface IdRange {
  readonly from: Position;
  readonly to: Position;
}

export const wholeAxis: IdRange = { from: firstPosition, to: lastPosition };

export function nearestPosition(number: bigint): Position {
  return number < firstPosition ? firstPosition : number > lastPosition ? lastPosition : (number as Position);
}

export const contains = (range: IdRange, id: bigint): id is Position => id >= range.from && id <= range.to;
export const isSingle = (range: IdRange): boolean => range.from === range.to;
export const widthOf = (range: IdRange): bigint => range.to - range.from + 1n;

/** The range from one position to another; null if nothing lies between them. */
export function toRange(from: bigint, to: bigint): IdRange | null {
  const range = { from: nearestPosition(from), to: nearestPosition(to) };
  return from > to || from > lastPosition || to < firstPosition ? null : range;
}

/** The part up to a position, and the part after it; null where nothing is left. */
export function splitAfter(range: IdRange, at: Position): readonly [IdRange | null, IdRange | null] {
  return [toRange(range.from, at < range.to ? at : range.to), toRange(at + 1n, range.to)];
}

export function without(range: IdRange, part: IdRange): readonly IdRange[] {
  if (part.to < range.from || part.from > range.to) return [range];
  return [toRange(range.from, part.from - 1n), toRange(part.to + 1n, range.to)].filter((rest) => rest !== null);
}

/** The bounds to send, meant as excluded: a source that includes them shows one id more. No upper one at the end of the axis. */
export const lowerBound = (range: IdRange): bigint => range.from - 1n;
export const upperBound = (range: IdRange): bigint | null => (range.to === lastPosition ? null : range.to + 1n);

/** The runs of ids between neighbours in a rising list, and before its first and after its last id, inside a range. */
export function gapsBetween(range: IdRange, rising: readonly Position[]): IdRange[] {
  const starts = [range.from, ...rising.map((id) => id + 1n)];
  const ends = rising.map((id) => id - 1n);
  return starts.flatMap((from, nth) => toRange(from, ends[nth] ?? range.to) ?? []);
}

/** The largest id of a signed 32-bit column. A source with such ids may refuse a larger bound. */
const last32 = nearestPosition(2n ** 31n - 1n);

/** The largest bound that a question beyond this id may send. */
export const largestBound = (id: bigint): Position => (id < last32 ? last32 : lastPosition);

/** A position inside a range that splits it in two: the middle, or twice as far from 0 where the range has no known end. */
export function middleOf(range: IdRange): Position {
  const end = largestBound(range.from);
  if (range.to <= end) return nearestPosition((range.from + range.to) / 2n);
  const far = range.from * 2n + 1_024n;
  return far < end ? nearestPosition(far) : end > range.from ? end : nearestPosition((range.from + range.to) / 2n);
}

export function rising(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The ids inside a range, each once, in rising order. */
export function idsInside(range: IdRange, ids: readonly bigint[]): Position[] {
  return [...new Set(ids)].filter((id): id is Position => contains(range, id)).sort(rising);
}

/** Index of the first element that is not below, in a list where those that are come first. */
export function firstIndex<Item>(list: readonly Item[], isBelow: (item: Item) => boolean): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBelow(list[middle] as Item)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The ids that a sweep or a certificate covers, as they are stored, both included. A `high` of null is the end of the axis. */
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

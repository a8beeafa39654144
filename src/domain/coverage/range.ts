// A range of positions that a sweep has closed or still has to read.
// Knows only integers, counts and bytes; range-answer.ts decides why a range is closed, split-range.ts how it is cut.

import type { PageSize } from './capacity.ts';
import type { FilterShape } from './question.ts';

/** Which bound differs from the answer that a range was cut from. */
export type Side = 'after' | 'before' | 'inner' | 'whole';

/** The answer that a range was cut from. */
export interface Origin extends PageSize {
  readonly shape: FilterShape;
  readonly side: Side;
  /** The lowest and the highest position shown. If rows are chosen in the order of ids, nothing is missing from the start up to there. */
  readonly low: bigint | null;
  readonly high: bigint | null;
}

/** Positions `from` to `to`, both included. Within a sweep `from` is unique. */
export interface Range {
  readonly from: bigint;
  /** null is no end. */
  readonly to: bigint | null;
  /** stuck: cannot be cut smaller and cannot be closed. */
  readonly state: 'open' | 'closed' | 'stuck';
  /** The answer that closed it. */
  readonly answer: PageSize | null;
  /** The range was closed in a sorted list up to its last position, so no row too large for the page can be missing in it. */
  readonly sorted: boolean;
  /** Number of ids inside it that the answer it was cut from showed. If the range shows more, that answer had been cut off. */
  readonly expected: number;
  readonly origin: Origin | null;
  /** The shape of the question that was answered empty; another shape has to confirm it. */
  readonly empty: FilterShape | null;
  /** The only filter of a confirmation whose answer exceeded the byte budget; the other filter is tried next. */
  readonly abandoned?: 'after' | 'before';
  /** These bounds themselves filled the page, so the question steps over them. */
  readonly step: { readonly after: boolean; readonly before: boolean };
  /** Number of answers that lacked known ids. */
  readonly failures: number;
}

/** Ids are 64-bit. No id is larger, and the source would refuse a larger bound. */
export const largestId = 2n ** 63n - 1n;

/** The largest bound of a question that looks beyond this id. A source with signed 32-bit ids may refuse a larger one. */
export function largestBound(id: bigint): bigint {
  const largest32 = 2n ** 31n - 1n;
  return id < largest32 ? largest32 : largestId;
}

const noStep: Range['step'] = { after: false, before: false };

/** A range about which nothing is known. */
export function openRange(from: bigint, to: bigint | null): Range {
  const unknown = { answer: null, sorted: false, expected: 0, origin: null, empty: null, step: noStep, failures: 0 };
  return { from, to, state: 'open', ...unknown };
}

/** The rest of a range when a question covered only its part `from` to `to`. */
export function remainders(range: Range, from: bigint, to: bigint | null): Range[] {
  const rest: Range[] = [];
  if (from > range.from) rest.push({ ...range, to: from - 1n, origin: moved(range, 'before'), step: noStep });
  if (to !== null && to !== range.to) {
    rest.push({ ...range, from: to + 1n, origin: moved(range, 'after'), step: noStep });
  }
  return rest;
}

/** The part `from` to `to` of a range, as a range of its own. */
export function partOf(range: Range, from: bigint, to: bigint | null): Range {
  if (from === range.from && to === range.to) return range;
  return { ...range, from, to, origin: moved(range, sideOf(range, from, to)) };
}

export function sideOf(range: Range, from: bigint, to: bigint | null): Side {
  if (from === range.from) return to === range.to ? 'whole' : 'before';
  return to === range.to ? 'after' : 'inner';
}

/** A part of a part keeps its side only when the same bound moved both times. */
function moved(range: Range, side: Side): Range['origin'] {
  if (range.origin === null) return null;
  const earlier = range.origin.side;
  return { ...range.origin, side: earlier === 'whole' || earlier === side ? side : 'inner' };
}

/** True when a position lies in a range. */
export function isInside(range: Pick<Range, 'from' | 'to'>, position: bigint): boolean {
  return position >= range.from && (range.to === null || position <= range.to);
}

/** True when `part` lies wholly in a range. */
export function contains(range: Range, part: { readonly from: bigint | null; readonly to: bigint | null }): boolean {
  if (part.from === null || part.from < range.from) return false;
  return range.to === null || (part.to !== null && part.to <= range.to);
}

/** The ids that a sweep or a certificate covers; `high` null is no end. */
export interface Covered {
  readonly low: bigint;
  readonly high: bigint | null;
}

/** The rows after a range was read again: overlapping rows are trimmed, rows inside it are removed. Unchanged rows are the same objects. */
export function withRange<T extends Covered>(rows: readonly T[], read: T): T[] {
  const kept: T[] = [];
  for (const row of rows) {
    const isApart = (row.high !== null && row.high < read.low) || (read.high !== null && row.low > read.high);
    if (isApart) {
      kept.push(row);
      continue;
    }
    if (row.low < read.low) kept.push({ ...row, high: read.low - 1n });
    if (read.high !== null && (row.high === null || row.high > read.high)) kept.push({ ...row, low: read.high + 1n });
  }
  return [...kept, read].sort((a, b) => (a.low < b.low ? -1 : 1));
}

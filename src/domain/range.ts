// A stretch of positions that a sweep has still to read or has closed, and how an answer cuts it into smaller ones.
// Knows integers and counts only; why a range is closed is decided elsewhere.

import type { Shape } from './capacity.ts';

/** Which bound alone was moved against the answer that a range was cut from. */
type Side = 'after' | 'before' | 'inner' | 'whole';

/** Positions `from` to `to`, both included. Within a sweep `from` is unique. */
export interface Range {
  readonly from: bigint;
  /** null is no end. */
  readonly to: bigint | null;
  /** stuck: cannot be cut smaller and cannot be closed. */
  readonly state: 'open' | 'closed' | 'stuck';
  /** The last whole answer over it, or null. */
  readonly answer: { readonly count: number; readonly bytes: number } | null;
  /** Ids that the answer it was cut from showed inside it: more than these and that answer had been cut off. */
  readonly expected: number;
  readonly origin: { readonly count: number; readonly shape: Shape; readonly side: Side } | null;
  /** Closed because its answer ended in a held id (posts.ts), whatever a page can hold. */
  readonly posted?: boolean;
}

export type Direction = 'ascending' | 'descending' | 'mixed';

export interface Cutting {
  readonly direction: Direction;
  /** Most positions wanted in one piece. */
  readonly pieceSize: number;
  /** In a list in order: the position beyond which it goes on. */
  readonly far: bigint | null;
  /** Cut positions are held and need not be read again; otherwise they stay inside the lower piece. */
  readonly skipCuts: boolean;
  /** The answer that is cut, as evidence for what its pieces will show; null when it was abandoned. */
  readonly origin: { readonly count: number; readonly shape: Shape } | null;
}

/** Ids are 64-bit; nothing lies beyond, and asking there would be refused. */
export const largestId = 2n ** 63n - 1n;

/** Most pieces of one cut, so that one answer changes few ranges. */
const mostCuts = 15;

/** Cuts a range at positions that an answer showed (sorted, distinct, inside it); empty when it cannot be made smaller. */
export function cutRange(range: Range, positions: readonly bigint[], cutting: Cutting): Range[] {
  // A cut that stays inside the lower piece must leave something above it.
  const isUsable = (cut: bigint | null) => cut !== null && (cutting.skipCuts || range.to === null || cut < range.to);
  const far = isUsable(cutting.far) ? cutting.far : null;
  const cuts = toCuts(positions.filter(isUsable), { ...cutting, far });
  if (cuts.length === 0) return [];
  const pieces: Range[] = [];
  let from = range.from;
  let seen = 0;
  const close = (to: bigint | null) => {
    if (from > largestId || (to !== null && to < from)) return;
    let expected = 0;
    while (seen < positions.length && (positions[seen] as bigint) < from) seen++;
    while (seen < positions.length && (to === null || (positions[seen] as bigint) <= to)) {
      seen++;
      expected++;
    }
    const origin = cutting.origin === null ? null : { ...cutting.origin, side: toSide(range, from, to) };
    pieces.push({ from, to, state: 'open', answer: null, expected, origin });
  };
  for (const cut of cuts) {
    close(cutting.skipCuts ? cut - 1n : cut);
    from = cut + 1n;
  }
  close(range.to);
  return pieces;
}

/** What is left of a range when a question spoke only of its part `from` to `to`. */
export function toRemainders(range: Range, from: bigint, to: bigint | null): Range[] {
  const rest: Range[] = [];
  if (from > range.from) rest.push({ ...range, to: from - 1n, origin: moved(range, 'before') });
  if (to !== null && to !== range.to) rest.push({ ...range, from: to + 1n, origin: moved(range, 'after') });
  return rest;
}

/** The part `from` to `to` of a range, as a range of its own. */
export function toPart(range: Range, from: bigint, to: bigint | null): Range {
  if (from === range.from && to === range.to) return range;
  return { ...range, from, to, origin: moved(range, toSide(range, from, to)) };
}

function toSide(range: Range, from: bigint, to: bigint | null): Side {
  if (from === range.from) return to === range.to ? 'whole' : 'before';
  return to === range.to ? 'after' : 'inner';
}

/** A part of a part keeps its side only when the same bound moved both times. */
function moved(range: Range, side: Side): Range['origin'] {
  if (range.origin === null) return null;
  const before = range.origin.side;
  return { ...range.origin, side: before === 'whole' || before === side ? side : 'inner' };
}

function toCuts(positions: readonly bigint[], { far, direction, pieceSize }: Cutting): bigint[] {
  if (positions.length === 0) return [];
  // What a list in order has shown lies on one side of its far end, what it has not on the other: cut there, and the near side small.
  const near =
    far === null
      ? positions
      : positions.filter((position) => (direction === 'descending' ? position > far : position < far));
  let count = pieceSize >= near.length ? 0 : Math.ceil((near.length - pieceSize) / (pieceSize + 1));
  count = Math.min(count, mostCuts);
  const cuts: bigint[] = [];
  for (let nth = 1; nth <= count; nth++) cuts.push(near[nth * (pieceSize + 1) - 1] as bigint);
  if (far === null && count === 0) return [near[near.length >> 1] as bigint];
  if (far === null) return cuts;
  return direction === 'descending' ? [far, ...cuts] : [...cuts, far];
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

/** The shape of the question that asks for a range. */
export function toShape(range: Pick<Range, 'to'>): Shape {
  return range.to === null ? 'one' : 'two';
}

// A stretch of positions that a sweep has still to read or has closed, and how it is cut into smaller ones at ids that were shown.
// Knows integers, counts and bytes only; why a range is closed is decided in range-answer.ts.

import type { Direction } from './capacity.ts';
import type { FilterShape } from './question.ts';

/** Which bound was moved against the answer that a range was cut from. */
export type Side = 'after' | 'before' | 'inner' | 'whole';

/** The answer that a range was cut from. */
export interface Origin {
  readonly rows: number;
  readonly bytes: number;
  readonly shape: FilterShape;
  readonly side: Side;
  /** The lowest and the highest position that it showed: a list chosen in the order of ids leaves nothing out between its beginning and there. */
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
  readonly answer: { readonly rows: number; readonly bytes: number } | null;
  /** It was closed in a sorted list up to its last position, so a row too large for the page cannot hide in it. */
  readonly sorted: boolean;
  /** Ids that the answer it was cut from showed inside it: more than these, and that answer had been cut off. */
  readonly expected: number;
  readonly origin: Origin | null;
  /** The shape in which it was answered empty; another shape has to confirm it. */
  readonly empty: FilterShape | null;
  /** Its page was filled by these bounds themselves: the question steps over them. */
  readonly step: { readonly after: boolean; readonly before: boolean };
  /** Answers that lacked known ids. */
  readonly failures: number;
}

/** A position that an answer showed, and the bytes of its row. */
export interface Shown {
  readonly position: bigint;
  readonly bytes: number;
}

/** Ids are 64-bit; nothing lies beyond, and asking there would be refused. */
export const largestId = 2n ** 63n - 1n;

/** Most pieces of one cut, so that one answer changes few ranges. */
const mostCuts = 15;

const noStep: Range['step'] = { after: false, before: false };

/** A range that nothing is known of. */
export function openRange(from: bigint, to: bigint | null): Range {
  const unknown = { answer: null, sorted: false, expected: 0, origin: null, empty: null, step: noStep, failures: 0 };
  return { from, to, state: 'open', ...unknown };
}

/** Where and how a range is cut. */
export interface Cutting {
  readonly direction: Direction;
  /** What a piece may hold. */
  readonly size: { readonly rows: number; readonly bytes: number };
  /** The answer goes on beyond its far end: a cut is also made there. */
  readonly goesOn: boolean;
  /** Where a list in order goes on, when its last row is a straggler; null is the outermost position. */
  readonly far: bigint | null;
  readonly origin: Omit<Origin, 'side'>;
}

/**
 * Cuts a range at positions that an answer showed (rising, distinct, inside it), into pieces that should close; null when it cannot be
 * made smaller. In a list in order a piece ends in a position that was shown, at its far end: its answer then shows that the list was
 * not cut off before it. In any other list the cut positions need no reading and lie in no piece.
 */
export function cutRange(range: Range, shown: readonly Shown[], cutting: Cutting): Range[] | null {
  const ends =
    cutting.size.rows === Number.POSITIVE_INFINITY
      ? stretchEnds(shown)
      : cutting.direction === 'descending'
        ? endsFromTop(shown, cutting)
        : endsFromBottom(shown, cutting);
  const pieces: Range[] = [];
  let from = range.from;
  let at = 0;
  const add = (to: bigint | null) => {
    if (from > largestId || (to !== null && to < from)) return;
    let expected = 0;
    while (at < shown.length && (shown[at] as Shown).position < from) at++;
    while (at < shown.length && (to === null || (shown[at] as Shown).position <= to)) {
      at++;
      expected++;
    }
    pieces.push({ ...openRange(from, to), expected, origin: { ...cutting.origin, side: sideOf(range, from, to) } });
  };
  for (const end of ends) {
    if (range.to !== null && end.to >= range.to && end.next > range.to) continue;
    add(end.to);
    from = end.next;
  }
  add(range.to);
  const isSame = pieces.length === 1 && pieces[0]?.from === range.from && pieces[0]?.to === range.to;
  return isSame ? null : pieces;
}

/** The last position of a piece, and the first of the next one. */
interface PieceEnd {
  readonly to: bigint;
  readonly next: bigint;
}

/** While no page with both bounds is known: the whole stretch that was shown, and what lies on either side of it. */
function stretchEnds(shown: readonly Shown[]): PieceEnd[] {
  const [first, last] = [shown[0], shown.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    { to: first.position - 1n, next: first.position },
    { to: last.position, next: last.position + 1n },
  ];
}

function endsFromBottom(shown: readonly Shown[], { direction, size, goesOn, far }: Cutting): PieceEnd[] {
  // Where only an empty answer closes, a piece must hold no id that was shown.
  const isSorted = direction === 'ascending' && size.rows > 0;
  const limit = far === null || !isSorted ? shown.length : shown.filter((one) => one.position <= far).length;
  const ends: PieceEnd[] = [];
  // What was shown before is cut evenly: a full piece and a small rest would cost the same, and close less surely.
  const mostRows = isSorted && goesOn ? size.rows : Math.ceil(limit / Math.max(1, Math.ceil(limit / size.rows)));
  let rows = 0;
  let bytes = 0;
  for (let index = 0; index < limit && ends.length < mostCuts; index++) {
    const { position, bytes: more } = shown[index] as Shown;
    const isFull = rows > 0 && (rows + 1 > mostRows || bytes + more > size.bytes);
    if (isSorted && more * 4 > size.bytes * 3) {
      // A row that nearly fills a piece by itself was shown, and need not be read again.
      ends.push({ to: position - 1n, next: position + 1n });
      [rows, bytes] = [0, 0];
    } else if (isSorted) {
      const last = shown[index - 1] as Shown;
      if (isFull) ends.push({ to: last.position, next: last.position + 1n });
      if (isFull) [rows, bytes] = [0, 0];
      rows++;
      bytes += more;
    } else if (isFull || size.rows === 0) {
      ends.push({ to: position - 1n, next: position + 1n });
      [rows, bytes] = [0, 0];
    } else {
      rows++;
      bytes += more;
    }
  }
  if (isSorted && goesOn && ends.length < mostCuts) {
    const last = shown[limit - 1];
    // A short rest is read again with the next page, which costs less than a question of its own.
    const isWorth = ends.length === 0 || rows * 4 >= Math.min(size.rows, limit);
    if (last !== undefined && isWorth) ends.push({ to: last.position, next: last.position + 1n });
  }
  const middle = shown[(shown.length - 1) >> 1];
  if (ends.length > 0 || middle === undefined) return ends;
  return [{ to: isSorted ? middle.position : middle.position - 1n, next: middle.position + 1n }];
}

/** The same from the highest position down: the lowest position of a piece was shown. */
function endsFromTop(shown: readonly Shown[], cutting: Cutting): PieceEnd[] {
  const mirrored = shown.toReversed().map((one) => ({ ...one, position: -one.position }));
  const far = cutting.far === null ? null : -cutting.far;
  const ends = endsFromBottom(mirrored, { ...cutting, direction: 'ascending', far });
  return ends.map(({ to, next }) => ({ to: -next, next: -to })).reverse();
}

/** What is left of a range when a question spoke only of its part `from` to `to`. */
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

function sideOf(range: Range, from: bigint, to: bigint | null): Side {
  if (from === range.from) return to === range.to ? 'whole' : 'before';
  return to === range.to ? 'after' : 'inner';
}

/** A part of a part keeps its side only when the same bound moved both times. */
function moved(range: Range, side: Side): Range['origin'] {
  if (range.origin === null) return null;
  const before = range.origin.side;
  return { ...range.origin, side: before === 'whole' || before === side ? side : 'inner' };
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

/** A range of ids with something said of it; `high` null is no end. */
export interface Covered {
  readonly low: bigint;
  readonly high: bigint | null;
}

/** The set after a range was read again: rows that it overlaps are trimmed, rows that it contains go. Rows that stay are the same objects. */
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

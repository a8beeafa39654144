// A range of positions that a sweep has closed or still has to read, and how it is cut into smaller ranges at ids that were shown.
// Knows only integers, counts and bytes; range-answer.ts decides why a range is closed.

import type { Direction } from './capacity.ts';
import type { FilterShape } from './question.ts';

/** Which bound differs from the answer that a range was cut from. */
export type Side = 'after' | 'before' | 'inner' | 'whole';

/** The answer that a range was cut from. */
export interface Origin {
  readonly rows: number;
  readonly bytes: number;
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
  readonly answer: { readonly rows: number; readonly bytes: number } | null;
  /** The range was closed in a sorted list up to its last position, so no row too large for the page can be missing in it. */
  readonly sorted: boolean;
  /** Number of ids inside it that the answer it was cut from showed. If the range shows more, that answer had been cut off. */
  readonly expected: number;
  readonly origin: Origin | null;
  /** The shape of the question that was answered empty; another shape has to confirm it. */
  readonly empty: FilterShape | null;
  /** These bounds themselves filled the page, so the question steps over them. */
  readonly step: { readonly after: boolean; readonly before: boolean };
  /** Number of answers that lacked known ids. */
  readonly failures: number;
}

/** A position that an answer showed, and the bytes of its row. */
export interface Shown {
  readonly position: bigint;
  readonly bytes: number;
}

/** Ids are 64-bit. No id is larger, and the source would refuse a larger bound. */
export const largestId = 2n ** 63n - 1n;

/** Most cuts in one range, so that one answer changes few ranges. */
const mostCuts = 15;

const noStep: Range['step'] = { after: false, before: false };

/** A range about which nothing is known. */
export function openRange(from: bigint, to: bigint | null): Range {
  const unknown = { answer: null, sorted: false, expected: 0, origin: null, empty: null, step: noStep, failures: 0 };
  return { from, to, state: 'open', ...unknown };
}

/** Where and how a range is cut. */
export interface Cutting {
  readonly direction: Direction;
  /** How much a piece may hold. */
  readonly size: { readonly rows: number; readonly bytes: number };
  /** The list continues beyond the far end of the answer, so a cut is also made there. */
  readonly goesOn: boolean;
  /** Where a sorted list continues if its last row is a straggler; null is the outermost position. */
  readonly far: bigint | null;
  readonly origin: Omit<Origin, 'side'>;
}

/**
 * Cuts a range at positions that an answer showed (rising, distinct, inside it) into pieces that should close; null when the range cannot
 * be made smaller. In a sorted list, the far end of a piece is a position that was shown: the answer to the piece then shows that it was
 * not cut off before. In any other list, the cut positions belong to no piece, because they have already been read.
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

/** While no page with both bounds is known: cuts before the first and after the last position shown. */
function stretchEnds(shown: readonly Shown[]): PieceEnd[] {
  const [first, last] = [shown[0], shown.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    { to: first.position - 1n, next: first.position },
    { to: last.position, next: last.position + 1n },
  ];
}

function endsFromBottom(shown: readonly Shown[], { direction, size, goesOn, far }: Cutting): PieceEnd[] {
  // Where only an empty answer closes a range, a piece must contain no id that was shown.
  const isSorted = direction === 'ascending' && size.rows > 0;
  const limit = far === null || !isSorted ? shown.length : shown.filter((one) => one.position <= far).length;
  const ends: PieceEnd[] = [];
  // Rows shown before are cut evenly: a full piece and a small rest would cost as many requests and be less likely to close.
  const mostRows = isSorted && goesOn ? size.rows : Math.ceil(limit / Math.max(1, Math.ceil(limit / size.rows)));
  let rows = 0;
  let bytes = 0;
  for (let index = 0; index < limit && ends.length < mostCuts; index++) {
    const { position, bytes: more } = shown[index] as Shown;
    const isFull = rows > 0 && (rows + 1 > mostRows || bytes + more > size.bytes);
    if (isSorted && more * 4 > size.bytes * 3) {
      // A row that nearly fills a piece by itself has been shown and need not be read again.
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
    // Reading a short rest again with the next page costs less than a separate question.
    const isWorth = ends.length === 0 || rows * 4 >= Math.min(size.rows, limit);
    if (last !== undefined && isWorth) ends.push({ to: last.position, next: last.position + 1n });
  }
  const middle = shown[(shown.length - 1) >> 1];
  if (ends.length > 0 || middle === undefined) return ends;
  return [{ to: isSorted ? middle.position : middle.position - 1n, next: middle.position + 1n }];
}

/** Like `endsFromBottom`, from the highest position down: the lowest position of a piece is one that was shown. */
function endsFromTop(shown: readonly Shown[], cutting: Cutting): PieceEnd[] {
  const mirrored = shown.toReversed().map((one) => ({ ...one, position: -one.position }));
  const far = cutting.far === null ? null : -cutting.far;
  const ends = endsFromBottom(mirrored, { ...cutting, direction: 'ascending', far });
  return ends.map(({ to, next }) => ({ to: -next, next: -to })).reverse();
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

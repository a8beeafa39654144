// Splits a range whose answer does not close it: after a page that may have been cut off, and after an abandoned answer. It splits at
// ids that were shown. Does not know what an answer proves.

import { type Direction, directionOf, type PageSize, smallPage } from './capacity.ts';
import { rangeQuestion } from './next-question.ts';
import { sizeOfPieces } from './page-cuts.ts';
import { isSameQuestion, type ListedRow, type PageAnswer, positionOf, type Question, sizeOf } from './question.ts';
import { isInside, largestId, type Origin, openRange, type Range, sideOf } from './range.ts';
import type { StateFacts, SweepDraft } from './sweep-state.ts';

/** A position that an answer showed, and the bytes of its row. */
export interface Shown {
  readonly position: bigint;
  readonly bytes: number;
}

/** Most splits of one range, so that one answer changes few ranges. */
const mostSplits = 15;

/** Splits the range of a full page into pieces that fit. The range is stuck if no smaller question is possible. */
export function splitAnswered(
  facts: SweepDraft['facts'],
  range: Range,
  question: Question,
  page: PageAnswer,
  inside: Shown[],
): Range[] {
  const { rows, bytes } = sizeOf(page);
  const direction = directionOf(facts);
  const shape = question.before === null ? 'after' : 'both';
  const one = sizeOfPieces(facts, 'after');
  const known = facts.both.rows > 0 || rows >= smallPage ? sizeOfPieces(facts, 'both') : { rows: 0, bytes: 0 };
  // The page shows nothing new, so the list does not continue here, and every piece must fit, including one without an end.
  const isRead = range.expected >= inside.length;
  const size =
    isRead && range.to === null
      ? {
          rows: Math.min(known.rows, facts.both.rows > 0 ? one.rows : known.rows),
          bytes: Math.min(known.bytes, one.bytes),
        }
      : known;
  // On the date axis, a range narrower than the uncertainty of the time zone cannot be split: its pieces would ask nearly the same question.
  const blur = facts.shift.most - facts.shift.least;
  const isNarrow = facts.axis === 'date' && range.to !== null && range.to - range.from < blur / 4n;
  const [low, high] = [inside[0]?.position ?? null, inside.at(-1)?.position ?? null];
  const origin = { rows, bytes, shape, low, high } as const;
  const far = isRead ? null : farEnd(facts, range, page);
  const plan = { direction, size, goesOn: !isRead, far, origin };
  const betweenIds = { ...plan, direction: 'mixed', size: { rows: 0, bytes: 0 } } as const;
  const pieces = isNarrow ? null : (splitRange(range, inside, plan) ?? splitRange(range, inside, betweenIds));
  if (pieces !== null) return pieces;
  // Only the bounds came back and filled the page. Ask for the same range with bounds that step over them.
  const step = {
    after: range.step.after || page.rows.some(({ id }) => id === question.after),
    before: range.step.before || page.rows.some(({ id }) => id === question.before),
  };
  const next = { ...range, step: facts.axis === 'id' ? step : range.step };
  if (inside.length === 0 && !isSameQuestion(rangeQuestion(facts, next), { ...question, purpose: 'range' })) {
    // No question can tell whether the source includes that bound every time. Later pages show whether it matters.
    const most = facts.boundsOnly[shape];
    const pageSize = { rows: Math.max(rows, most?.rows ?? 0), bytes: Math.max(bytes, most?.bytes ?? 0) };
    facts.boundsOnly = { ...facts.boundsOnly, [shape]: pageSize };
    return [next];
  }
  return [{ ...range, state: 'stuck' }];
}

/** The position from which a sorted list continues: the median of its last five rows, so that a single straggler does not decide. */
function farEnd(facts: StateFacts, range: Range, page: PageAnswer): bigint | null {
  if (directionOf(facts) === 'mixed' || facts.rising === 0 || facts.falling === 0) return null;
  const last: bigint[] = [];
  for (let i = page.rows.length - 1; i >= 0 && last.length < 5; i--) {
    const position = positionOf(facts.axis, page.rows[i] as ListedRow);
    if (position !== null && isInside(range, position)) last.push(position);
  }
  return last.sort((a, b) => (a < b ? -1 : 1))[last.length >> 1] ?? null;
}

/** Where and how a range is split. */
interface SplitPlan {
  readonly direction: Direction;
  /** How much a piece may hold. */
  readonly size: PageSize;
  /** The list continues beyond the far end of the answer, so the range is also split there. */
  readonly goesOn: boolean;
  /** Where a sorted list continues if its last row is a straggler; null is the outermost position. */
  readonly far: bigint | null;
  readonly origin: Omit<Origin, 'side'>;
}

/**
 * Splits a range at positions that an answer showed (rising, distinct, inside it) into pieces that should close; null when the range cannot
 * be made smaller. In a sorted list, the far end of a piece is a position that was shown: the answer to the piece then shows that it was
 * not cut off before. In any other list, the positions at which it is split belong to no piece, because they have already been read.
 */
function splitRange(range: Range, shown: readonly Shown[], plan: SplitPlan): Range[] | null {
  const ends =
    plan.size.rows === Number.POSITIVE_INFINITY
      ? stretchEnds(shown)
      : plan.direction === 'descending'
        ? endsFromTop(shown, plan)
        : endsFromBottom(shown, plan);
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
    pieces.push({ ...openRange(from, to), expected, origin: { ...plan.origin, side: sideOf(range, from, to) } });
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

/** While no page with both bounds is known: splits before the first and after the last position shown. */
function stretchEnds(shown: readonly Shown[]): PieceEnd[] {
  const [first, last] = [shown[0], shown.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    { to: first.position - 1n, next: first.position },
    { to: last.position, next: last.position + 1n },
  ];
}

function endsFromBottom(shown: readonly Shown[], { direction, size, goesOn, far }: SplitPlan): PieceEnd[] {
  // Where only an empty answer closes a range, a piece must contain no id that was shown.
  const isSorted = direction === 'ascending' && size.rows > 0;
  const limit = far === null || !isSorted ? shown.length : shown.filter((one) => one.position <= far).length;
  const ends: PieceEnd[] = [];
  // Rows shown before are split evenly: a full piece and a small rest would cost as many requests and be less likely to close.
  const mostRows = isSorted && goesOn ? size.rows : Math.ceil(limit / Math.max(1, Math.ceil(limit / size.rows)));
  let rows = 0;
  let bytes = 0;
  for (let index = 0; index < limit && ends.length < mostSplits; index++) {
    const { position, bytes: more } = shown[index] as Shown;
    const isFull = rows > 0 && (rows + 1 > mostRows || bytes + more > size.bytes);
    // In a sorted list, a row that nearly fills a piece by itself has been shown and need not be read again.
    if (isSorted ? more * 4 > size.bytes * 3 : isFull || size.rows === 0) {
      ends.push({ to: position - 1n, next: position + 1n });
      [rows, bytes] = [0, 0];
      continue;
    }
    if (isFull) {
      const last = shown[index - 1] as Shown;
      ends.push({ to: last.position, next: last.position + 1n });
      [rows, bytes] = [0, 0];
    }
    rows++;
    bytes += more;
  }
  if (isSorted && goesOn && ends.length < mostSplits) {
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
function endsFromTop(shown: readonly Shown[], plan: SplitPlan): PieceEnd[] {
  const mirrored = shown.toReversed().map((one) => ({ ...one, position: -one.position }));
  const far = plan.far === null ? null : -plan.far;
  const ends = endsFromBottom(mirrored, { ...plan, direction: 'ascending', far });
  return ends.map(({ to, next }) => ({ to: -next, next: -to })).reverse();
}

/** Where a range is split proves nothing, so the first rows of an abandoned answer can be the split points. None of them is stored; all are read again. */
export function splitAbandoned(facts: StateFacts, range: Range, rows: readonly ListedRow[]): Range[] {
  if (range.from === range.to) return [{ ...range, state: 'stuck' }];
  const positions = rows.map((row) => positionOf(facts.axis, row)).filter((position) => position !== null);
  const inside = [...new Set(positions.filter((position) => isInside(range, position)))].sort((a, b) =>
    a < b ? -1 : 1,
  );
  const known = sizeOfPieces(facts, 'both').rows;
  // Four fifths of the rows seen should fit the byte budget. The answer then shows how much a page can hold.
  const wanted = facts.both.rows > 0 ? known : Math.floor(inside.length * 0.8);
  const every = Math.max(1, Math.min(wanted, inside.length - 1));
  const places = inside.filter((_, index) => index % every === every - 1).slice(0, mostSplits);
  const usable = places.filter((place) => range.to === null || place < range.to);
  const blind = range.to === null ? range.from * 2n + 1024n : (range.from + range.to) / 2n;
  // If the page from which this range was made showed no row inside it, any row in a piece shows that the page was cut off.
  const origin = range.expected === 0 ? range.origin : null;
  const pieces: Range[] = [];
  let { from } = range;
  for (const place of usable.length > 0 ? usable : [blind]) {
    if (place < from) continue;
    pieces.push({ ...openRange(from, place), origin });
    from = place + 1n;
  }
  return [...pieces, { ...openRange(from, range.to), origin }];
}

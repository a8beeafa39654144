// Decides which pages may have been cut off. A page was cut off if it lacks known ids, or if a part of its range shows more rows than the
// page did. Ranges that were closed on such a page are reopened. Also decides how much a page may hold.

import {
  type Capacity,
  directionOf,
  isShortByBytes,
  isShortByRows,
  largeShare,
  type PageSize,
  pieceSize,
  rowLimit,
  smallPage,
  type Vouch,
  withCut,
} from './capacity.ts';
import { type FilterShape, type PageAnswer, type Question, shapeOf, sizeOf } from './question.ts';
import type { Origin, Range } from './range.ts';
import { addReservation, isSorted, type StateFacts, type SweepDraft } from './sweep-state.ts';
import { absentLimit } from './unshown.ts';

/** The page capacity that is assumed for a shape of question. Pages with both bounds may have a lower row cap than those with one, not a higher one. */
export function capacityOf({ after, both }: Pick<StateFacts, 'after' | 'both'>, shape: FilterShape): Capacity {
  if (shape !== 'both') return after;
  if (after.cutRows === null || (both.cutRows !== null && both.cutRows <= after.cutRows)) return both;
  return { ...both, cutRows: after.cutRows };
}

/** Why a short answer of this source may count as complete. */
export function vouchOf(facts: StateFacts, shape: FilterShape): Vouch {
  const hasLargeRows = facts.largestRow >= capacityOf(facts, shape).bytes * largeShare;
  if (!hasLargeRows && !facts.uneven) return 'even';
  if (isSorted(facts)) return 'sorted';
  // If pages show small rows first, the large rows may be those that no page shows.
  return hasLargeRows || directionOf(facts.sizes) === 'ascending' ? 'none' : 'small';
}

/** How much pieces may hold so that answers of this shape close them. */
export function sizeOfPieces(facts: StateFacts, shape: 'after' | 'both'): PageSize {
  const { after, before } = facts.inclusive[shape];
  const { rows, bytes } = pieceSize(capacityOf(facts, shape), facts.largestRow, vouchOf(facts, shape));
  return { rows: rows === 0 ? 0 : Math.max(1, rows - Number(after) - Number(before)), bytes };
}

/** True when a page of this many rows and bytes cannot have been cut off, judging by the other pages of its shape. */
export function isShortPage(facts: StateFacts, shape: FilterShape, page: PageSize): boolean {
  const capacity = capacityOf(facts, shape);
  const vouch = vouchOf(facts, shape);
  if (vouch === 'none' || !isShortByRows(capacity, page.rows)) return false;
  return isShortByBytes(capacity, page.bytes, facts.largestRow, vouch);
}

/** Known ids that the answer lacks, except those already known to be deleted at the source. */
export function findUnexplained(facts: StateFacts, page: PageAnswer): PageAnswer['unshown'] {
  return page.unshown.filter(({ id }) => !facts.absent.includes(id) && !facts.vanished.includes(id));
}

/** If a part shows more ids than the wider answer did, that answer was cut off, and the moved bound acts before the cap. */
export function noteExcess(draft: SweepDraft, range: Range, count: number): void {
  const { facts } = draft;
  const excess = count - range.expected;
  // Rows of an abandoned answer were not stored, so they count as found only now.
  facts.found += range.origin === null ? count : Math.max(0, excess);
  if (range.origin !== null) noteChoice(draft, range, range.origin, excess > 0);
  if (excess <= 0 || range.origin === null) return;
  const { side, shape } = range.origin;
  const direction = directionOf(facts);
  // In an unsorted list even one more id means that the wider page was incomplete.
  if (direction === 'mixed' && range.to !== null) {
    facts.cut = true;
    noteReach(facts, side);
  }
  // Otherwise a few more ids, up to an eighth of a page, are late commits or arrivals, not a page that was cut off.
  const limit = rowLimit(capacityOf(facts, shape));
  const few = facts.rigor === 'poll' ? Math.max(2, range.origin.rows / 8) : limit / 8;
  if (limit >= smallPage && excess <= few) return;
  facts.cut = true;
  noteReach(facts, side);
  lower(draft, range.origin);
}

/** Moving this bound revealed ids, so the source applies it before the cap. */
function noteReach(facts: SweepDraft['facts'], side: Origin['side']): void {
  if (side === 'after') facts.reachAfter = true;
  else if (side === 'before') facts.reachBefore = true;
  else if (side === 'inner') facts.reachInner = true;
}

/**
 * Uses a part of an answer's range to learn how the source chose the rows of that answer. Chosen by rising ids, the answer is complete up
 * to its highest id; chosen by falling ids, it is complete down to its lowest.
 */
function noteChoice(draft: SweepDraft, range: Range, { low, high }: Origin, isMore: boolean): void {
  const { facts } = draft;
  const isBelow = high !== null && range.to !== null && range.to <= high;
  const isAbove = low !== null && range.from >= low;
  const { ascending, descending } = facts.chosen;
  const count = (before: number | null, isNear: boolean) =>
    !isNear || before === null ? before : isMore ? null : before + 1;
  facts.chosen = { ascending: count(ascending, isBelow), descending: count(descending, isAbove) };
  const isBroken =
    (ascending !== null && facts.chosen.ascending === null) ||
    (descending !== null && facts.chosen.descending === null);
  if (isBroken) reopen(draft);
}

/** Records that a wide answer was cut off if it lacks many known ids. */
export function noteCut(draft: SweepDraft, question: Question, page: PageAnswer): void {
  const { facts } = draft;
  const shape = shapeOf(question);
  if (question.axis !== 'id' || shape === 'before' || page.rows.length === 0) return;
  const unshown = findUnexplained(facts, page);
  if (unshown.length > absentLimit(facts.listedBefore)) {
    const ids = page.rows.map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
    const [low, high] = [ids[0] as bigint, ids.at(-1) as bigint];
    const isSkipped = (isNear: (id: bigint) => boolean) => unshown.some(({ id }) => isNear(id));
    const { ascending, descending } = facts.chosen;
    facts.chosen = {
      ascending: isSkipped((id) => id < high) ? null : ascending,
      descending: isSkipped((id) => id > low) ? null : descending,
    };
    if (facts.chosen.ascending !== ascending || facts.chosen.descending !== descending) reopen(draft);
  }
  // 8 times 63: the store may report no more than 64 unshown ids, so 64 must be enough on any page.
  if (unshown.length * 8 <= Math.min(rowLimit(facts[shape]), 504)) return;
  lower(draft, { ...sizeOf(page), shape });
}

/** Records that an answer of this size was cut off. Ranges that were closed on more than half of that size are reopened. */
export function lower(draft: SweepDraft, cut: PageSize & { shape: FilterShape }): void {
  const { facts } = draft;
  const shape = cut.shape === 'both' ? 'both' : 'after';
  const capacity = facts[shape];
  const before = rowLimit(capacity);
  // If bytes filled the page, its row count is not a limit. If bytes filled half of the page, its row count is a limit only if it is at
  // least half of the most rows seen.
  const isFull = cut.rows > 0 && cut.bytes + facts.largestRow >= capacity.bytes * 0.95;
  const isByRows = cut.rows * 2 >= capacity.rows;
  const isByBytes = cut.rows > 0 && (cut.bytes + facts.largestRow) * 2 >= capacity.bytes;
  if (!isByRows && !isByBytes) {
    addReservation(facts, 'doubt', 'pages became shorter than half of what they were');
  }
  if (!isFull && (isByRows || !isByBytes)) facts[shape] = withCut(capacity, cut.rows);
  const isUneven = facts.uneven || (facts.cutAt[shape] ?? cut.rows) !== cut.rows;
  const isNews = isUneven !== facts.uneven || rowLimit(facts[shape]) < before;
  facts.cutAt = { ...facts.cutAt, [shape]: cut.rows };
  facts.uneven = isUneven;
  if (isNews) reopen(draft);
}

/** Reopens ranges that would not be closed by what is known now. */
export function reopen(draft: SweepDraft): void {
  const { facts } = draft;
  draft.ranges = draft.ranges.map((range) => {
    if (range.state !== 'closed' || range.answer === null || range.answer.rows === 0 || range.from === range.to)
      return range;
    const { rows, bytes } = range.answer;
    const shape = range.to === null ? ('after' as const) : ('both' as const);
    const isVouchedFor = range.sorted || vouchOf(facts, shape) !== 'sorted';
    if (isVouchedFor && isShortPage(facts, shape, { rows, bytes })) return range;
    const origin = { rows, bytes, shape, side: 'whole' as const, low: null, high: null };
    return { ...range, state: 'open' as const, expected: rows, origin, empty: null };
  });
}

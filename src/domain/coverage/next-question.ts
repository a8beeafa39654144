// Chooses the next open range and builds the question for it. Decides nothing about answers.

import { directionOf, largeShare } from './capacity.ts';
import { sizeOfPieces } from './page-cuts.ts';
import type { FilterShape, Question } from './question.ts';
import { contains, isInside, largestBound, largestId, type Range } from './range.ts';
import { isSorted, type State, type StateFacts } from './sweep-state.ts';

/** A sample of the stored ids in rising order, one in every `stride`. Questions end there so that each expects less than half a page. */
export interface SplitPoints {
  readonly positions: readonly bigint[];
  readonly stride: number;
  /** An earlier sweep saw pages end at different lengths. This only makes questions smaller: answers are judged by what this sweep sees. */
  readonly uneven: boolean;
}

/** The next question for a range that is open and not in flight. */
export function nextRangeQuestion(
  { facts, ranges }: State,
  inFlight: readonly Question[],
  splitPoints: SplitPoints | undefined,
): Question | null {
  const asked = inFlight.filter(({ purpose }) => purpose === 'range' || purpose === 'confirm');
  const isUnread = (range: Range) => range.expected === 0;
  const first = (wanted: (range: Range) => boolean) => {
    for (const range of ranges) {
      if (range.state !== 'open' || !wanted(range) || hasSuspect(facts, range)) continue;
      const question = partQuestion(facts, range, asked, splitPoints);
      if (question !== null) return question;
    }
    return null;
  };
  // The first page with both bounds should be full, because it shows how much a page holds. After that, ranges whose content is known come
  // first: they close, and the list of open ranges stays short.
  const untried =
    facts.both.rows === 0 ? first((range) => isUnread(range) && range.to !== null && range.origin !== null) : null;
  return untried ?? first((range) => !isUnread(range)) ?? first(isUnread);
}

/** True while an unshown id of the range still has to be asked alone. The range itself waits for that. */
function hasSuspect({ suspects }: StateFacts, range: Range): boolean {
  return suspects.some(({ id }) => isInside(range, id));
}

/** The question for a range, or for its next part whose stored ids suggest that one answer closes it; null while it is in flight. */
function partQuestion(
  facts: StateFacts,
  range: Range,
  asked: readonly Question[],
  splitPoints: SplitPoints | undefined,
): Question | null {
  let { from } = range;
  for (const question of asked) {
    if (!contains(range, question)) continue;
    if (splitPoints === undefined || question.to === null || question.to === range.to) return null;
    if (question.to >= from) from = question.to + 1n;
  }
  if (range.empty !== null && from === range.from) return confirmQuestion(facts, range, range.empty);
  const whole = rangeQuestion(facts, { ...range, from });
  const size = sizeOfPieces(splitPoints?.uneven && isSorted(facts) ? { ...facts, uneven: true } : facts, 'both');
  // The sizes of stored rows are unknown here. The mean size is used, with room for larger rows.
  const mean = facts.shown.bytes / Math.max(1, facts.shown.rows);
  const rows = Math.max(1, Math.min(size.rows, Math.floor((size.bytes * 0.9) / Math.max(1, mean))));
  // In an unsorted list, only the first halves can show whether the filters act before the cap; inner parts cannot.
  const direction = directionOf(facts);
  const reach = direction !== 'mixed' || (facts.reachAfter && facts.reachBefore);
  // Where single rows take up much of a page, parts cut by the mean size are too large. Ask for the whole range to learn the sizes, as in a
  // first sweep.
  const isUneven = splitPoints?.uneven === true && facts.largestRow >= facts.both.bytes * largeShare;
  if (splitPoints === undefined || size.rows === 0 || facts.both.rows === 0 || !reach || isUneven) return whole;
  const step = Math.max(1, Math.floor(rows / splitPoints.stride));
  const ahead = indexOf(splitPoints.positions, from) + step;
  // A part has a stored id at its far end: its last position, or its first in a descending list.
  const next = splitPoints.positions[ahead];
  const to =
    direction === 'descending' ? (next === undefined ? undefined : next - 1n) : splitPoints.positions[ahead - 1];
  if (to === undefined || to < from || (range.to !== null && to >= range.to)) return whole;
  return rangeQuestion(facts, { from, to, step: { after: range.step.after, before: false } });
}

/** Index of the first position that is not below `from`. */
function indexOf(positions: readonly bigint[], from: bigint): number {
  let [low, high] = [0, positions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((positions[middle] as bigint) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The question for a range. Bounds are always sent as if they were exclusive, so that the range is covered whether the source includes
 * them or not. A bound that comes back takes up a row; the question steps over it only where it fills the page.
 */
export function rangeQuestion(facts: StateFacts, { from, to, step }: Pick<Range, 'from' | 'to' | 'step'>): Question {
  const { least, most } = facts.shift;
  const isDate = facts.axis === 'date';
  const after = from - (step.after ? 0n : 1n) - (isDate ? most : 0n);
  const upper = to === null ? null : to + (step.before ? 0n : 1n) - (isDate ? least : 0n);
  // There are no ids beyond, and the source would refuse a bound that is not a valid id.
  const before = upper !== null && upper > largestId ? null : upper;
  return { axis: facts.axis, purpose: 'range', from, to, after, before, since: null };
}

/** Asks whether an id is still in the list. */
export function aloneQuestion(id: bigint): Question {
  const before = id < largestId ? id + 1n : null;
  return { axis: 'id', purpose: 'alone', from: id, to: id, after: id - 1n, before, since: null };
}

/** Asks for the same range in another shape: a source that answers one shape wrongly may answer the other correctly. */
function confirmQuestion(facts: StateFacts, range: Range, answered: FilterShape): Question {
  const { from, to } = range;
  const shared = { axis: facts.axis, purpose: 'confirm', from, to, since: null } as const;
  if (answered === 'both' && to !== null) {
    // Uses the filter on the side where the list begins, so that the first rows of the answer are next to the range.
    const usesBefore = range.abandoned ? range.abandoned === 'after' : directionOf(facts) === 'descending';
    return { ...shared, after: usesBefore ? null : from - 1n, before: usesBefore ? to + 1n : null };
  }
  const beyond = from * 2n + 1_000_000n;
  const largest = largestBound(from);
  return { ...shared, after: from - 1n, before: to === null ? (beyond > largest ? largest : beyond) : to + 1n };
}

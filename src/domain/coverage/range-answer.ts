// Decides what an answer to a range question proves: the range is closed, or must be asked again, or the source does not honour both
// filters together. Does not know which question comes next or what the whole sweep proves.

import { directionOf, isShortByRows, type PageSize, rowLimit, smallPage, withAnswer } from './capacity.ts';
import { capacityOf, findUnexplained, isShortPage, lower, noteCut, noteExcess, vouchOf } from './page-cuts.ts';
import {
  type Answer,
  type FilterShape,
  type ListedRow,
  type PageAnswer,
  positionOf,
  type Question,
  shapeOf,
  sizeOf,
} from './question.ts';
import { contains, isInside, largestId, type Origin, openRange, partOf, type Range, remainders } from './range.ts';
import { type Shown, splitAbandoned, splitAnswered } from './split-range.ts';
import {
  addFault,
  addReservation,
  dateSlackSeconds,
  isSorted,
  replace,
  type StateFacts,
  type SweepDraft,
} from './sweep-state.ts';
import { beginWalk } from './walk.ts';

/** Applies the answer to a range question. */
export function learnRange(draft: SweepDraft, question: Question, answer: Answer): void {
  const whole = draft.ranges.find((range) => range.state === 'open' && contains(range, question));
  if (whole === undefined || question.from === null) return;
  const range = partOf(whole, question.from, question.to);
  const pieces = piecesOf(draft, range, question, answer);
  if (pieces === null) return;
  // `piecesOf` may have reopened other ranges, but never this one.
  replace(draft, whole, [...remainders(whole, question.from, question.to), ...pieces]);
}

/** The pieces that replace the range; null when the sweep no longer trusts both filters together. */
function piecesOf(draft: SweepDraft, range: Range, question: Question, answer: Answer): Range[] | null {
  const { facts } = draft;
  if (answer.kind === 'refused') {
    const isMixture = question.after !== null && question.before !== null && facts.axis === 'id';
    if (isMixture) return startWalk(facts, 'refuses');
    addFault(facts, 'the source refuses the filters of a question');
    return [{ ...range, state: 'stuck' }];
  }
  if (answer.kind === 'overflow') return splitAbandoned(facts, range, answer.rows);
  const inside = readRange(facts, range, question, answer);
  if (inside === null) return null;
  noteExcess(draft, range, inside.length);
  facts.recent += answer.rows.filter((row) => answer.unheld.includes(row.id) && isRecent(facts, row)).length;
  const shape = question.before === null ? 'after' : 'both';
  facts[shape] = withAnswer(facts[shape], sizeOf(answer));
  if (!isShort(facts, question, answer)) {
    noteCut(draft, question, answer);
    return splitAnswered(facts, range, question, answer, inside);
  }
  const unshown = findUnexplained(facts, answer);
  if (unshown.length > 0 && !isUnshownBehind(facts, question, answer))
    return markSuspects(draft, range, question, answer);
  if (answer.weakEmpty) addReservation(facts, 'harmless', 'the source says "nothing" without an empty list');
  return closeShort(facts, range, question, answer, inside);
}

/**
 * True when no cap can have cut the answer off: it is empty, or it has less than half of the rows of the smallest page that may have been
 * cut off and few enough bytes, or the question was for one id and the answer shows it.
 */
export function isShort(facts: StateFacts, question: Question, page: PageAnswer): boolean {
  if (isEmpty(facts, question, page)) return true;
  const isSingle = question.from !== null && question.from === question.to;
  if (isSingle && page.rows.some(({ id }) => id === question.from)) return true;
  return isShortPage(facts, shapeOf(question), sizeOf(page));
}

/** True if the answer shows no id. Elements without a readable id take up room, so they must leave half of a page free. */
function isEmpty(facts: StateFacts, question: Question, { rows, unreadable, bytes }: PageAnswer): boolean {
  if (rows.length > 0) return false;
  if (unreadable === 0) return true;
  if (rowLimit(capacityOf(facts, shapeOf(question))) < smallPage) return leavesRoom(facts, unreadable);
  return isShortPage(facts, shapeOf(question), { rows: unreadable, bytes });
}

/** True if the elements without a readable id take up at most half of the longest page. */
function leavesRoom({ longest }: StateFacts, unreadable: number): boolean {
  return unreadable * 2 <= longest;
}

/** True if all known ids that the page lacks are behind the last row of a sorted page: a byte cap may have ended it there. */
export function isUnshownBehind(facts: StateFacts, question: Question, page: PageAnswer): boolean {
  if (vouchOf(facts, shapeOf(question)) !== 'sorted') return false;
  const { rows } = page;
  const unshown = findUnexplained(facts, page);
  const falls = directionOf(facts) === 'descending';
  return (
    rows.length > 0 &&
    unshown.length > 0 &&
    unshown.every(({ id }) => rows.every((row) => (falls ? id < row.id : id > row.id)))
  );
}

/**
 * Handles an answer that lacks known ids although it is too short to have been cut off: the source has deleted them, or the answer is
 * wrong. It closes nothing. Each of the ids is asked alone, and then the question is asked again.
 */
function markSuspects(draft: SweepDraft, range: Range, question: Question, page: PageAnswer): Range[] {
  addSuspects(draft.facts, question, page);
  const failures = range.failures + 1;
  if (failures < mostFailures) return [{ ...range, failures, empty: null }];
  addFault(draft.facts, 'answers keep lacking applications that the source shows elsewhere');
  return [{ ...range, failures, state: 'stuck' }];
}

const mostFailures = 5;

export function addSuspects(facts: SweepDraft['facts'], question: Question, page: PageAnswer): void {
  const known = new Set(facts.suspects.map(({ id }) => id));
  const evidence = { ...sizeOf(page), shape: shapeOf(question), missedOnce: false };
  const fresh = findUnexplained(facts, page).filter(({ id }) => !known.has(id));
  // The id next to the last row shown comes first. If it had no room on the page, that explains the others too.
  if (directionOf(facts) === 'descending') fresh.reverse();
  facts.suspects = [...facts.suspects, ...fresh.map(({ id, old }) => ({ id, old, ...evidence }))];
}

/** Closes the range of a short answer that nothing contradicts; only up to the last row shown where rows may be too large for a page. */
function closeShort(
  facts: SweepDraft['facts'],
  range: Range,
  question: Question,
  page: PageAnswer,
  inside: readonly Shown[],
): Range[] {
  const answer = sizeOf(page);
  const shape = shapeOf(question);
  if (isEmpty(facts, question, page)) {
    if (needsConfirmation(facts, range)) return [{ ...range, empty: shape, expected: 0 }];
    return [{ ...range, state: 'closed', answer: { rows: 0, bytes: 0 }, sorted: false }];
  }
  const falls = directionOf(facts) === 'descending';
  const last = (falls ? inside[0] : inside.at(-1))?.position;
  const isWhole = last !== undefined && last === (falls ? range.from : range.to);
  const sorted = isSorted(facts) && isWhole;
  const isSingle = range.from === range.to && inside.length > 0;
  const isPlain = isShortByRows(capacityOf(facts, shape), answer.rows) && vouchOf(facts, shape) !== 'sorted';
  if (isPlain && facts.rigor === 'poll' && inside.length > 0) {
    return closePolled(facts, range, { ...answer, shape }, inside);
  }
  if (isPlain || isSingle || sorted) return [{ ...range, state: 'closed', answer, sorted }];
  if (last === undefined) return splitAnswered(facts, range, question, page, [...inside]);
  const closed = { ...range, state: 'closed', answer, sorted: true } as const;
  return closeUpTo(last, falls, closed, { ...answer, shape, low: null, high: null });
}

/** Closes a range up to the last row of a sorted page. The rest stays open. */
function closeUpTo(last: bigint, falls: boolean, closed: Range, origin: Omit<Origin, 'side'>): Range[] {
  if (falls) {
    const rest = openRange(closed.from, last - 1n);
    return [
      { ...rest, origin: { ...origin, side: 'before' } },
      { ...closed, from: last },
    ];
  }
  const rest = openRange(last + 1n, closed.to);
  return [
    { ...closed, to: last },
    { ...rest, origin: { ...origin, side: 'after' } },
  ];
}

/**
 * A poll asks no witnesses and takes the page size from an earlier sweep, so it checks for more rows: after the last row of a sorted list,
 * or in both halves of an unsorted one. The halves show more rows than the whole did if that was cut off.
 */
function closePolled(
  facts: StateFacts,
  range: Range,
  page: PageSize & { readonly shape: FilterShape },
  inside: readonly Shown[],
): Range[] {
  const direction = isSorted(facts) ? directionOf(facts) : 'mixed';
  const [low, high] = [(inside[0] as Shown).position, (inside.at(-1) as Shown).position];
  const closed = { ...range, state: 'closed', answer: { rows: page.rows, bytes: page.bytes }, sorted: false } as const;
  const origin = { ...page, low, high } as const;
  if (direction === 'ascending' && high < (range.to ?? largestId)) return closeUpTo(high, false, closed, origin);
  if (direction === 'descending' && low > range.from) return closeUpTo(low, true, closed, origin);
  const middle = (inside[(inside.length - 1) >> 1] as Shown).position;
  if (direction !== 'mixed' || range.origin !== null || middle >= (range.to ?? largestId)) return [closed];
  const below = inside.filter(({ position }) => position <= middle).length;
  return [
    { ...openRange(range.from, middle), expected: below, origin: { ...origin, side: 'before' } },
    { ...openRange(middle + 1n, range.to), expected: inside.length - below, origin: { ...origin, side: 'after' } },
  ];
}

/**
 * A question of another shape confirms an empty answer. Exceptions: polls, sweeps by date, single ids, ranges between neighbours of a
 * sorted page, and ranges inside the list while pages with both bounds hold fewer than 16 rows, where half of all answers are empty.
 */
function needsConfirmation(facts: StateFacts, range: Range): boolean {
  if (facts.rigor === 'poll' || facts.axis === 'date' || range.empty !== null || range.from === range.to) return false;
  if (isBetweenNeighbours(facts, range)) return false;
  const isEnd = range.to === null || range.from <= facts.from || range.to === facts.to;
  return isEnd || rowLimit(capacityOf(facts, 'both')) >= smallPage;
}

/** True if a page of a sorted list showed ids on both sides of the range and none inside. That page already proves the range empty. */
function isBetweenNeighbours(facts: StateFacts, { from, to, expected, origin }: Range): boolean {
  if (origin === null || origin.low === null || origin.high === null || to === null || !isSorted(facts)) return false;
  return expected === 0 && origin.low < from && to < origin.high;
}

/** Applies the answer to a question of another shape about a range that was answered empty. */
export function learnConfirmation(draft: SweepDraft, question: Question, answer: Answer): void {
  const { facts } = draft;
  const range = draft.ranges.find(
    ({ state, from, empty }) => state === 'open' && empty !== null && from === question.from,
  );
  if (range === undefined) return;
  if (answer.kind === 'refused' && question.after !== null && question.before !== null) {
    startWalk(facts, 'refuses');
    return;
  }
  const inside = answer.kind === 'refused' ? [] : answer.rows.filter(({ id }) => isInside(range, id));
  const isByOneFilter = question.after === null || question.before === null;
  if (answer.kind === 'overflow' && inside.length === 0 && isByOneFilter && range.abandoned === undefined) {
    replace(draft, range, [{ ...range, abandoned: question.after === null ? 'before' : 'after' }]);
    return;
  }
  if (inside.length === 0) {
    // The filter on the far side shows rows next to the range only on a page that was not cut off.
    const isFarAndCut = range.abandoned !== undefined && answer.kind === 'page' && !isShort(facts, question, answer);
    const isUnconfirmed = answer.kind !== 'page' || isFarAndCut || !leavesRoom(facts, answer.unreadable);
    // Answers that are too large to read say nothing against the empty one.
    const risk = range.abandoned === undefined ? 'doubt' : 'harmless';
    if (isUnconfirmed) addReservation(facts, risk, 'an empty answer could not be confirmed');
    replace(draft, range, [{ ...range, state: 'closed', answer: { rows: 0, bytes: 0 }, sorted: false }]);
    return;
  }
  noteLate(facts, inside);
  if (inside.some((row) => !isRecent(facts, row))) lower(draft, { rows: 0, bytes: 0, shape: range.empty ?? 'both' });
  for (const row of inside) noteExtremes(facts, row);
  replace(draft, range, [{ ...openRange(range.from, range.to), expected: inside.length }]);
}

/** True if the row may have arrived during the sweep. */
function isRecent({ recentFrom }: StateFacts, { at }: ListedRow): boolean {
  return recentFrom !== null && at !== null && at >= recentFrom;
}

/** Records rows that appeared in a range that had been read: a recent row arrived meanwhile, an older one may have been hidden. */
export function noteLate(facts: SweepDraft['facts'], rows: readonly ListedRow[]): void {
  if (rows.every((row) => isRecent(facts, row))) return;
  addReservation(facts, 'doubt', 'an application appeared in a range that had been read');
}

/** The positions that a page shows inside the range, distinct and rising; null when it shows ids outside the question. */
function readRange(facts: SweepDraft['facts'], range: Range, question: Question, page: PageAnswer): Shown[] | null {
  const inside = new Map<bigint, number>();
  if (facts.axis === 'date') noteShift(facts, question, page);
  for (const row of page.rows) {
    const position = positionOf(facts.axis, row);
    if (position === null) continue;
    if (isInside(range, position)) inside.set(position, (inside.get(position) ?? 0) + row.bytes);
    else if (facts.axis === 'date') continue;
    else if (position === question.after || position === question.before) noteInclusive(facts, question, position);
    else return startWalk(facts, 'does not honour');
    noteExtremes(facts, row);
  }
  return [...inside]
    .map(([position, bytes]) => ({ position, bytes }))
    .sort((a, b) => (a.position < b.position ? -1 : 1));
}

function noteInclusive(facts: SweepDraft['facts'], question: Question, position: bigint): void {
  const shape = shapeOf(question);
  const side = position === question.after ? 'after' : 'before';
  if (facts.inclusive[shape][side]) return;
  facts.inclusive = { ...facts.inclusive, [shape]: { ...facts.inclusive[shape], [side]: true } };
}

/** On the date axis, learns from the dates shown in which time zone the source interprets a bound. Allows an hour for daylight saving. */
function noteShift(facts: SweepDraft['facts'], { after, before }: Question, { rows }: PageAnswer): void {
  let { least, most } = facts.shift;
  for (const { at } of rows) {
    if (at === null) continue;
    if (after !== null && at - after + 3600n < most) most = at - after + 3600n;
    if (before !== null && at - before - 3600n > least) least = at - before - 3600n;
  }
  if (least > most || most < -dateSlackSeconds || least > dateSlackSeconds) {
    addFault(facts, 'the source does not honour its date filters');
    return;
  }
  facts.shift = { least, most };
}

/** The source does not honour both filters together, so the sweep walks the list with one. */
function startWalk(facts: SweepDraft['facts'], does: string): null {
  facts.walk = beginWalk(facts.from, facts.to, facts, `the source ${does} afterid and beforeid together`);
  return null;
}

/** Records the lowest and the highest id, and the earliest and the latest date, that were shown. */
export function noteExtremes(facts: SweepDraft['facts'], { id, at }: Pick<ListedRow, 'id' | 'at'>): void {
  if (facts.lowest === null || id < facts.lowest) facts.lowest = id;
  if (facts.highest === null || id > facts.highest) facts.highest = id;
  if (at === null) return;
  if (facts.earliestAt === null || at < facts.earliestAt) facts.earliestAt = at;
  if (facts.latestAt === null || at > facts.latestAt) facts.latestAt = at;
}

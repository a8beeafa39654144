// What an answer to a range question proves: the range is closed, or has to be asked again, or both filters are not honoured together.
// Knows neither which question comes next nor what the whole sweep is worth.

import { directionOf, isShortByRows, rowLimit, smallPage, withAnswer } from './capacity.ts';
import { believed, vouchOf } from './next-question.ts';
import { findUnexplained, isShortPage, lower, noteCut, noteExcess } from './page-cuts.ts';
import {
  type Answer,
  type FilterShape,
  type ListedRow,
  lengthOf,
  type PageAnswer,
  positionOf,
  type Question,
  shapeOf,
} from './question.ts';
import { contains, isInside, largestId, openRange, partOf, type Range, remainders, type Shown } from './range.ts';
import { cutAbandoned, cutAnswered } from './split-range.ts';
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

/** Takes in the answer to a range question. */
export function learnRange(draft: SweepDraft, question: Question, answer: Answer): void {
  const whole = draft.ranges.find((range) => range.state === 'open' && contains(range, question));
  if (whole === undefined || question.from === null) return;
  const range = partOf(whole, question.from, question.to);
  const pieces = piecesOf(draft, range, question, answer);
  if (pieces === null) return;
  // Learning may have reopened other ranges, never this one.
  const now = draft.ranges.find((other) => other.from === whole.from) ?? whole;
  replace(draft, now, [...remainders(whole, question.from, question.to), ...pieces]);
}

/** What becomes of the range; null when both filters are no longer believed. */
function piecesOf(draft: SweepDraft, range: Range, question: Question, answer: Answer): Range[] | null {
  const { facts } = draft;
  if (answer.kind === 'refused') {
    const isMixture = question.after !== null && question.before !== null && facts.axis === 'id';
    if (isMixture) return startWalk(facts, 'refuses');
    addFault(facts, 'the source refuses the filters of a question');
    return [{ ...range, state: 'stuck' }];
  }
  if (answer.kind === 'overflow') return cutAbandoned(facts, range, answer.rows);
  const inside = readRange(facts, range, question, answer);
  if (inside === null) return null;
  noteExcess(draft, range, inside.length);
  facts.recent += answer.rows.filter((row) => answer.unheld.includes(row.id) && isRecent(facts, row)).length;
  const shape = question.before === null ? 'after' : 'both';
  facts[shape] = withAnswer(facts[shape], lengthOf(answer), answer.bytes);
  if (!isShort(facts, question, answer)) {
    noteCut(draft, question, answer);
    return cutAnswered(facts, range, question, answer, inside);
  }
  const unshown = findUnexplained(facts, answer);
  if (unshown.length > 0 && !isUnshownBehind(facts, question, answer)) return suspect(draft, range, question, answer);
  if (answer.weakEmpty) addReservation(facts, 'harmless', 'the source says "nothing" without an empty list');
  return closeShort(facts, range, question, answer, inside);
}

/**
 * True when no cap can have cut the answer off: it is empty, or it has less than half of the rows of the smallest page that may have been
 * cut and few enough bytes, or it was asked for one id and shows that.
 */
export function isShort(facts: StateFacts, question: Question, page: PageAnswer): boolean {
  const { rows, unreadable, bytes } = page;
  if (isEmpty(facts, question, page)) return true;
  if (question.from !== null && question.from === question.to && rows.some(({ id }) => id === question.from))
    return true;
  return isShortPage(facts, shapeOf(question), { rows: rows.length + unreadable, bytes });
}

/** Nothing came back. Elements without a readable id take up places and bytes, so they must leave half of a page free. */
function isEmpty(facts: StateFacts, question: Question, { rows, unreadable, bytes }: PageAnswer): boolean {
  if (rows.length > 0) return false;
  if (unreadable === 0) return true;
  const capacity = believed(facts, shapeOf(question));
  if (rowLimit(capacity) < smallPage) return leavesRoom(facts, unreadable);
  return isShortPage(facts, shapeOf(question), { rows: unreadable, bytes });
}

/** Elements without a readable id take up at most half of the longest page. */
function leavesRoom({ longest }: StateFacts, unreadable: number): boolean {
  return unreadable * 2 <= longest;
}

/** The page does not show known ids, all of them behind the last row of a sorted page, which its bytes may have ended there. */
export function isUnshownBehind(facts: StateFacts, question: Question, page: PageAnswer): boolean {
  if (vouchOf(facts, believed(facts, shapeOf(question))) !== 'sorted') return false;
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
 * An answer that is too short to have been cut off lacks known ids: the source has deleted them, or the answer is false. It closes
 * nothing, each of the ids is asked alone, and then the question is asked again.
 */
function suspect(draft: SweepDraft, range: Range, question: Question, page: PageAnswer): Range[] {
  addSuspects(draft.facts, question, page);
  const failures = range.failures + 1;
  if (failures < mostFailures) return [{ ...range, failures, empty: null }];
  addFault(draft.facts, 'answers keep lacking applications that the source shows elsewhere');
  return [{ ...range, failures, state: 'stuck' }];
}

const mostFailures = 5;

export function addSuspects(facts: SweepDraft['facts'], question: Question, page: PageAnswer): void {
  const known = new Set(facts.suspects.map(({ id }) => id));
  const evidence = { rows: lengthOf(page), bytes: page.bytes, shape: shapeOf(question), missedOnce: false };
  const fresh = findUnexplained(facts, page).filter(({ id }) => !known.has(id));
  // First the one next to the rows that were shown: it may have had no room on the page, which explains the others.
  if (directionOf(facts) === 'descending') fresh.reverse();
  facts.suspects = [...facts.suspects, ...fresh.map(({ id, old }) => ({ id, old, ...evidence }))];
}

/** Closes the range of a short answer that nothing contradicts; where rows may be too large for a page, only up to the last one shown. */
function closeShort(
  facts: SweepDraft['facts'],
  range: Range,
  question: Question,
  page: PageAnswer,
  inside: readonly Shown[],
): Range[] {
  const answer = { rows: lengthOf(page), bytes: page.bytes };
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
  const capacity = believed(facts, shape);
  const isPlain = isShortByRows(capacity, answer.rows) && vouchOf(facts, capacity) !== 'sorted';
  if (isPlain && facts.rigor === 'poll' && inside.length > 0) {
    return closePolled(facts, range, { ...answer, shape }, inside);
  }
  if (isPlain || isSingle || sorted) return [{ ...range, state: 'closed', answer, sorted }];
  if (last === undefined) return cutAnswered(facts, range, question, page, [...inside]);
  const near = { ...range, state: 'closed', answer, sorted: true } as const;
  const rest = openRange(falls ? range.from : last + 1n, falls ? last - 1n : range.to);
  const origin = { ...answer, shape, side: falls ? ('before' as const) : ('after' as const), low: null, high: null };
  return falls
    ? [
        { ...rest, origin },
        { ...near, from: last },
      ]
    : [
        { ...near, to: last },
        { ...rest, origin },
      ];
}

/**
 * A poll asks no witnesses and takes the page size from an earlier sweep, so the rest is asked: what follows the last row in a list in
 * order, both halves in any other, which show more than the whole did if that was cut off.
 */
function closePolled(
  facts: StateFacts,
  range: Range,
  page: { readonly rows: number; readonly bytes: number; readonly shape: FilterShape },
  inside: readonly Shown[],
): Range[] {
  const direction = isSorted(facts) ? directionOf(facts) : 'mixed';
  const [low, high] = [(inside[0] as Shown).position, (inside.at(-1) as Shown).position];
  const closed = { ...range, state: 'closed', answer: { rows: page.rows, bytes: page.bytes }, sorted: false } as const;
  const origin = { ...page, low, high } as const;
  if (direction === 'ascending' && high < (range.to ?? largestId)) {
    return [
      { ...closed, to: high },
      { ...openRange(high + 1n, range.to), origin: { ...origin, side: 'after' } },
    ];
  }
  if (direction === 'descending' && low > range.from) {
    return [
      { ...openRange(range.from, low - 1n), origin: { ...origin, side: 'before' } },
      { ...closed, from: low },
    ];
  }
  const middle = (inside[(inside.length - 1) >> 1] as Shown).position;
  if (direction !== 'mixed' || range.origin !== null || middle >= (range.to ?? largestId)) return [closed];
  const below = inside.filter(({ position }) => position <= middle).length;
  return [
    { ...openRange(range.from, middle), expected: below, origin: { ...origin, side: 'before' } },
    { ...openRange(middle + 1n, range.to), expected: inside.length - below, origin: { ...origin, side: 'after' } },
  ];
}

/**
 * An empty answer is confirmed by another shape of question. Not in polls, by date, for a single id, between neighbours of a sorted
 * page, and not inside the list while pages with both bounds hold fewer than 16 rows, where half of all answers are empty.
 */
function needsConfirmation(facts: StateFacts, range: Range): boolean {
  if (facts.rigor === 'poll' || facts.axis === 'date' || range.empty !== null || range.from === range.to) return false;
  if (isBetweenNeighbours(facts, range)) return false;
  const isEnd = range.to === null || range.from <= facts.from || range.to === facts.to;
  return isEnd || rowLimit(believed(facts, 'both')) >= smallPage;
}

/** In a sorted list the page that showed the ids on both sides of a range and none inside has said already that it is empty. */
function isBetweenNeighbours(facts: StateFacts, { from, to, expected, origin }: Range): boolean {
  if (origin === null || origin.low === null || origin.high === null || to === null || !isSorted(facts)) return false;
  return expected === 0 && origin.low < from && to < origin.high;
}

/** Takes in what another shape of question says of a range that was answered empty. */
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
  if (
    answer.kind === 'refused' ||
    (answer.kind === 'page' && inside.length === 0 && !leavesRoom(facts, answer.unreadable))
  )
    addReservation(facts, 'doubt', 'an empty answer could not be confirmed');
  if (inside.length === 0) {
    replace(draft, range, [{ ...range, state: 'closed', answer: { rows: 0, bytes: 0 }, sorted: false }]);
    return;
  }
  noteLate(facts, inside);
  if (inside.some((row) => !isRecent(facts, row))) lower(draft, { rows: 0, bytes: 0, shape: range.empty ?? 'both' });
  for (const row of inside) noteExtremes(facts, row);
  const now = draft.ranges.find((other) => other.from === range.from) ?? range;
  replace(draft, now, [{ ...openRange(range.from, range.to), expected: inside.length }]);
}

/** True when the row may have arrived while the sweep was under way. */
function isRecent({ recentFrom }: StateFacts, { at }: ListedRow): boolean {
  return recentFrom !== null && at !== null && at >= recentFrom;
}

/** Rows that came to light where a range had been read: a recent one arrived meanwhile, an older one may have been hidden. */
export function noteLate(facts: SweepDraft['facts'], rows: readonly ListedRow[]): void {
  if (rows.every((row) => isRecent(facts, row))) return;
  addReservation(facts, 'doubt', 'an application came to light in a range that had been read');
}

/** The positions that a page shows inside the range, distinct and rising; null when it shows what was not asked for. */
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

/** On the date axis: what the shown dates say of the zone in which the source reads a bound. An hour is left for daylight saving. */
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

/** Both filters together are not honoured: the list is walked by one. */
function startWalk(facts: SweepDraft['facts'], does: string): null {
  facts.walk = beginWalk(facts.from, facts.to, facts, `the source ${does} afterid and beforeid together`);
  return null;
}

function noteExtremes(facts: SweepDraft['facts'], { id, at }: Pick<ListedRow, 'id' | 'at'>): void {
  if (facts.lowest === null || id < facts.lowest) facts.lowest = id;
  if (facts.highest === null || id > facts.highest) facts.highest = id;
  if (at === null) return;
  if (facts.earliestAt === null || at < facts.earliestAt) facts.earliestAt = at;
  if (facts.latestAt === null || at > facts.latestAt) facts.latestAt = at;
}

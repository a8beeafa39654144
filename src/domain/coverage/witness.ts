// Plans the witnesses (R9 of docs/coverage.md), the questions that follow when all ranges are closed. They look for applications that the
// range questions may have hidden: with one filter, beyond the ends, in the widest gaps, at random splits and by date. They close nothing
// and can only contradict.

import { isCut } from './certificate.ts';
import {
  firstPosition,
  gapsBetween,
  type IdRange,
  isSingle,
  largestBound,
  lastPosition,
  nearestPosition,
  type Position,
  rising,
  toRange,
  widthOf,
} from './position.ts';
import { aloneQuestion, boundedQuestion, dateSlackSeconds, isSameQuestion, type Question } from './question.ts';
import {
  type Draft,
  type Facts,
  hasRoom,
  indexOfOpen,
  type KnownPages,
  longestOf,
  type OpenRange,
  orderOf,
  type State,
  smallPage,
} from './state.ts';

/** The widest gaps that are asked again, the closed ranges that are split at random, and the lost ids that are asked alone. Choices. */
const mostGaps = 6;
const mostSamples = 6;
export const mostGone = 20;

/** Remembers the widest gaps of a range that was closed. Keeps each range that shows an id with the same probability. */
export function noteClosed(facts: Draft['facts'], range: IdRange, shown: readonly Position[]): void {
  facts.closedRanges++;
  // The ends of the list are asked apart.
  const gaps = gapsBetween(range, shown).filter((gap) => gap.from !== facts.from && gap.to !== facts.to);
  facts.gaps = [...facts.gaps, ...gaps].sort((a, b) => rising(widthOf(b), widthOf(a))).slice(0, mostGaps);
  const [count, random] = [facts.samples.length, createRandom(facts.seed + facts.closedRanges)];
  const at = count < mostSamples ? count : Math.floor(random() * facts.closedRanges);
  if (shown.length > 0 && at < mostSamples) facts.samples = facts.samples.toSpliced(at, 1, range);
}

/** Random numbers from 0 to 1 that depend only on the seed, so that a sweep loaded from the database asks the same questions. */
function createRandom(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function planWitnesses({ facts, open }: State): Question[] {
  if (facts.rigor === 'poll') return facts.highest === null ? facts.lifelines.map(aloneQuestion) : [];
  const questions = [
    ...facts.goneSample.map(aloneQuestion),
    // The widest question again shows a list that comes in another order each time.
    ...(facts.closedRanges > 1 ? [within(facts)] : []),
    ...beyondTheEnds(facts),
    ...facts.gaps.map(within),
    // In small pages a gap closes by empty answers alone: what lies behind it is asked too.
    ...(longestOf(facts) < smallPage ? facts.gaps.map((gap) => fromStart(facts, gap)) : []),
    ...randomSplits(facts),
    ...byDate(facts),
  ];
  return questions.filter(
    (one, nth) =>
      questions.findIndex((other) => isSameQuestion(other, one)) === nth &&
      // A question across an id that cannot be read would fail like it.
      (one.covers === null || !crosses(open, one.covers)),
  );
}

function crosses(open: readonly OpenRange[], { from, to }: IdRange): boolean {
  const next = open[indexOfOpen(open, from)];
  return next !== undefined && next.from <= to;
}

const within = (range: IdRange): Question => boundedQuestion('witness', range);

function from(range: IdRange): Question {
  return { ...within(range), beforeId: null };
}

function upTo(range: IdRange): Question {
  return { ...within(range), afterId: null };
}

/** Asks for a range and what lies behind it, seen from the side where the list begins. */
function fromStart(facts: Facts, { from: first, to }: IdRange): Question {
  return orderOf(facts) === 'descending' ? upTo({ from: facts.from, to }) : from({ from: first, to: facts.to });
}

/** Distances beyond the ends, in pages. A page of rows that are dropped after the cut hides what lies behind it, over many pages. */
const pagesBeyond = [1 / 16, 1, 2, 4, 8, 16, 32];

function beyondTheEnds(facts: Facts): Question[] {
  const { lowest, highest } = facts;
  const toEnd = facts.to === lastPosition;
  const isFirst = facts.from === firstPosition;
  if (lowest === null || highest === null) {
    // Nothing was ever shown: several distances of ids before the account is called empty. A choice.
    const places = [1_000n, 1_000_000n, 1_000_000_000n].map((far) => nearestPosition(facts.from + far));
    return toEnd ? places.map((place) => from({ from: place, to: facts.to })) : [];
  }
  const rows = Math.max(1, longestOf(facts));
  const page = ((highest - lowest) * BigInt(rows)) / BigInt(Math.max(1, facts.found)) + 1n;
  // At distance 0 the outermost id must come back. Neighbouring questions ask the same end, in case two copies alternate.
  const distances = [0n, 1n, ...pagesBeyond.map((pages) => BigInt(Math.ceil(Number(page) * pages)) + 1n)];
  const above = distances.flatMap((far) => toRange(highest + far, facts.to) ?? []);
  // The axis ends below: parts of the way to its end are asked too, where a distance would lie beyond it.
  const lower = [...distances.map((far) => lowest - far), lowest / 2n, lowest / 4n, lowest / 8n];
  const below = lower.flatMap((to) => toRange(facts.from, to) ?? []);
  return [
    ...(toEnd ? above.filter((range) => range.from <= largestBound(highest)).map(from) : []),
    ...(isFirst ? below.map(upTo) : []),
    // A date turns off a default window of the source ("the last 90 days").
    ...(isFirst ? below.slice(1, 2).map((range) => ({ ...within(range), afterDate: 0n })) : []),
  ];
}

/** Splits closed ranges at random: the lower part with both bounds, the upper one with the bound where the list begins. */
function randomSplits(facts: Facts): Question[] {
  const random = createRandom(facts.seed);
  const order = orderOf(facts);
  return facts.samples.flatMap((range, nth) => {
    const end = facts.highest !== null && range.to > facts.highest ? facts.highest : range.to;
    if (isSingle(range) || end <= range.from) return [];
    const at = nearestPosition(range.from + BigInt(Math.floor(random() * Number(end - range.from))));
    const upper = toRange(at + 1n, facts.to) as IdRange;
    const isFromTop = order === 'descending' || (order === 'mixed' && nth % 2 === 1);
    return [within({ from: range.from, to: at }), isFromTop ? upTo({ from: facts.from, to: end }) : from(upper)];
  });
}

/**
 * Beyond the first and the last date, by more than any time zone explains, nothing may come. If no page is known to have been cut off, the
 * account may be one page of a longer list whose id filters act after the cap; then the dates at the edges are asked as well.
 */
function byDate({ earliestAt, latestAt, reach, from: first, to }: Facts): Question[] {
  const shared = { purpose: 'witness', covers: null, afterId: null, beforeId: null } as const;
  const before = (at: bigint): Question => ({ ...shared, afterDate: null, beforeDate: at });
  const after = (at: bigint): Question => ({ ...shared, afterDate: at, beforeDate: null });
  if (earliestAt === null || latestAt === null)
    return first === firstPosition && to === lastPosition ? [after(0n)] : [];
  // The edge may be meant in UTC, or in the zones of the board.
  const hours = isCut({ reach }) ? [] : [0n, 10n, 11n];
  return [
    before(earliestAt - dateSlackSeconds),
    after(latestAt + dateSlackSeconds),
    ...hours.flatMap((many) => [before(earliestAt - many * 3600n), after(latestAt - many * 3600n)]),
  ];
}

// A random audit: the questions about one place of the list. The worker runs audits between sweeps. They can only contradict a certificate.

/** A few neighbouring stored ids at a random place, and the free positions around them, up to the next stored ids. */
export interface AuditPlace extends IdRange {
  readonly ids: readonly Position[];
}

/** Stored ids that one audit asks alone. If more are lacking, a page was cut off or the source deletes: the next recheck finds out. */
const mostAlone = 3;

/** An audit asks for a third of a page, so that its answer is not cut off. */
export function auditSize(pages: KnownPages | null): number {
  return Math.max(1, Math.min(200, Math.floor((pages?.both.rows ?? 0) / 3)));
}

/** Asks for the place with both bounds, and with the lower bound alone. The bounds are at random between the place and its neighbours. */
export function auditQuestions(place: AuditPlace, random: () => number): readonly [Question, Question] {
  const between = (low: bigint, high: bigint) =>
    nearestPosition(low + BigInt(Math.floor(random() * Number(high - low + 1n))));
  const lower = between(place.from, place.ids[0] as Position);
  const upper = between(place.ids.at(-1) as Position, place.to);
  return [within({ from: lower, to: upper }), from({ from: lower, to: lastPosition })];
}

/** Stored ids that the answer with both bounds lacks, to be asked alone; none where the page may have been cut off. */
export function lackingIds(
  place: AuditPlace,
  page: { readonly ids: readonly bigint[]; readonly bytes: number },
  known: KnownPages | null,
): Position[] {
  const facts = known && { pages: known, largestRow: known.largestRow, rigor: 'poll' as const };
  if (facts === null || !hasRoom(facts, { rows: page.ids.length, bytes: page.bytes, shape: 'both' })) return [];
  const shown = new Set(page.ids);
  return place.ids.filter((id) => !shown.has(id)).slice(0, mostAlone);
}

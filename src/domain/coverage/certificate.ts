// How a sweep ends: its witnesses are planned and asked, then it is judged: proven, assumed or unproven, with the reason.

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
  isUnreadable,
  type KnownPages,
  knownAsUnreadable,
  longestOf,
  type OpenRange,
  orderOf,
  type Reason,
  type State,
  smallPage,
  unreadableOnly,
} from './state.ts';
import { isWalkInOrder } from './walk.ts';

/**
 * What one sweep, or all sweeps together, say about a range of ids. proven: complete under the three assumptions below. assumed: read to the
 * end, with a reservation whose risk says how serious it is. unproven: do not rely on it.
 */
export interface Conclusion {
  readonly certificate: 'proven' | 'assumed' | 'unproven';
  /** none: proven. harmless: no evidence against it. doubt: evidence. */
  readonly risk: 'none' | 'harmless' | 'doubt';
  readonly reason: string;
}

/** The weakest of several conclusions; undefined where there is none. */
export function weakestOf<One extends Conclusion>(all: readonly One[]): One | undefined {
  const find = (risk: Conclusion['risk']) => all.find((one) => one.risk === risk);
  return all.find((one) => one.certificate === 'unproven') ?? find('doubt') ?? find('harmless') ?? all[0];
}

/** What `proven` relies on and no question can test with certainty. */
export const assumptions: readonly string[] = [
  'The source applies both id filters before it cuts a page off, and takes nothing out of a page afterwards.',
  'Within one sweep, every page has room for at least half of the rows and three quarters of the bytes of any other; no application fills a quarter of a page.',
  'Every answer comes from one current list: no cache, no stale replica, no default window, no grouping by person.',
];

export interface SweepEnd extends Conclusion {
  /** Ranges that the sweep did not close; they stay as gaps. Ids that cannot be read are not among them. */
  readonly openRanges: number;
  /** How many stored ids the source no longer shows, also if they are too many for a proof; 0 if the sweep cannot tell. */
  readonly absent: number;
  /** What the sweep learned about pages; null for a sweep by date. */
  readonly pages: KnownPages | null;
  /** The id filters hide applications, or may do so: the date filters are worth trying. */
  readonly tryDates: boolean;
  /** Applications submitted before this time were all read; null for a sweep by date. */
  readonly completeThrough: Date | null;
}

export interface Done extends SweepEnd {
  readonly kind: 'done';
  readonly open: readonly OpenRange[];
  readonly pages: KnownPages;
}

export const tooManyAbsent = 'too many stored applications are gone at once';
/** A poll was shown nothing at all, and none of the lifelines. */
export const noneShown = 'the source shows none of the applications that it has shown before';
const noReach = 'the filters were not seen to act before the page is cut off';

type Reasons = readonly (readonly [risk: Reason['risk'], is: boolean, reason: string])[];

/** R6: true if a sweep has asked more than what it found justifies. A choice: what it leaves open is read next time. */
export function isOverBudget({ facts, open }: State, inFlight = 0): boolean {
  const unread = open.filter(({ stuck }) => stuck !== null && stuck !== unreadableOnly).length;
  // If applications arrive faster than answers show them, a sweep would follow them for ever.
  const older = facts.found - facts.recent + facts.absent;
  return facts.requests + inFlight >= 200 + 6 * (older + Math.min(facts.recent, older)) + 64 * unread;
}

const risks = ['fault', 'doubt', 'harmless'] as const;

export function conclude(state: State): Done {
  const { facts, open } = state;
  const reasons = [...facts.reasons, ...findReasons(state)];
  const worst = risks.map((risk) => reasons.find((one) => one.risk === risk)).find((one) => one !== undefined);
  // An id that cannot be read says nothing about the filters.
  const unread = unreadReasons(state).map(({ reason }) => reason);
  const mayHide = reasons.some(({ risk, reason }) => risk !== 'harmless' && !unread.includes(reason));
  const canTell = reasons.every(({ risk, reason }) => risk !== 'fault' || reason === tooManyAbsent);
  const certificate = worst === undefined ? 'proven' : worst.risk === 'fault' ? 'unproven' : 'assumed';
  const left = facts.walk !== null && certificate === 'assumed' ? [] : open;
  return {
    kind: 'done',
    certificate,
    risk: worst === undefined ? 'none' : worst.risk === 'harmless' ? 'harmless' : 'doubt',
    reason: worst?.reason ?? 'every id range was read; cross-checks agree',
    open: left,
    openRanges: left.filter((range) => !isUnreadable(range)).length,
    absent: canTell && facts.walk === null ? facts.absent : 0,
    pages: {
      ...facts.pages,
      largestRow: facts.largestRow,
      // A later sweep believes in an order that no pair has broken.
      order:
        facts.rising + facts.falling >= 10 && Math.min(facts.rising, facts.falling) === 0 ? orderOf(facts) : 'mixed',
      longest: Math.max(longestOf(facts), facts.longestBefore),
      together: facts.walk === null,
    },
    tryDates: facts.rigor === 'proof' && mayHide && longestOf(facts) > 0,
    completeThrough: facts.recentFrom === null ? null : new Date(Number(facts.recentFrom) * 1_000),
  };
}

function findReasons(state: State): Reason[] {
  const { facts, open } = state;
  const { walk, vanished } = facts;
  if (walk !== null) {
    const isDone = walk.directions.length === 0 && isWalkInOrder(walk, facts);
    if (isDone) return [{ risk: 'doubt', reason: `${walk.why}; the list was walked by one filter` }];
    return [{ risk: 'fault', reason: walk.why }];
  }
  const isEnded = open.every(({ stuck }) => stuck !== null) && facts.witnesses?.length === 0;
  const isOver = !isEnded && isOverBudget(state);
  const isNone = facts.lowest === null;
  const isAll = facts.from === firstPosition && facts.to === lastPosition;
  const isPoll = facts.rigor === 'poll';
  const longest = longestOf(facts);
  const isSmall = [facts.pages.after, facts.pages.both].some(({ rows }) => rows > 0 && rows < smallPage);
  // A filter behind the cut fills the page: it is as long as the longest ever seen.
  const isLate = isEdgeGone(facts) && !hasReach(facts) && (isNone || longest === facts.longestBefore);
  // R4: so many stored ids may be gone at once. Beyond it a person decides. A choice.
  const absentLimit = Math.max(20, Math.floor(facts.listedBefore * 0.02));
  const ofAll: Reasons = [
    ['fault', facts.absent > absentLimit, tooManyAbsent],
    ['fault', isOver, 'the sweep asked more questions than the applications it found can justify'],
    ['fault', !isEnded && !isOver, 'the sweep has not finished'],
  ];
  const ofPolls: Reasons = [
    ['fault', isNone && facts.lifelines.length > 0 && isEnded, noneShown],
    ['harmless', true, 'normal poll; the next recheck brings the proof'],
  ];
  const ofProofs: Reasons = [
    // R8, of the bounds that must have been seen to act.
    ['doubt', isCut(facts) && !hasReach(facts), noReach],
    ['doubt', isLate, 'stored applications are gone, and a filter that acts after the cap would look the same'],
    // Two deletions during one sweep are believed. A choice.
    ['doubt', vanished > 2, 'the source shows applications by one question that it hides from another'],
    ['harmless', vanished > 0, 'an application was deleted at the source while the list was read'],
    ['harmless', isNone && isAll, 'the source shows no application at all'],
    ['harmless', !isNone && longest < smallPage, 'there are too few applications to tell whether pages are cut short'],
    ['harmless', isCut(facts) && isSmall, 'pages are too small for their length to prove anything'],
  ];
  const reasons = [...ofAll, ...(isPoll ? ofPolls : ofProofs)].filter(([, is]) => is);
  return [...unreadReasons(state), ...reasons.map(([risk, , reason]) => ({ risk, reason }))];
}

/** R7: single ids that could not be read are named. An operator can accept them. */
function unreadReasons({ facts, open }: State): Reason[] {
  const accepted = new Set(facts.accepted);
  // A poll does not repeat what the status has named already.
  const isTold = ({ stuck }: OpenRange) => facts.rigor === 'poll' && stuck === knownAsUnreadable;
  const unread = open.filter((range) => !isTold(range) && (!isSingle(range) || !accepted.has(range.from)));
  const [first] = unread;
  if (first === undefined) return [];
  const what = unread.length === 1 ? `id ${first.from}` : `${unread.length} ids, first ${first.from}`;
  const isNamed = unread.every(isUnreadable);
  return [{ risk: 'doubt', reason: isNamed ? `all but ${what}: ${first.stuck}` : 'a range could not be read' }];
}

/** True if ids are gone beyond what was shown, where a filter that acts after the cap would hide them. */
function isEdgeGone({ goneSample, lowest, highest, ...facts }: Facts): boolean {
  if (lowest === null || highest === null) return facts.absent > 0;
  const order = orderOf(facts);
  return goneSample.some((id) => (order === 'ascending' ? id > highest : order === 'descending' ? id < lowest : true));
}

const isCut = ({ reach }: Pick<Facts, 'reach'>): boolean => reach.after || reach.before || reach.both;

/** R8: in a list without order either bound can hide rows; in a sorted one only the bound towards its far end. */
export function hasReach(facts: Facts): boolean {
  const { after, before } = facts.reach;
  const isSorted = orderOf(facts) !== 'mixed' || facts.rising + facts.falling < 10;
  return isSorted ? isCut(facts) : after && before;
}

// The witnesses (R9 of docs/coverage.md) are the questions that follow when all ranges are closed. They look for applications that the range
// questions may have hidden: with one filter, beyond the ends, in the widest gaps, at random splits and by date. They close nothing and can
// only contradict.

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

// Judges a sweep when it ends: proven, assumed or unproven, with the reason.

import { firstPosition, isSingle, lastPosition } from './position.ts';
import {
  type Facts,
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

export const isCut = ({ reach }: Pick<Facts, 'reach'>): boolean => reach.after || reach.before || reach.both;

/** R8: in a list without order either bound can hide rows; in a sorted one only the bound towards its far end. */
export function hasReach(facts: Facts): boolean {
  const { after, before } = facts.reach;
  const isSorted = orderOf(facts) !== 'mixed' || facts.rising + facts.falling < 10;
  return isSorted ? isCut(facts) : after && before;
}

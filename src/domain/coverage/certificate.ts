// Judges a sweep when it ends: proven, assumed or unproven, with a reason for the reader of the status. Looks only at the facts of the
// sweep; asks nothing and decides nothing about single ranges. Also decides how far a poll may move the cursor.

import { type Direction, directionOf, fewestPairs, rowLimit, smallPage } from './capacity.ts';
import { isShortPage } from './page-cuts.ts';
import type { Range } from './range.ts';
import { isSorted, type KnownCapacity, type Reservation, type State, type StateFacts } from './sweep-state.ts';
import { absentLimit } from './unshown.ts';
import { isWalkInOrder } from './walk.ts';

/**
 * proven: complete under the three assumptions below. assumed: read to the end, with a reservation whose risk says how serious it is.
 * unproven: do not rely on it.
 */
export type CertificateLevel = 'proven' | 'assumed' | 'unproven';

/** none: proven. harmless: there is no evidence against completeness. doubt: there is such evidence. */
export type Risk = 'none' | Reservation['risk'];

/** What one sweep, or all sweeps together, say about a range of ids. */
export interface Conclusion {
  readonly certificate: CertificateLevel;
  readonly risk: Risk;
  readonly reason: string;
}

/** What a sweep has proven, and what is still open. */
export interface Certificate extends Conclusion {
  /** Ranges that the sweep did not close. */
  readonly open: readonly Range[];
  /** Previously stored ids that the source no longer shows; empty when the sweep is unproven or was a walk. */
  readonly absent: readonly bigint[];
  /** The page size, for the next poll. */
  readonly capacity: KnownCapacity;
  /** The id filters hide applications, or may do so: the date filters are worth trying. */
  readonly tryDates: boolean;
}

/** What `proven` relies on and no question can test with certainty. */
export const assumptions: readonly string[] = [
  'The source applies both id filters before it cuts a page off.',
  'What fits into a page, by count or by bytes, does not shrink below half within one sweep; no application fills a quarter of it.',
  'Every answer comes from one current list: no cache, no stale replica, no default window, no grouping by person.',
];

/** Judges the current state of a sweep. */
export function conclude(state: State): Certificate {
  const { facts } = state;
  const faults = findFaults(state);
  const reservations = findReservations(facts).sort((a, b) => Number(b.risk === 'doubt') - Number(a.risk === 'doubt'));
  const certificate = faults.length > 0 ? 'unproven' : reservations.length > 0 ? 'assumed' : 'proven';
  const risk = faults.length > 0 ? 'doubt' : (reservations[0]?.risk ?? 'none');
  const isWalked = facts.walk !== null && certificate === 'assumed';
  return {
    certificate,
    risk,
    reason: faults[0] ?? reservations[0]?.reason ?? 'every id range was read; cross-checks agree',
    open: isWalked ? [] : state.ranges.filter((range) => range.state !== 'closed'),
    absent: certificate === 'unproven' || isWalked ? [] : facts.absent,
    capacity: pollCapacity(facts),
    tryDates: facts.axis === 'id' && facts.rigor === 'proof' && risk === 'doubt' && facts.longest > 0,
  };
}

/** The smaller page size of the two shapes of question. */
function pollCapacity(facts: StateFacts): KnownCapacity {
  const { after, both, largestRow, uneven } = facts;
  const seen = [after, both].filter(({ rows }) => rows > 0);
  return {
    count: seen.length === 0 ? 0 : Math.min(...seen.map(rowLimit)),
    bytes: seen.length === 0 ? 0 : Math.min(...seen.map(({ bytes }) => bytes)),
    largestRow,
    // A sweep by date has seen the order of dates, not that of ids.
    order: facts.axis === 'id' && isSorted(facts) ? directionOf(facts) : 'mixed',
    uneven,
    longest: Math.max(facts.longest, facts.longestBefore),
  };
}

/**
 * True when a sweep has asked more questions than the applications it found justify. Arrivals count only up to a limit: if they came
 * faster than answers show them, the sweep would follow them forever.
 */
export function isOverBudget(facts: StateFacts, inFlight = 0): boolean {
  const requests = facts.requests + inFlight;
  const older = facts.found - facts.recent;
  const justified = older + Math.min(facts.recent, 200 + older);
  return requests >= 96 + 6 * justified;
}

/** The limit depends on how many applications the range of the sweep holds, so a sweep of everything may accept what a part does not. */
export const tooManyAbsent = 'too many stored applications are gone at once';

/** True if so many ids are gone at once that the source misbehaves rather than deletes. */
export function hasTooManyAbsent(facts: StateFacts): boolean {
  return facts.absent.length > absentLimit(facts.listedBefore);
}

function findFaults(state: State): string[] {
  const { facts, ranges } = state;
  const faults = [...facts.faults];
  if (facts.walk !== null) {
    const isDone = facts.walk.directions.length === 0;
    if (!isDone || !isWalkInOrder(facts.walk, facts)) faults.unshift(facts.walk.why);
  } else if (isOverBudget(facts) && !isFinished(state)) {
    faults.push('the sweep asked more questions than the applications it found can justify');
  } else if (ranges.some((range) => range.state === 'stuck')) {
    faults.push(
      facts.axis === 'date'
        ? 'more applications were submitted within a few hours than fit into a page, and the time zone of the date filter is not known well enough to split further'
        : 'a range could not be split small enough to be closed',
    );
  } else if (!isFinished(state)) {
    faults.push('the sweep has not finished');
  }
  // This fault comes first: beyond the limit no unshown id is asked alone any more, so other faults follow from it.
  if (hasTooManyAbsent(facts)) faults.unshift(tooManyAbsent);
  return faults;
}

/** True if nothing is left to ask: every range is closed, every suspect is resolved, every witness is answered. */
function isFinished({ facts, ranges }: State): boolean {
  const isWitnessed = facts.rigor === 'poll' || facts.axis === 'date' || facts.witnesses?.length === 0;
  return isWitnessed && facts.suspects.length === 0 && ranges.every((range) => range.state === 'closed');
}

function findReservations(facts: StateFacts): Reservation[] {
  const found = [...facts.reservations];
  const add = (risk: Reservation['risk'], reason: string) => found.push({ risk, reason });
  if (hasOnlyBounds(facts)) add('doubt', 'a page holds no more than the bounds of a question');
  if (facts.walk !== null) add('doubt', `${facts.walk.why}; the list was walked by one filter`);
  if (facts.axis === 'date') add('doubt', 'read by date, which cannot prove completeness');
  if (facts.rigor === 'poll') add('harmless', 'normal poll; the next recheck brings the proof');
  if (facts.walk !== null || facts.axis === 'date' || facts.rigor === 'poll') return found;
  if (facts.cut && facts.found >= smallPage && !hasReach(facts)) {
    add('doubt', 'the filters were not seen to act before the page is cut off');
  }
  // Nothing shows where the source would have cut off an answer that was abandoned before its end.
  if (facts.overflowed && !facts.cut && facts.found >= smallPage && !hasReach(facts)) {
    add('harmless', 'answers exceed the byte budget, so no page shows whether filters act before it is cut off');
  }
  if (hasEdgeAbsence(facts)) {
    const reason =
      'applications beyond the outermost page are gone, and a filter that acts after the cap would look the same';
    add('doubt', reason);
  }
  if (facts.from <= 1n && facts.to === null && facts.lowest === null) {
    add('harmless', 'the source shows no application at all');
  }
  // If filters act after the cap, a page of 7 rows may come back empty by chance, and no longer page was seen that would rule this out.
  if (facts.lowest !== null && facts.longest < smallPage) {
    add('harmless', 'there are too few applications to tell whether pages are cut short');
  }
  for (const capacity of [facts.after, facts.both]) {
    if (facts.cut && capacity.rows > 0 && rowLimit(capacity) < smallPage) {
      add('harmless', 'pages are too small for their length to prove anything');
    }
  }
  return found;
}

/** True if a page held only the bounds of its question, and pages are so small that rows may have been cut off. */
function hasOnlyBounds(facts: StateFacts): boolean {
  return (['after', 'both'] as const).some((shape) => {
    const page = facts.boundsOnly[shape];
    if (page === null || isShortPage(facts, shape, page)) return false;
    // The length of small pages proves nothing, but a page that is less than half full proves as much as an empty answer.
    return facts.cut && page.rows * 2 >= rowLimit(facts[shape]);
  });
}

/** True if the filters that can hide rows act before the cap. In a sorted list that is the filter towards its far end, otherwise both. */
function hasReach(facts: StateFacts): boolean {
  const direction = orderOf(facts);
  if (direction === 'ascending') return facts.reachAfter || facts.reachInner;
  if (direction === 'descending') return facts.reachBefore || facts.reachInner;
  return facts.reachAfter && facts.reachBefore;
}

/**
 * The order in which the source chooses rows. Parts of answers decide if they contradict exactly one direction. Otherwise the order of rows
 * on pages decides, or parts alone where pages are too short.
 */
function orderOf(facts: StateFacts): Direction {
  const { ascending, descending } = facts.chosen;
  if (ascending === null && descending !== null) return 'descending';
  if (descending === null && ascending !== null) return 'ascending';
  if (facts.rising + facts.falling >= fewestPairs) return directionOf(facts);
  if ((ascending ?? 0) >= fewestPairs) return 'ascending';
  return (descending ?? 0) >= fewestPairs ? 'descending' : 'mixed';
}

/**
 * True if stored ids at the far end are gone, nothing shows that the filter there acts before the cap, and the longest page has exactly as
 * many rows as the longest of earlier sweeps. A shorter page is not full, and a longer one shows that the earlier one was not full.
 */
function hasEdgeAbsence(facts: StateFacts): boolean {
  const { lowest, highest, absent } = facts;
  if (absent.length === 0 || hasReach(facts)) return false;
  if (lowest === null || highest === null) return true;
  if (facts.longest !== facts.longestBefore) return false;
  const direction = directionOf(facts);
  const isFar = (id: bigint) =>
    direction === 'ascending' ? id > highest : direction === 'descending' ? id < lowest : true;
  return absent.some(isFar);
}

/** All ids of a board come from one sequence, so a real id is never more than twice its predecessor plus this. */
const usualLeap = 1_000_000n;

/**
 * The cursor after these ids are committed: the largest of them, except that a single id far beyond all others does not move it. A cursor
 * that is too low costs a few rows that are read again; one that is too high hides every later application. The lag window is not applied
 * here: the store applies it by the database's clock.
 */
export function toCursor(current: bigint | null, committed: readonly bigint[]): bigint | null {
  let cursor = current;
  const ids = [...new Set(committed)].filter((id) => cursor === null || id > cursor).sort((a, b) => (a < b ? -1 : 1));
  for (const [index, id] of ids.entries()) {
    const isLeap = id > (cursor ?? 0n) * 2n + usualLeap;
    // A second id beyond the leap confirms it.
    if (isLeap && index === ids.length - 1) break;
    cursor = id;
  }
  return cursor;
}

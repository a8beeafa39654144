// What a sweep is worth when it ends: proven, assumed or unproven, with the reason in words for whoever reads the status.
// Looks only at the facts of the sweep; asks nothing and decides nothing about single ranges.

import { isUneven, smallPage, toLimit } from './capacity.ts';
import type { Range } from './range.ts';
import { type Facts, type State, toDirection } from './sweep-state.ts';
import { fewestPairs, isWalkInOrder } from './walk.ts';

/** What was shown, and what is still open. */
export interface Certificate {
  /** proven: under the two assumptions below. assumed: complete if also `reason` is harmless. unproven: do not rely on it. */
  readonly certificate: 'proven' | 'assumed' | 'unproven';
  readonly reason: string;
  /** Ranges that the sweep did not close. */
  readonly open: readonly Range[];
  /** Ids held before that the source no longer shows; empty when the sweep is unproven. */
  readonly absent: readonly bigint[];
  readonly requests: number;
  /** What a page is known to hold, for the next poll. */
  readonly capacity: { readonly count: number; readonly bytes: number };
}

/** What `proven` rests on and no question can test. */
export const assumptions: readonly string[] = [
  'The source applies both id filters before it cuts a page off.',
  'What fits into a page, by count or by bytes, does not shrink below half within one sweep.',
];

/** Judges a sweep as it stands. */
export function conclude(state: State): Certificate {
  const { facts } = state;
  const faults = toFaults(state);
  const doubts = toDoubts(facts);
  const certificate = faults.length > 0 ? 'unproven' : doubts.length > 0 ? 'assumed' : 'proven';
  const walked = facts.walk !== null && certificate === 'assumed';
  return {
    certificate,
    reason: [...faults, ...doubts][0] ?? 'every range was closed and every witness agrees',
    open: walked ? [] : state.ranges.filter((range) => range.state !== 'closed'),
    absent: certificate === 'unproven' || walked ? [] : facts.absent,
    requests: facts.requests,
    capacity: toPollCapacity(facts),
  };
}

/** The smaller of what both shapes of question have shown. */
function toPollCapacity({ one, two }: Facts): Certificate['capacity'] {
  const limits = [toLimit(one), toLimit(two)].filter((limit) => limit > 0);
  return {
    count: limits.length === 0 ? 0 : Math.min(...limits),
    bytes: Math.max(one.largestBytes, two.largestBytes),
  };
}

/** True when a sweep has asked more than the applications it found can justify. */
export function isOverBudget(facts: Facts, inFlight = 0): boolean {
  return facts.requests + inFlight >= Math.min(facts.requestLimit, 64 + 6 * facts.found);
}

/** The brake: so many gone at once is a source that misbehaves, not a source that deletes. */
export function hasTooManyAbsent(facts: Facts): boolean {
  return facts.absent.length > toAbsentLimit(facts.heldBefore);
}

/** As many missing ids as tell withdrawn applications from a page that was cut off, and pages of now from pages of before. */
export function toMostMissing(heldBefore: number): number {
  return Math.max(501, toAbsentLimit(heldBefore) + 1);
}

/** Most ids that one sweep may find absent. */
export function toAbsentLimit(heldBefore: number): number {
  return Math.max(20, Math.floor(heldBefore * 0.02));
}

function toFaults(state: State): string[] {
  const { facts, ranges } = state;
  const faults = [...facts.faults];
  if (facts.walk !== null) {
    const walkedOut = facts.walk.directions.length === 0;
    if (!walkedOut || !isWalkInOrder(facts.walk, facts)) faults.unshift(facts.walk.why);
  } else if (isOverBudget(facts) && !isFinished(state)) {
    faults.push('the budget of requests is used up');
  } else if (ranges.some((range) => range.state === 'stuck')) {
    faults.push(
      facts.axis === 'date'
        ? 'more applications fall within two days than a page surely holds, and no zone is known to cut dates finer: read by ids'
        : 'a range could not be cut small enough to be closed',
    );
  } else if (!isFinished(state)) {
    faults.push('the sweep has not come to its end');
  }
  if (hasTooManyAbsent(facts)) faults.push('too many applications that we hold are gone at once');
  if (facts.walk === null && hasEdgeAbsence(facts)) {
    faults.push(
      'applications beyond the outermost page are gone, and a filter that acts after the cap would look the same',
    );
  }
  return faults;
}

/** Nothing is left to ask: every range closed, every suspicion cleared, every witness heard. */
function isFinished({ facts, ranges }: State): boolean {
  const heard = facts.rigor === 'poll' || facts.axis === 'date' || facts.witnesses?.length === 0;
  return (
    heard && facts.suspects.length + facts.surprises.length === 0 && ranges.every((range) => range.state === 'closed')
  );
}

function toDoubts(facts: Facts): string[] {
  const doubts = [...facts.doubts];
  if (facts.walk !== null)
    doubts.unshift(`${facts.walk.why}; it was walked by one filter, and its pages came in order`);
  if (facts.axis === 'date') doubts.push('dates are not unique and their time zone is a guess');
  if (facts.borrowed) doubts.push('the page size was taken from an earlier sweep');
  if (facts.rigor === 'poll') doubts.push('a poll asks no witnesses');
  if (facts.walk === null && facts.cut && !hasReach(facts)) {
    doubts.push('the filters were not seen to act before the cap in both directions');
  }
  if (facts.walk === null && facts.from <= 1n && facts.to === null && facts.lowest === null) {
    doubts.push('the source shows no application at all');
  }
  // A page of 7 that lost its rows after the cap is empty by chance, and nobody has seen that pages can be longer.
  if (facts.walk === null && facts.lowest !== null && facts.longest < smallPage) {
    doubts.push('there are too few applications to tell whether pages are cut short');
  }
  for (const capacity of [facts.one, facts.two]) {
    if (isUneven(capacity)) doubts.push('pages shrank below half, or are small and of uneven size');
    else if (facts.cut && capacity.largest > 0 && toLimit(capacity) < smallPage) {
      doubts.push('pages are too small for counts to prove anything');
    }
  }
  return doubts;
}

/** In a sorted list only the filter towards its far end can hide anything; in any other, both can. */
function hasReach(facts: Facts): boolean {
  const direction = facts.rising + facts.falling < fewestPairs ? 'mixed' : toDirection(facts);
  if (direction === 'ascending') return facts.reachAfter || facts.reachInner;
  if (direction === 'descending') return facts.reachBefore || facts.reachInner;
  return facts.reachAfter && facts.reachBefore;
}

/** Held ids at the far end are gone, and nothing shows that the filter there reaches beyond a page. */
function hasEdgeAbsence(facts: Facts): boolean {
  const { lowest, highest, absent } = facts;
  if (absent.length === 0 || (facts.cut && hasReach(facts))) return false;
  if (lowest === null || highest === null) return true;
  const direction = toDirection(facts);
  const isFar = (id: bigint) =>
    direction === 'ascending' ? id > highest : direction === 'descending' ? id < lowest : true;
  return absent.some(isFar);
}

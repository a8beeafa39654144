// Reads a list whose order, paging and filters are unknown without missing an application. A pure state machine without clock, network or
// database: `ask` gives the next question, and learn.ts applies its answer. docs/coverage.md has the rules and the proof.

import { conclude, type Done, hasReach, isOverBudget } from './certificate.ts';
import {
  contains,
  firstIndex,
  gapsBetween,
  type IdRange,
  idsInside,
  isSingle,
  type Position,
  rising,
  toRange,
  wholeAxis,
  widthOf,
} from './position.ts';
import { boundedQuestion, isSameQuestion, type Question } from './question.ts';
import { knownAsUnreadable, type OpenRange, openRange, orderOf, type Plan, partRows, type State } from './state.ts';
import { askWalk } from './walk.ts';

const nothing = { rows: 0, bytes: 0 };

/** Begins a sweep. The default is a proof of the whole list of an account of which nothing is stored. */
export function begin({ unreadable = [], learned, ...plan }: Partial<Plan>): State {
  const facts: State['facts'] = {
    ...wholeAxis,
    rigor: 'proof',
    listedBefore: 0,
    longestBefore: 0,
    recentFrom: null,
    lifelines: [],
    accepted: [],
    seed: 1,
    ...plan,
    requests: 0,
    found: 0,
    recent: 0,
    pages: { after: learned?.after ?? nothing, both: learned?.both ?? nothing },
    largestRow: learned?.largestRow ?? 0,
    rising: learned?.order === 'ascending' ? 10 : 0,
    falling: learned?.order === 'descending' ? 10 : 0,
    reach: { after: false, before: false, both: false },
    lowest: null,
    highest: null,
    earliestAt: null,
    latestAt: null,
    reasons: [],
    absent: 0,
    vanished: 0,
    goneSample: [],
    gaps: [],
    samples: [],
    closedRanges: 0,
    witnesses: null,
    walk: null,
  };
  const leftOut = idsInside(facts, unreadable);
  const read = gapsBetween(facts, leftOut).map((range) => openRange(range));
  const stuck = leftOut.map((id) => ({ ...openRange({ from: id, to: id }), stuck: knownAsUnreadable }));
  const open = [...read, ...stuck].sort((a, b) => rising(a.from, b.from));
  // Without anything to read there is nothing to cross-check.
  return { facts: read.length > 0 ? facts : { ...facts, witnesses: [] }, open };
}

/** A sweep that goes on after so long a pause that the source may have changed: it measures pages again. */
export function renew({ facts, open }: State): State {
  const forgotten = open.map((range) => ({ ...openRange(range), stuck: range.stuck }));
  return { facts: { ...facts, pages: { after: nothing, both: nothing }, largestRow: 0 }, open: forgotten };
}

/** The share of the ids up to the highest known one that are closed (0 to 1); null while none is known, and in a walk. */
export function shareRead({ facts, open }: State): number | null {
  const top = facts.to === wholeAxis.to ? facts.highest : facts.to;
  const all = top === null || facts.walk !== null ? null : toRange(facts.from, top);
  if (all === null) return null;
  const unread = open.flatMap((range) => toRange(range.from, range.to < all.to ? range.to : all.to) ?? []);
  return 1 - Number(unread.reduce((sum, range) => sum + widthOf(range), 0n)) / Number(widthOf(all));
}

/** Stored ids in rising order from a position on: the next few thousand, or all that there are. */
export interface KnownIds {
  readonly from: Position;
  readonly ids: readonly Position[];
  /** No further id is stored behind these. */
  readonly isAll: boolean;
}

/** wait: an answer in flight decides. load: the question depends on the stored ids from here on. */
export type Next = Question | Done | { readonly kind: 'wait' } | { readonly kind: 'load'; readonly from: Position };

/** The next question; `known` splits what was read before into parts that close at once. */
export function ask(state: State, inFlight: readonly Question[] = [], known?: KnownIds): Next {
  const { facts, open } = state;
  const isAsked = (question: Question) => inFlight.some((other) => isSameQuestion(other, question));
  const orEnd = (question: Question | null | undefined): Next => {
    if (question && !isAsked(question)) return question;
    return inFlight.length > 0 ? { kind: 'wait' } : conclude(state);
  };
  if (isOverBudget(state, inFlight.length)) return orEnd(null);
  if (facts.walk !== null) return orEnd(askWalk(facts, facts.walk));
  // The narrowest range comes first: what is known closes before new ranges are opened, and few stay open.
  let narrowest: { readonly range: OpenRange; readonly rest: IdRange; readonly width: bigint } | null = null;
  let isRead = true;
  for (const range of open) {
    if (range.stuck !== null) continue;
    isRead = false;
    const width = widthOf(range);
    if (narrowest !== null && width >= narrowest.width) continue;
    const rest = notInFlight(range, inFlight, known !== undefined);
    if (rest !== null) narrowest = { range, rest, width };
  }
  if (narrowest !== null) return askRange(state, narrowest.range, narrowest.rest, known);
  return orEnd(isRead ? facts.witnesses?.find((question) => !isAsked(question)) : null);
}

/** The first part of a range that is not in flight, or null. Without known ids only the whole range is asked. */
function notInFlight(range: OpenRange, inFlight: readonly Question[], inParts: boolean): IdRange | null {
  let rest: IdRange | null = range;
  for (const { purpose, covers } of inFlight) {
    if (purpose !== 'range' || covers === null || !contains(range, covers.from)) continue;
    if (!inParts || covers.to >= range.to) return null;
    if (rest !== null && covers.to >= rest.from) rest = toRange(covers.to + 1n, range.to);
  }
  return rest;
}

function askRange({ facts }: State, range: OpenRange, rest: IdRange, known: KnownIds | undefined): Next {
  const steps = rest.from === range.from ? range.steps : { ...range.steps, after: false };
  const size = partRows(facts, 'both');
  // In a list without order, only wide questions show whether the filters act before the cap.
  const mustLearn = facts.pages.both.rows === 0 || (orderOf(facts) === 'mixed' && !hasReach(facts));
  if (known === undefined || size === 0 || mustLearn || isSingle(rest)) return rangeQuestion(rest, steps);
  if (rest.from < known.from) return { kind: 'load', from: rest.from };
  const end = known.ids[firstIndex(known.ids, (id) => id < rest.from) + size - 1];
  if (end === undefined && !known.isAll) return { kind: 'load', from: rest.from };
  return rangeQuestion(end !== undefined && end < rest.to ? { from: rest.from, to: end } : rest, steps);
}

function rangeQuestion(range: IdRange, { after, before }: OpenRange['steps']): Question {
  const question = boundedQuestion('range', range);
  const { afterId, beforeId } = question;
  return {
    ...question,
    afterId: after ? range.from : afterId,
    beforeId: before && beforeId !== null ? range.to : beforeId,
  };
}

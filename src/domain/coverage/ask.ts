// Decides what a sweep asks next.

import { conclude, type Done, hasReach, isOverBudget } from './certificate.ts';
import { contains, firstIndex, type IdRange, isSingle, type Position, toRange, widthOf } from './position.ts';
import { boundedQuestion, isSameQuestion, type Question } from './question.ts';
import { partRows } from './room.ts';
import { type Facts, type OpenRange, orderOf, type State } from './state.ts';
import { askWalk } from './walk.ts';

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
  if (narrowest !== null) return askRange(facts, narrowest.range, narrowest.rest, known);
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

function askRange(facts: Facts, range: OpenRange, rest: IdRange, known: KnownIds | undefined): Next {
  const isWhole = rest.from === range.from;
  const steps = isWhole ? range.steps : { ...range.steps, after: false };
  const size = partRows(facts, 'both');
  // In a list without order, only wide questions show whether the filters act before the cap.
  const mustLearn = facts.pages.both.rows === 0 || (orderOf(facts) === 'mixed' && !hasReach(facts));
  if (known === undefined || size === 0 || mustLearn || isSingle(rest)) return rangeQuestion(rest, steps);
  if (rest.from < known.from) return { kind: 'load', from: rest.from };
  const end = known.ids[firstIndex(known.ids, (id) => id < rest.from) + size - 1];
  if (end === undefined) return known.isAll ? rangeQuestion(rest, steps) : { kind: 'load', from: rest.from };
  return rangeQuestion(end < rest.to ? { from: rest.from, to: end } : rest, steps);
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

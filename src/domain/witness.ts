// The questions that are asked when all ranges are closed, to catch what a range question may have hidden: one filter only,
// at both edges, at places inside, and by date. They close nothing; they can only contradict.

import { dateSlackSeconds } from './next-question.ts';
import type { Question } from './question.ts';
import { largestId, type Range } from './range.ts';
import { type Facts, toDirection } from './sweep-state.ts';

/** Plans the witnesses of a sweep whose ranges are all closed. */
export function planWitnesses(facts: Facts, ranges: readonly Range[]): Question[] {
  const { lowest, highest, earliestAt, latestAt, from, to } = facts;
  const last = ranges.at(-1);
  const questions: Question[] = [];
  const add = (axis: Question['axis'], after: bigint | null, before: bigint | null) => {
    const isThere = questions.some((other) => other.after === after && other.before === before && other.axis === axis);
    if (isThere) return;
    const scope =
      axis === 'date'
        ? { from: null, to: null }
        : { from: after === null ? from : after + 1n, to: before === null ? to : before - 1n };
    questions.push({ axis, purpose: 'witness', ...scope, after, before, expects: null });
  };
  if (lowest !== null) add('id', null, lowest);
  // An open end that was closed empty has just been asked this.
  if (highest !== null && highest < largestId && last?.answer?.count !== 0) add('id', highest, null);
  // The widest question once more: a list in another order on every request shows itself.
  if (ranges.length > 1) add('id', from - 1n, to === null ? null : to + 1n);
  // Without order any place may hide something; in a sorted list only its edges.
  const places = toDirection(facts) === 'mixed' ? 6 : 2;
  for (let nth = 1; nth <= places && ranges.length > places; nth++) {
    const range = ranges[Math.floor((nth * ranges.length) / (places + 1))] as Range;
    if (nth % 2 === 1) add('id', range.from - 1n, null);
    else if (range.to !== null) add('id', null, range.to + 1n);
  }
  // Beyond the edges by more than any reading of the time zone: whatever comes back there is not held.
  if (earliestAt !== null) add('date', null, earliestAt - dateSlackSeconds);
  if (latestAt !== null) add('date', latestAt + dateSlackSeconds, null);
  return questions;
}

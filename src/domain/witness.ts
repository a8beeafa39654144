// The questions that are asked when all ranges are closed, to catch what a range question may have hidden: one filter only,
// at both edges, at places inside, and by date. They close nothing; they can only contradict.

import type { Question } from './question.ts';
import type { Range } from './range.ts';
import type { Facts } from './sweep-state.ts';

/** How far the server's reading of a date may lie from ours. */
const slackSeconds = 26n * 3600n;

/** Plans the witnesses of a sweep whose ranges are all closed. */
export function planWitnesses(facts: Facts, ranges: readonly Range[]): Question[] {
  const { lowest, highest, earliestAt, latestAt, from, to } = facts;
  const last = ranges.at(-1);
  const questions: Question[] = [];
  const add = (axis: Question['axis'], after: bigint | null, before: bigint | null) => {
    const isThere = questions.some((other) => other.after === after && other.before === before && other.axis === axis);
    if (!isThere) questions.push({ axis, purpose: 'witness', from, to, after, before, expects: null });
  };
  if (lowest !== null) add('id', null, lowest);
  // An open end that was closed empty has just been asked this.
  if (highest !== null && last?.answer?.count !== 0) add('id', highest, null);
  if (ranges.length > 2) {
    const third = ranges[Math.floor(ranges.length / 3)];
    const twoThirds = ranges[Math.floor((ranges.length * 2) / 3)];
    if (third !== undefined) add('id', third.from - 1n, null);
    if (twoThirds !== undefined && twoThirds.to !== null) add('id', null, twoThirds.to + 1n);
  }
  if (earliestAt !== null) add('date', null, earliestAt + slackSeconds);
  if (latestAt !== null) add('date', latestAt - slackSeconds, null);
  return questions;
}

// Plans the questions that follow when all ranges are closed. They look for applications that the range questions may have hidden, with
// other filter shapes, at other places, at random splits and by date. They close nothing and can only contradict.

import { directionOf } from './capacity.ts';
import { isSameQuestion, type Question } from './question.ts';
import { largestBound, largestId, type Range } from './range.ts';
import { dateSlackSeconds, type StateFacts } from './sweep-state.ts';

/** Closed ranges that a sweep asks for again, split at a random position. */
const splitsPerSweep = 6;

/** Before any job board existed: a date filter that excludes nobody. */
const longAgo = 0n;

/** Plans the witnesses of a sweep whose ranges are all closed. */
export function planWitnesses(facts: StateFacts, ranges: readonly Range[]): Question[] {
  const { lowest, highest, from, to } = facts;
  const questions: Question[] = [];
  const add = (after: bigint | null, before: bigint | null, since: bigint | null = null) =>
    questions.push(witness(facts, after, before, since));
  if (lowest !== null) add(null, lowest);
  if (highest !== null && highest < largestId && to === null) add(highest, null);
  // The widest question again reveals a list that comes in another order on every request.
  if (ranges.length > 1) add(from - 1n, to === null ? null : to + 1n);
  // A source that shows only a recent window unless a date is sent now shows the rows before that window.
  if (lowest !== null && lowest > from) add(from - 1n, lowest, longAgo);
  for (const [after, before] of [...beyondTheEdges(facts), ...places(facts, ranges)]) add(after, before);
  questions.push(...splitQuestions(facts, ranges), ...dateQuestions(facts));
  return questions.filter((one, index) => questions.findIndex((other) => isSameQuestion(other, one)) === index);
}

function witness(facts: StateFacts, after: bigint | null, before: bigint | null, since: bigint | null): Question {
  const from = after === null ? facts.from : after + 1n;
  const to = before === null ? facts.to : before - 1n;
  // A question below the first id of the sweep covers no id. docs/proof-format.md writes that as null.
  const speaks = to === null || from <= to;
  return { axis: 'id', purpose: 'witness', from: speaks ? from : null, to: speaks ? to : null, after, before, since };
}

/** A page of deleted rows, or one row that never fits, hides everything behind the last id. So ask further out, up to ten pages away. */
function beyondTheEdges({ lowest, highest, from, to, found, longest }: StateFacts): [bigint | null, bigint | null][] {
  // With fewer than two ids, their distance is unknown.
  if (lowest === null || highest === null || found < 2) {
    const edge = highest ?? from - 1n;
    if (to !== null) return [];
    // The checker needs one probe beyond the edge, so the nearest has no limit.
    const probes = [1_000n, 1_000_000n, 1_000_000_000n].map((far) => edge + far);
    return probes
      .filter((after, nth) => after <= (nth === 0 ? largestId : largestBound(edge)))
      .map((after) => [after, null]);
  }
  const pageSpan = ((highest - lowest) * BigInt(Math.max(1, longest))) / BigInt(found) + 1n;
  const probes: [bigint | null, bigint | null][] = [];
  for (const far of [1n, pageSpan / 16n + 1n, pageSpan, 10n * pageSpan]) {
    if (to === null && highest + far <= largestBound(highest)) probes.push([highest + far, null]);
    if (lowest - far > from) probes.push([null, lowest - far]);
  }
  return probes;
}

/** Questions with one filter at places inside the list. An unsorted list may hide rows anywhere, a sorted one only at its edges. */
function places(facts: StateFacts, ranges: readonly Range[]): [bigint | null, bigint | null][] {
  const count = directionOf(facts) === 'mixed' ? 6 : 2;
  const found: [bigint | null, bigint | null][] = [];
  for (let nth = 1; nth <= count && ranges.length > count; nth++) {
    const range = ranges[Math.floor((nth * ranges.length) / (count + 1))] as Range;
    if (nth % 2 === 1) found.push([range.from - 1n, null]);
    else if (range.to !== null) found.push([null, range.to + 1n]);
  }
  return found;
}

/**
 * Splits closed ranges at random positions. The lower part is asked for with both bounds, the upper part with one: the filter on the side
 * where the list begins, so that the rows of the part come first.
 */
function splitQuestions(facts: StateFacts, ranges: readonly Range[]): Question[] {
  const { highest } = facts;
  const filled = ranges.filter(({ answer }) => answer !== null && answer.rows > 0);
  const random = createRandom(facts.seed);
  const falls = directionOf(facts) === 'descending';
  const questions: Question[] = [];
  for (let nth = 0; nth < splitsPerSweep && filled.length > 0 && highest !== null; nth++) {
    const range = filled[Math.floor(random() * filled.length)] as Range;
    const end = range.to ?? highest;
    if (end <= range.from) continue;
    const split = range.from + BigInt(Math.floor(random() * Number(end - range.from)));
    const upper = falls ? witness(facts, null, end + 1n, null) : witness(facts, split, null, null);
    questions.push(witness(facts, range.from - 1n, split + 1n, null), upper);
  }
  return questions;
}

/** Random numbers from 0 to 1 that depend only on the seed, so that a sweep loaded from the database plans the same questions. */
function createRandom(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Date questions outside both edges, by more than any time zone can explain, must come back empty. If no answer is known to have been cut
 * off, the account may be one page of a larger list whose id filters act after the cap. Then the edges themselves are asked as well, in the
 * three usual interpretations of a date without a zone.
 */
function dateQuestions({ earliestAt, latestAt, cut, from, to }: StateFacts): Question[] {
  const shared = { axis: 'date', purpose: 'witness', from: null, to: null, since: null } as const;
  const questions: Question[] = [];
  if (latestAt === null && from <= 1n && to === null) questions.push({ ...shared, after: longAgo, before: null });
  if (earliestAt !== null) questions.push({ ...shared, after: null, before: earliestAt - dateSlackSeconds });
  if (latestAt !== null) questions.push({ ...shared, after: latestAt + dateSlackSeconds, before: null });
  if (cut || earliestAt === null || latestAt === null) return questions;
  for (const hours of [0n, 10n, 11n]) {
    questions.push({ ...shared, after: null, before: earliestAt - hours * 3600n });
    questions.push({ ...shared, after: latestAt - hours * 3600n, before: null });
  }
  return questions;
}

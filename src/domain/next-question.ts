// Which open range is asked next, and how a question for it is put: its bounds as this source is known to read them.
// Decides nothing about answers.

import { toPieceSize } from './capacity.ts';
import { toPostedSize } from './posts.ts';
import type { Question } from './question.ts';
import { contains, type Range } from './range.ts';
import { type Facts, type State, toDirection } from './sweep-state.ts';

/** Some of the ids already held, in rising order, one in every `stride`: questions are cut there so that each expects half a page. */
export interface Known {
  readonly positions: readonly bigint[];
  readonly stride: number;
}

/** Every reading of "Australian Eastern Standard time", with room: bounds on the date axis are sent this much wider. */
export const dateSlackSeconds = 26n * 3600n;

/** The next question for a range that is open and not in flight. */
export function toNextRange(
  { facts, ranges }: State,
  inFlight: readonly Question[],
  known: Known | undefined,
): Question | null {
  const asked = inFlight.filter((question) => question.purpose === 'range');
  const isUnread = (range: Range) => range.expected === 0;
  const first = (wanted: (range: Range) => boolean) => {
    for (const range of ranges) {
      if (range.state !== 'open' || !wanted(range)) continue;
      const question = toPartQuestion(facts, range, asked, known);
      if (question !== null) return question;
    }
    return null;
  };
  // The first page with both bounds should be a full one: it says what may be closed. After that, ranges whose content is
  // known come first: they close, and the list of open ranges stays short.
  const untried =
    facts.two.largest === 0 ? first((range) => isUnread(range) && range.to !== null && range.origin !== null) : null;
  return untried ?? first((range) => !isUnread(range)) ?? first(isUnread);
}

/** A range, or the next part of it that should close at once by what is held there; null while it is in flight. */
function toPartQuestion(
  facts: Facts,
  range: Range,
  asked: readonly Question[],
  known: Known | undefined,
): Question | null {
  let { from } = range;
  for (const question of asked) {
    if (!contains(range, question)) continue;
    if (known === undefined || question.to === null || question.to === range.to) return null;
    if (question.to >= from) from = question.to + 1n;
  }
  const posted = toPostedSize(facts);
  const size = posted ?? toPieceSize(facts.two);
  const whole = toQuestion(facts, { from, to: range.to }, 'range');
  // In a list without order the first halves show whether the filters reach beyond a page: parts inside could not.
  const reach = toDirection(facts) !== 'mixed' || (facts.reachAfter && facts.reachBefore);
  if (known === undefined || size === 0 || size === Number.POSITIVE_INFINITY || !reach) return whole;
  const step = Math.max(1, Math.floor(size / known.stride));
  const ahead = toIndex(known.positions, from) + step;
  // The held id that the answer should end in belongs to the far end of the part: in a list that falls, to its beginning.
  const falls = posted !== null && toDirection(facts) === 'descending';
  const to = falls ? toBelow(known.positions[ahead]) : known.positions[ahead - 1];
  if (to === undefined || (range.to !== null && to >= range.to)) return whole;
  return toQuestion(facts, { from, to }, 'range');
}

function toBelow(position: bigint | undefined): bigint | undefined {
  return position === undefined ? undefined : position - 1n;
}

/** Index of the first position that is not below `from`. */
function toIndex(positions: readonly bigint[], from: bigint): number {
  let [low, high] = [0, positions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((positions[middle] as bigint) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The question for a range, bounds stepped over where they are inclusive. */
export function toQuestion(facts: Facts, range: Pick<Range, 'from' | 'to'>, purpose: Question['purpose']): Question {
  const { from, to } = range;
  const slack = facts.axis === 'date' ? dateSlackSeconds : 0n;
  const after = facts.inclusiveAfter ? from : from - 1n - slack;
  const before = to === null ? null : facts.inclusiveBefore ? to : to + 1n + slack;
  return { axis: facts.axis, purpose, from, to, after, before, expects: null };
}

// What an answer to a range question proves: the range is closed, or cut into smaller ones, or both filters are not honoured.
// Knows neither which question comes next nor what the whole sweep is worth.

import { fits, type Shape, smallPage, toBelieved, toLimit, toPieceSize, withAnswer, withCut } from './capacity.ts';
import { dateSlackSeconds, toQuestion } from './next-question.ts';
import { closeToPost, noteEnd, toPost } from './posts.ts';
import { type Answer, isSameQuestion, type Page, type Question, type Row, toPosition } from './question.ts';
import { contains, cutRange, isInside, type Range, toPart, toRemainders, toShape } from './range.ts';
import { addDoubt, addFault, type Draft, type Facts, replace, toDirection } from './sweep-state.ts';
import { beginWalk } from './walk.ts';

/** Takes in the answer to a range question. */
export function learnRange(draft: Draft, question: Question, answer: Answer): void {
  const whole = draft.ranges.find((range) => range.state === 'open' && contains(range, question));
  if (whole === undefined || question.from === null) return;
  const range = toPart(whole, question.from, question.to);
  const pieces = toPieces(draft, range, question, answer);
  if (pieces !== null) replace(draft, whole, [...toRemainders(whole, question.from, question.to), ...pieces]);
}

/** What becomes of the range; null when both filters are no longer believed. */
function toPieces(draft: Draft, range: Range, question: Question, answer: Answer): Range[] | null {
  const { facts } = draft;
  if (answer.kind === 'refused') {
    if (question.after !== null && question.before !== null) return startWalk(facts, 'refuses');
    addFault(facts, 'the source refuses a single filter');
    return [{ ...range, state: 'stuck' }];
  }
  if (answer.kind === 'overflow') {
    return cutAbandoned(
      facts,
      range,
      answer.rows.map((row) => toPosition(facts.axis, row)),
    );
  }
  const inside = readRange(facts, range, question, answer);
  if (inside === null) return null;
  noteExcess(draft, range, inside.length);
  const shape = toShape(range);
  const count = answer.rows.length;
  facts[shape] = withAnswer(facts[shape], count, answer.bytes);
  noteEnd(draft, answer);
  if (isWhole(facts, range, answer)) {
    noteMissing(facts, answer);
    return [{ ...range, state: 'closed', answer: { count, bytes: answer.bytes } }];
  }
  const post = toPost(facts, range, answer);
  if (post !== null) return closeToPost(facts, range, answer, post, inside);
  return cutAnswered(facts, range, question, answer, inside);
}

/** I1, and what else needs no capacity: one id can fill no more than its own place, and a poll trusts a page with nothing new. */
function isWhole(facts: Facts, range: Range, page: Page): boolean {
  const capacity = toBelieved(facts, toShape(range));
  const count = page.rows.length;
  if (fits(capacity, count, page.bytes)) return true;
  if (facts.rigor === 'poll' && page.unheld.length === 0 && count < toLimit(capacity)) return true;
  return facts.axis === 'id' && range.from === range.to && page.rows.some((row) => row.id === range.from);
}

/** The positions that a page shows inside the range, distinct and rising; null when it shows what was not asked for. */
function readRange(facts: Draft['facts'], range: Range, question: Question, page: Page): bigint[] | null {
  const inside = new Set<bigint>();
  for (const row of page.rows) {
    const position = toPosition(facts.axis, row);
    if (position === null) continue;
    if (isInside(range, position)) inside.add(position);
    else if (facts.axis === 'date') continue;
    else if (position === question.after) facts.inclusiveAfter = true;
    else if (position === question.before) facts.inclusiveBefore = true;
    else return startWalk(facts, 'does not honour');
    noteExtremes(facts, row.id, row.at);
  }
  return [...inside].sort((a, b) => (a < b ? -1 : 1));
}

/** More ids than the wider answer showed: that one was cut off, and the bound that moved acts before the cap. */
function noteExcess(draft: Draft, range: Range, count: number): void {
  const { facts } = draft;
  const excess = count - range.expected;
  // What an abandoned answer showed was not stored, so it counts as found only now.
  facts.found += range.origin === null ? count : Math.max(0, excess);
  if (excess <= 0 || range.origin === null) return;
  const { side, shape, count: wider } = range.origin;
  // In a list without order even one more means that the wider page was not all there was.
  if (toDirection(facts) === 'mixed' && range.to !== null) facts.cut = true;
  // Otherwise one or two more are late commits or arrivals, not a page that was cut off.
  const limit = toLimit(facts[shape]);
  if (limit >= smallPage && excess * 8 <= limit) return;
  facts.cut = true;
  if (side === 'after') facts.reachAfter = true;
  else if (side === 'before') facts.reachBefore = true;
  else if (side === 'inner') facts.reachInner = true;
  lower(draft, shape, wider);
}

/** An answer of this many rows had been cut off: whatever was closed on more than half of it is open again. */
export function lower(draft: Draft, cutShape: Shape, count: number): void {
  const { facts } = draft;
  const before = toLimit(facts[cutShape]);
  facts[cutShape] = withCut(facts[cutShape], count);
  if (toLimit(facts[cutShape]) >= before) return;
  draft.ranges = draft.ranges.map((range) => {
    if (range.state !== 'closed' || range.answer === null || range.posted) return range;
    const shape = toShape(range);
    if (range.from === range.to || fits(toBelieved(facts, shape), range.answer.count, range.answer.bytes)) return range;
    const origin = { count: range.answer.count, shape, side: 'whole' as const };
    return { ...range, state: 'open' as const, expected: range.answer.count, origin };
  });
}

/** I9: what is held here and was not shown is asked alone later. */
function noteMissing(facts: Draft['facts'], page: Page): void {
  if (page.weakEmpty) addDoubt(facts, 'the source says "nothing" without an empty list');
  if (facts.axis === 'date') return;
  const fresh = page.missing.filter((id) => !facts.suspects.includes(id) && !facts.absent.includes(id));
  facts.suspects = [...facts.suspects, ...fresh];
}

function cutAnswered(facts: Facts, range: Range, question: Question, page: Page, inside: bigint[]): Range[] {
  const count = page.rows.length;
  const direction = toDirection(facts);
  // While no page with both bounds is known, an ascending list is first asked for the whole stretch that it has just shown.
  const untried = direction === 'ascending' ? Number.POSITIVE_INFINITY : toPieceSize(facts.one);
  const known = facts.two.largest > 0 ? toPieceSize(toBelieved(facts, 'two')) : count < smallPage ? 0 : untried;
  // Nothing new: the list does not go on here, and every piece must fit, the open end too.
  const isRead = range.expected >= inside.length;
  const pieceSize = isRead && range.to === null ? Math.min(known, toPieceSize(facts.one)) : known;
  // Narrower than the slack, a smaller range on the date axis asks the same question.
  const tooNarrow = facts.axis === 'date' && range.to !== null && range.to - range.from < dateSlackSeconds / 2n;
  const pieces = tooNarrow
    ? []
    : cutRange(range, inside, {
        direction,
        pieceSize,
        far: isRead ? null : toFar(facts, range, page, inside),
        skipCuts: facts.axis === 'id',
        origin: { count, shape: toShape(range) },
      });
  if (pieces.length > 0) return pieces;
  // Only the bound came back, and it is stepped over from now on: the same range, another question.
  const changed = toQuestion(facts, range, 'range');
  if (inside.length === 0 && !isSameQuestion(changed, { ...question, purpose: 'range' })) return [range];
  if (inside.length > 0 && facts.axis === 'id') return [];
  return [{ ...range, state: 'stuck' }];
}

/** Where a list in order goes on: its last rows. A single straggler among them must not stand for the whole. */
function toFar(facts: Facts, range: Range, page: Page, inside: readonly bigint[]): bigint | null {
  const direction = toDirection(facts);
  if (direction === 'mixed') return null;
  const extreme = direction === 'ascending' ? inside.at(-1) : inside[0];
  if (facts.rising === 0 || facts.falling === 0) return extreme ?? null;
  const last: bigint[] = [];
  for (let i = page.rows.length - 1; i >= 0 && last.length < 5; i--) {
    const position = toPosition(facts.axis, page.rows[i] as Row);
    if (position !== null && isInside(range, position)) last.push(position);
  }
  return last.sort((a, b) => (a < b ? -1 : 1))[last.length >> 1] ?? null;
}

/** A cut point needs no trust, so the beginning of an abandoned answer may give it; none of it is held, so none is skipped. */
function cutAbandoned(facts: Facts, range: Range, positions: (bigint | null)[]): Range[] {
  const inside = [
    ...new Set(positions.filter((position) => position !== null && isInside(range, position))),
  ] as bigint[];
  inside.sort((a, b) => (a < b ? -1 : 1));
  // Four fifths of what was seen should fit the budget, and show how much a page can hold.
  const pieceSize = facts.two.largest > 0 ? toPieceSize(toBelieved(facts, 'two')) : Math.floor(inside.length * 0.8);
  const direction = toDirection(facts);
  const lowest = inside[0] === undefined || inside[0] === range.from ? inside[0] : inside[0] - 1n;
  const far = (direction === 'descending' ? lowest : inside.at(-1)) ?? null;
  const pieces = cutRange(range, inside, { direction, pieceSize, far, skipCuts: false, origin: null });
  if (pieces.length > 0) return pieces;
  if (range.from === range.to) return [{ ...range, state: 'stuck' }];
  const blind = range.to === null ? range.from * 2n + 1024n : (range.from + range.to) / 2n;
  const seen = inside[inside.length >> 1];
  const cut = seen === undefined ? blind : seen > range.from ? seen - 1n : seen;
  return cutRange(range, [cut], { direction: 'mixed', pieceSize: 1, far: null, skipCuts: false, origin: null });
}

/** I5. On the date axis there is nothing to walk by. */
function startWalk(facts: Draft['facts'], does: string): null {
  if (facts.axis === 'date') addFault(facts, 'the source does not honour its date filters');
  else facts.walk = beginWalk(facts.from, facts.to, facts, `the source ${does} afterid and beforeid together`);
  return null;
}

function noteExtremes(facts: Draft['facts'], id: bigint, at: bigint | null): void {
  if (facts.lowest === null || id < facts.lowest) facts.lowest = id;
  if (facts.highest === null || id > facts.highest) facts.highest = id;
  if (at === null) return;
  if (facts.earliestAt === null || at < facts.earliestAt) facts.earliestAt = at;
  if (facts.latestAt === null || at > facts.latestAt) facts.latestAt = at;
}

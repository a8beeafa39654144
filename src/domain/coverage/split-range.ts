// Splits a range whose answer does not close it: after a page that may have been cut off, and after an abandoned answer.
// Does not know what an answer proves.

import { directionOf, smallPage } from './capacity.ts';
import { rangeQuestion, sizeOfPieces } from './next-question.ts';
import { isSameQuestion, type ListedRow, lengthOf, type PageAnswer, positionOf, type Question } from './question.ts';
import { cutRange, isInside, openRange, type Range, type Shown } from './range.ts';
import type { StateFacts, SweepDraft } from './sweep-state.ts';

/** Cuts the range of a full page into pieces that fit. The range is stuck if no smaller question is possible. */
export function cutAnswered(
  facts: SweepDraft['facts'],
  range: Range,
  question: Question,
  page: PageAnswer,
  inside: Shown[],
): Range[] {
  const rows = lengthOf(page);
  const direction = directionOf(facts);
  const shape = question.before === null ? 'after' : 'both';
  const one = sizeOfPieces(facts, 'after');
  const known = facts.both.rows > 0 || rows >= smallPage ? sizeOfPieces(facts, 'both') : { rows: 0, bytes: 0 };
  // The page shows nothing new, so the list does not continue here, and every piece must fit, including one without an end.
  const isRead = range.expected >= inside.length;
  const size =
    isRead && range.to === null
      ? {
          rows: Math.min(known.rows, facts.both.rows > 0 ? one.rows : known.rows),
          bytes: Math.min(known.bytes, one.bytes),
        }
      : known;
  // On the date axis, a range narrower than the uncertainty of the time zone cannot be cut: its pieces would ask nearly the same question.
  const blur = facts.shift.most - facts.shift.least;
  const isNarrow = facts.axis === 'date' && range.to !== null && range.to - range.from < blur / 4n;
  const [low, high] = [inside[0]?.position ?? null, inside.at(-1)?.position ?? null];
  const origin = { rows, bytes: page.bytes, shape, low, high } as const;
  const far = isRead ? null : farEnd(facts, range, page);
  const cutting = { direction, size, goesOn: !isRead, far, origin };
  const betweenIds = { ...cutting, direction: 'mixed', size: { rows: 0, bytes: 0 } } as const;
  const cut = isNarrow ? null : (cutRange(range, inside, cutting) ?? cutRange(range, inside, betweenIds));
  if (cut !== null) return cut;
  // Only the bounds came back and filled the page. Ask for the same range with bounds that step over them.
  const step = {
    after: range.step.after || page.rows.some(({ id }) => id === question.after),
    before: range.step.before || page.rows.some(({ id }) => id === question.before),
  };
  const next = { ...range, step: facts.axis === 'id' ? step : range.step };
  if (inside.length === 0 && !isSameQuestion(rangeQuestion(facts, next), { ...question, purpose: 'range' })) {
    // No question can tell whether the source includes that bound every time. Later pages show whether it matters.
    const most = facts.boundsOnly[shape];
    const pageSize = { rows: Math.max(rows, most?.rows ?? 0), bytes: Math.max(page.bytes, most?.bytes ?? 0) };
    facts.boundsOnly = { ...facts.boundsOnly, [shape]: pageSize };
    return [next];
  }
  return [{ ...range, state: 'stuck' }];
}

/** The position from which a sorted list continues: the median of its last five rows, so that a single straggler does not decide. */
function farEnd(facts: StateFacts, range: Range, page: PageAnswer): bigint | null {
  if (directionOf(facts) === 'mixed' || facts.rising === 0 || facts.falling === 0) return null;
  const last: bigint[] = [];
  for (let i = page.rows.length - 1; i >= 0 && last.length < 5; i--) {
    const position = positionOf(facts.axis, page.rows[i] as ListedRow);
    if (position !== null && isInside(range, position)) last.push(position);
  }
  return last.sort((a, b) => (a < b ? -1 : 1))[last.length >> 1] ?? null;
}

/** A cut point proves nothing, so rows from the beginning of an abandoned answer may serve. None of them is stored; all are read again. */
export function cutAbandoned(facts: StateFacts, range: Range, rows: readonly ListedRow[]): Range[] {
  if (range.from === range.to) return [{ ...range, state: 'stuck' }];
  const positions = rows.map((row) => positionOf(facts.axis, row)).filter((position) => position !== null);
  const inside = [...new Set(positions.filter((position) => isInside(range, position)))].sort((a, b) =>
    a < b ? -1 : 1,
  );
  const known = sizeOfPieces(facts, 'both').rows;
  // Four fifths of the rows seen should fit the byte budget. The answer then shows how much a page can hold.
  const wanted = facts.both.rows > 0 ? known : Math.floor(inside.length * 0.8);
  const every = Math.max(1, Math.min(wanted, inside.length - 1));
  const cuts = inside.filter((_, index) => index % every === every - 1).slice(0, 15);
  const usable = cuts.filter((cut) => range.to === null || cut < range.to);
  const blind = range.to === null ? range.from * 2n + 1024n : (range.from + range.to) / 2n;
  const pieces: Range[] = [];
  let { from } = range;
  for (const cut of usable.length > 0 ? usable : [blind]) {
    if (cut < from) continue;
    pieces.push(openRange(from, cut));
    from = cut + 1n;
  }
  return [...pieces, openRange(from, range.to)];
}

// What an answer proves in a list that is cut off where it ends: it is whole up to the last held id that it shows, the post.
// Only a reading that knows held ids can tell such a list from one that chooses its rows in another order and then sorts them.

import { toBelieved, toLimit } from './capacity.ts';
import { toAbsentLimit } from './certificate.ts';
import type { Page } from './question.ts';
import { isInside, type Range, toShape } from './range.ts';
import { type Draft, type Facts, toDirection } from './sweep-state.ts';
import { fewestPairs } from './walk.ts';

/** The last held id that the answer shows, when everything in the range up to it is surely there; otherwise null. */
export function toPost(facts: Facts, range: Range, page: Page): bigint | null {
  if (!isCutInOrder(facts) || !hasRoom(facts, range, page)) return null;
  const unheld = new Set(page.unheld);
  const post = page.rows.findLast(({ id }) => !unheld.has(id) && isInside(range, id))?.id;
  if (post === undefined) return null;
  const isPassed = toBeyond(facts, post);
  return page.missing.every(isPassed) ? post : null;
}

/** Cuts a range at its post: up to it closed, beyond it open. `inside` are the ids that the answer shows in it. */
export function closeToPost(facts: Facts, range: Range, page: Page, post: bigint, inside: readonly bigint[]): Range[] {
  const count = page.rows.length;
  const closed = { ...range, state: 'closed', answer: { count, bytes: page.bytes }, posted: true } as const;
  const isPassed = toBeyond(facts, post);
  const rest = { ...range, expected: inside.filter(isPassed).length };
  const shape = toShape(range);
  if (toDirection(facts) === 'descending') {
    if (post === range.from) return [closed];
    return [
      { ...rest, to: post - 1n, origin: { count, shape, side: 'before' } },
      { ...closed, from: post },
    ];
  }
  if (post === range.to) return [closed];
  return [
    { ...closed, to: post },
    { ...rest, from: post + 1n, origin: { count, shape, side: 'after' } },
  ];
}

/**
 * Looks at a page that lacks more held ids than a source may have deleted: it was cut off. Were they all beyond its last row, the list is
 * cut where it ends; a single one before it, and the rows were chosen in another order: nothing that rests on a post stands.
 */
export function noteEnd(draft: Draft, page: Page): void {
  const { facts } = draft;
  const last = page.rows.at(-1)?.id;
  if (last === undefined || page.missing.length <= toAbsentLimit(facts.heldBefore)) return;
  facts.endsInOrder = true;
  if (page.missing.every(toBeyond(facts, last))) return;
  facts.skips = true;
  draft.ranges = draft.ranges.map((range) =>
    range.posted ? { ...range, state: 'open', expected: 0, origin: null, answer: null, posted: false } : range,
  );
}

/** Ids to ask for in one question, so that its answer ends in a post with room for late commits; null while posts prove nothing. */
export function toPostedSize(facts: Facts): number | null {
  return isCutInOrder(facts) ? Math.floor(toLimit(facts.two) * 0.9) : null;
}

/** Every page of this sweep came in one order, and one that was surely cut off skipped nothing that is held. */
function isCutInOrder(facts: Facts): boolean {
  const { rising, falling } = facts;
  return facts.endsInOrder && !facts.skips && Math.min(rising, falling) === 0 && rising + falling >= fewestPairs;
}

/**
 * Room for two more rows of this kind: a second guard, for rows that were chosen in an order that agreed with that of ids until now.
 * Were they cut off by their number or by their bytes, there would be none.
 */
function hasRoom(facts: Facts, range: Range, page: Page): boolean {
  const capacity = toBelieved(facts, toShape(range));
  const count = page.rows.length;
  return count + 2 <= toLimit(capacity) && page.bytes * (count + 2) <= capacity.largestBytes * count;
}

function toBeyond(facts: Facts, post: bigint): (id: bigint) => boolean {
  return toDirection(facts) === 'descending' ? (id) => id < post : (id) => id > post;
}

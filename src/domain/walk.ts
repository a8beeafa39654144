// Reading a list by one filter, page by page, for sources that do not honour both together. Complete only if the list is in
// order, which no question can prove: a walk ends `assumed` at best. Knows nothing of ranges and their certificates.

import type { Page, Question } from './question.ts';

/** Where a walk stands. */
export interface Walk {
  /** Why both filters together are not believed. */
  readonly why: string;
  readonly from: bigint;
  readonly to: bigint | null;
  /** Directions still to go, the present one first. */
  readonly directions: readonly ('forward' | 'backward')[];
  /** The last id reached in the present direction; null at the start. */
  readonly position: bigint | null;
  /** The bound itself came back in this direction. */
  readonly inclusive: boolean;
  /** Whether a direction was walked to an empty page; null when it was not walked. */
  readonly ended: { readonly forward: boolean | null; readonly backward: boolean | null };
}

/** Adjacent pairs in which pages rose and fell. */
export interface Pairs {
  readonly rising: number;
  readonly falling: number;
}

/** Fewer pairs than these are chance, not order. */
export const fewestPairs = 10;

/** Begins a walk over `from` to `to`, in the direction that the pages seen so far suggest, or in both. */
export function beginWalk(from: bigint, to: bigint | null, pairs: Pairs, why: string): Walk {
  const directions: Walk['directions'] =
    pairs.falling === 0 && pairs.rising > 0
      ? ['forward']
      : pairs.rising === 0 && pairs.falling > 0
        ? ['backward']
        : ['forward', 'backward'];
  return { why, from, to, directions, position: null, inclusive: false, ended: { forward: null, backward: null } };
}

/** The next page to ask for; null when every direction is done. */
export function askWalk(walk: Walk): Question | null {
  const direction = walk.directions[0];
  if (direction === undefined) return null;
  const shared = { axis: 'id', purpose: 'walk', from: walk.from, to: walk.to, expects: null } as const;
  const step = walk.inclusive ? 1n : 0n;
  if (direction === 'forward') {
    return { ...shared, after: (walk.position ?? walk.from - 1n) + step, before: null };
  }
  const start = walk.to === null ? null : walk.to + 1n;
  const before = walk.position ?? start;
  // Without any lower bound a source may show a recent window only; with both bounds this one may misbehave.
  return { ...shared, after: before === null ? walk.from - 1n : null, before: before === null ? null : before - step };
}

/** What a page (or a refusal, null) teaches; `found` is how many ids lay beyond the position. */
export function learnWalk(walk: Walk, page: Page | null, pairs: Pairs): { walk: Walk; found: number } {
  const direction = walk.directions[0];
  if (direction === undefined) return { walk, found: 0 };
  const forward = direction === 'forward';
  const start = forward ? walk.from - 1n : walk.to === null ? null : walk.to + 1n;
  const bound = walk.position ?? start;
  const isBeyond = (id: bigint) => bound === null || (forward ? id > bound : id < bound);
  const beyond = page === null ? [] : page.rows.filter((row) => isBeyond(row.id)).map((row) => row.id);
  const boundCameBack = page?.rows.some((row) => row.id === bound) ?? false;
  const outside = page?.rows.some((row) => row.id !== bound && !isBeyond(row.id)) ?? false;
  if (page === null || outside) return { walk: toNextDirection(walk, false, pairs), found: 0 };
  if (beyond.length === 0) {
    // A page may be filled by the bound alone: step over it once.
    if (boundCameBack && !walk.inclusive) return { walk: { ...walk, inclusive: true }, found: 0 };
    return { walk: toNextDirection(walk, true, pairs), found: 0 };
  }
  const position = beyond.reduce((far, id) => (forward === id > far ? id : far));
  const over = forward ? walk.to !== null && position >= walk.to : position <= walk.from;
  const next = { ...walk, position, inclusive: walk.inclusive || boundCameBack };
  return { walk: over ? toNextDirection(next, true, pairs) : next, found: beyond.length };
}

/** True when the pages were in the order in which they were walked to the end. */
export function isWalkInOrder(walk: Walk, pairs: Pairs): boolean {
  const { forward, backward } = walk.ended;
  if (forward === true && pairs.falling === 0 && pairs.rising >= fewestPairs) return true;
  return backward === true && pairs.rising === 0 && pairs.falling >= fewestPairs;
}

function toNextDirection(walk: Walk, reachedTheEnd: boolean, pairs: Pairs): Walk {
  const [done, ...rest] = walk.directions;
  if (done === undefined) return walk;
  const ended = { ...walk.ended, [done]: reachedTheEnd };
  const other = done === 'forward' ? 'backward' : 'forward';
  // One direction is enough only if it came to its end and the order held.
  const inOrder = reachedTheEnd && (pairs.rising === 0 || pairs.falling === 0);
  const directions = rest.length === 0 && !inOrder && ended[other] === null ? [other as typeof done] : rest;
  return { ...walk, directions, position: null, inclusive: false, ended };
}

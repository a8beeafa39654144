// Reads a list with one filter, page by page, from sources that do not honour both filters together. A walk is complete only if the list
// is sorted, which no question can prove. So it ends as `assumed` with a doubt at best. Does not know ranges and their certificates.

import { fewestPairs, type Pairs } from './capacity.ts';
import type { PageAnswer, Question } from './question.ts';

/** The progress of a walk. */
export interface Walk {
  /** Why the sweep does not trust both filters together. */
  readonly why: string;
  readonly from: bigint;
  readonly to: bigint | null;
  /** Directions still to walk, the current one first. */
  readonly directions: readonly ('forward' | 'backward')[];
  /** The bound of the next page in the current direction; null at the start. */
  readonly bound: bigint | null;
  /** The outermost id reached in the current direction; null at the start. */
  readonly reached: bigint | null;
  /** Whether the walk in a direction reached the end of the list; null if that direction was not walked. */
  readonly ended: { readonly forward: boolean | null; readonly backward: boolean | null };
  /** Overlapping pages disagree, or the walk ended before it showed every stored id. */
  readonly disagrees: boolean;
}

/** Begins a walk from `from` to `to`, in the direction that the pages seen so far suggest, or in both. */
export function beginWalk(from: bigint, to: bigint | null, pairs: Pairs, why: string): Walk {
  const directions: Walk['directions'] =
    pairs.falling === 0 && pairs.rising > 0
      ? ['forward']
      : pairs.rising === 0 && pairs.falling > 0
        ? ['backward']
        : ['forward', 'backward'];
  const ended = { forward: null, backward: null };
  return { why, from, to, directions, bound: null, reached: null, ended, disagrees: false };
}

/** The question for the next page; null when every direction is done. */
export function askWalk(walk: Walk): Question | null {
  const direction = walk.directions[0];
  if (direction === undefined) return null;
  const shared = { axis: 'id', purpose: 'walk', since: null } as const;
  if (direction === 'forward') {
    const after = walk.bound ?? walk.from - 1n;
    return { ...shared, from: after + 1n, to: walk.to, after, before: null };
  }
  const before = walk.bound ?? (walk.to === null ? null : walk.to + 1n);
  // Without a lower bound a source may show only a recent window. Both bounds together are not possible with this source.
  return {
    ...shared,
    from: walk.from,
    to: before === null ? walk.to : before - 1n,
    after: before === null ? walk.from - 1n : null,
    before,
  };
}

/** Advances the walk by a page; null is a refusal. `found` counts the ids beyond the outermost id reached before. */
export function learnWalk(walk: Walk, page: PageAnswer | null, pairs: Pairs): { walk: Walk; found: number } {
  const direction = walk.directions[0];
  if (direction === undefined) return { walk, found: 0 };
  const forward = direction === 'forward';
  const start = forward ? walk.from - 1n : walk.to === null ? null : walk.to + 1n;
  const bound = walk.bound ?? start;
  const isPast = (id: bigint, than: bigint) => (forward ? id > than : id < than);
  const ids = page === null ? [] : [...new Set(page.rows.map((row) => row.id))];
  const isOutside = bound !== null && ids.some((id) => id !== bound && !isPast(id, bound));
  if (page === null || isOutside) return { walk: nextDirection(walk, false, pairs), found: 0 };
  const inside = ids.filter((id) => bound === null || isPast(id, bound)).sort((a, b) => (isPast(a, b) ? 1 : -1));
  const { reached } = walk;
  const beyond = inside.filter((id) => reached === null || isPast(id, reached));
  const far = inside.at(-1) ?? null;
  // Known ids before the last row were skipped. At the end of the list, every unshown known id counts as skipped.
  const isAtEnd = beyond.length === 0;
  const skipped = page.unshown.some(({ id }) => isAtEnd || (far !== null && isPast(far, id)));
  const seen = { ...walk, disagrees: walk.disagrees || skipped };
  if (isAtEnd) {
    // The overlap alone filled the page, so continue from the outermost id.
    const next = bound === reached && ids.includes(reached as bigint) ? step(reached as bigint, forward) : reached;
    const isStuck = next === null || next === bound || (bound !== null && isPast(bound, next));
    if (!isStuck && ids.length > 0) return { walk: { ...walk, bound: next }, found: 0 };
    return { walk: nextDirection(seen, true, pairs), found: 0 };
  }
  const position = far as bigint;
  const isOver = forward ? walk.to !== null && position >= walk.to : position <= walk.from;
  // Half of the page is read again, to detect pages that were not cut in the order of ids.
  const middle = inside[inside.length >> 1] as bigint;
  const next = { ...seen, reached: position, bound: bound !== null && !isPast(middle, bound) ? position : middle };
  return { walk: isOver ? nextDirection(next, true, pairs) : next, found: beyond.length };
}

function step(id: bigint, forward: boolean): bigint {
  return forward ? id + 1n : id - 1n;
}

/** True if a walk reached the end, all pages were sorted in its direction, and overlapping pages agreed. */
export function isWalkInOrder(walk: Walk, pairs: Pairs): boolean {
  if (walk.disagrees) return false;
  const { forward, backward } = walk.ended;
  if (forward === true && pairs.falling === 0 && pairs.rising >= fewestPairs) return true;
  return backward === true && pairs.rising === 0 && pairs.falling >= fewestPairs;
}

function nextDirection(walk: Walk, reachedTheEnd: boolean, pairs: Pairs): Walk {
  const [done, ...rest] = walk.directions;
  if (done === undefined) return walk;
  const ended = { ...walk.ended, [done]: reachedTheEnd };
  const other = done === 'forward' ? 'backward' : 'forward';
  // One direction is enough only if the walk reached the end and all pages were sorted.
  const inOrder = reachedTheEnd && (pairs.rising === 0 || pairs.falling === 0);
  const directions = rest.length === 0 && !inOrder && ended[other] === null ? [other as typeof done] : rest;
  return { ...walk, directions, bound: null, reached: null, ended };
}

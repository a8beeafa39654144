// Reads a list with one filter, page by page, if the source does not honour two (R8 of docs/coverage.md). A walk is complete
// only if the list is sorted, which no question can prove. So it ends with a doubt at best.

import { type IdRange, type Position, toRange } from './position.ts';
import { type Answer, boundedQuestion, isStray, type Question, shownInside } from './question.ts';

type Direction = 'forward' | 'backward';

type Pairs = { readonly rising: number; readonly falling: number };

export interface Walk {
  /** Why two filters together are not trusted. */
  readonly why: string;
  /** Directions still to walk, the current one first, and those that were walked to the end. */
  readonly directions: readonly Direction[];
  readonly ended: readonly Direction[];
  /** The first id of the next page, and the outermost id reached, in the current direction; null at its start. */
  readonly at: Position | null;
  readonly reached: Position | null;
  /** Pages skipped ids that are known. */
  readonly disagrees: boolean;
}

/** Begins a walk, first in the direction in which the pages so far are sorted. */
export function beginWalk({ rising, falling }: Pairs, why: string): Walk {
  const directions: Direction[] = falling > rising ? ['backward', 'forward'] : ['forward', 'backward'];
  return { why, directions, at: null, reached: null, ended: [], disagrees: false };
}

/** The question for the next page of the range; null when every direction is done. */
export function askWalk({ from, to }: IdRange, { at, directions: [direction] }: Walk): Question | null {
  if (direction === undefined) return null;
  if (direction === 'forward') return { ...boundedQuestion('walk', { from: at ?? from, to }), beforeId: null };
  const question = boundedQuestion('walk', { from, to: at ?? to });
  // At the end of the axis there is no upper bound. Without any bound a source may show only a recent window.
  return question.beforeId === null ? question : { ...question, afterId: null };
}

export function learnWalk(facts: { found: number } & Pairs & IdRange, walk: Walk, answer: Answer): Walk {
  const question = askWalk(facts, walk);
  if (question === null) return walk;
  if (answer.kind !== 'page' || isStray(question, answer)) return turn(walk, false, facts);
  const forward = walk.directions[0] === 'forward';
  // One filter does not stop where the walk does.
  const isPassed = isSorted(walk, facts) && answer.rows.some(({ id }) => (forward ? id > facts.to : id < facts.from));
  const isPast = (id: bigint, than: bigint) => (forward ? id > than : id < than);
  const inside = shownInside(question.covers as IdRange, answer);
  if (!forward) inside.reverse();
  const beyond = inside.filter((id) => walk.reached === null || isPast(id, walk.reached));
  const far = inside.at(-1) ?? null;
  facts.found += beyond.length;
  const skips = answer.lacking.some(({ id }) => beyond.length === 0 || (far !== null && isPast(far, id)));
  const seen = { ...walk, disagrees: walk.disagrees || skips };
  if (beyond.length === 0) {
    // The overlap alone filled the page: go on from the outermost id, then from the one behind it.
    const next = stepFrom(facts, walk, forward);
    return next === null || isPassed || answer.rows.length === 0 ? turn(seen, true, facts) : { ...seen, at: next };
  }
  const reached = far as Position;
  // Half of the page is read again, to notice pages that were not cut off in the order of ids.
  const middle = inside[inside.length >> 1] as Position;
  const at = walk.at !== null && !isPast(middle, walk.at) ? reached : middle;
  const isOver = isPassed || (forward ? reached >= facts.to : reached <= facts.from);
  return isOver ? turn({ ...seen, reached }, true, facts) : { ...seen, reached, at };
}

function stepFrom({ from, to }: IdRange, { at, reached }: Walk, forward: boolean): Position | null {
  if (at === null || reached === null) return null;
  if (at !== reached) return at < reached === forward ? reached : null;
  return forward ? (toRange(reached + 1n, to)?.from ?? null) : (toRange(from, reached - 1n)?.to ?? null);
}

/** True if a walk reached the end, all pages were sorted in its direction, and no page skipped a known id. */
export function isWalkInOrder({ ended, disagrees }: Walk, { rising, falling }: Pairs): boolean {
  if (disagrees) return false;
  if (ended.includes('forward') && falling === 0 && rising >= 10) return true;
  return ended.includes('backward') && rising === 0 && falling >= 10;
}

/** True if all pages so far were sorted in the current direction. */
function isSorted({ directions: [direction] }: Walk, { rising, falling }: Pairs): boolean {
  return (direction === 'forward' ? falling : rising) === 0;
}

/** Ends the current direction. The other one is left out if this one reached the end and all pages were sorted. */
function turn(walk: Walk, hasEnded: boolean, pairs: Pairs): Walk {
  const [done, ...rest] = walk.directions;
  if (done === undefined) return walk;
  const isEnough = hasEnded && isSorted(walk, pairs);
  return {
    ...walk,
    directions: isEnough ? [] : rest,
    ended: hasEnded ? [...walk.ended, done] : walk.ended,
    at: null,
    reached: null,
  };
}

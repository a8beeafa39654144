// How much a page of this source is known to hold, and therefore which answers are surely whole.
// The only evidence is what the source returned in this sweep; nothing is known here of ranges or questions.

/** What answers of one shape have shown. */
export interface Capacity {
  /** Most rows returned. */
  readonly largest: number;
  /** Largest body returned. */
  readonly largestBytes: number;
  /** Fewest rows of an answer that later proved to have been cut off; null while none is known. */
  readonly smallestCut: number | null;
}

/** Pages asked for with a lower bound alone and with both bounds may be cut at different sizes, so each shape earns its own trust. */
export type Shape = 'one' | 'two';

export const unknownCapacity: Capacity = { largest: 0, largestBytes: 0, smallestCut: null };

/** Below this, counts prove nothing (a few rows more or less are half a page): only an empty answer is whole. */
export const smallPage = 16;

/** True when an answer is surely whole: this source has shown that it can return twice as many rows, and half as many bytes again. */
export function fits(capacity: Capacity, count: number, bytes: number): boolean {
  if (count === 0) return true;
  const limit = toLimit(capacity);
  return limit >= smallPage && count * 2 <= limit && bytes * 3 <= capacity.largestBytes * 2;
}

/** The most ids that a piece of a page may hold so that its own answer will fit. */
export function toPieceSize(capacity: Capacity): number {
  const limit = toLimit(capacity);
  if (limit === 0) return Number.POSITIVE_INFINITY;
  return limit < smallPage ? 0 : Math.floor(limit / 2);
}

/** Fewest rows at which an answer of this source is known or feared to be cut. */
export function toLimit(capacity: Capacity): number {
  return Math.min(capacity.smallestCut ?? capacity.largest, capacity.largest);
}

/** True when answers were cut at counts so different that a margin of half means little. */
export function isUneven(capacity: Capacity): boolean {
  const { smallestCut, largest } = capacity;
  return smallestCut !== null && smallestCut < largest && (smallestCut < smallPage || smallestCut * 2 < largest);
}

/** Pages with both bounds may be smaller than those with one, but are not believed to be larger. */
export function toBelieved({ one, two }: Readonly<Record<Shape, Capacity>>, shape: Shape): Capacity {
  if (shape === 'one') return one;
  return one.smallestCut === null || one.smallestCut >= toLimit(two) ? two : withCut(two, one.smallestCut);
}

export function withAnswer(capacity: Capacity, count: number, bytes: number): Capacity {
  if (count <= capacity.largest && bytes <= capacity.largestBytes) return capacity;
  return {
    ...capacity,
    largest: Math.max(capacity.largest, count),
    largestBytes: Math.max(capacity.largestBytes, bytes),
  };
}

export function withCut(capacity: Capacity, count: number): Capacity {
  if (capacity.smallestCut !== null && capacity.smallestCut <= count) return capacity;
  return { ...capacity, smallestCut: count };
}

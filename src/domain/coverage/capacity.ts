// How much a page of this source holds, and therefore which answers are surely whole. The only evidence is what the source returned in
// this sweep. Knows nothing of ranges or questions.

/** What answers of one shape have shown. */
export interface Capacity {
  /** Most rows returned. */
  readonly rows: number;
  /** Largest body returned. */
  readonly bytes: number;
  /** Fewest rows of an answer that proved to have been cut off by their number; null while none is known. */
  readonly cutRows: number | null;
}

export const unknownCapacity: Capacity = { rows: 0, bytes: 0, cutRows: null };

/** Below this, counts prove nothing (a few rows more or less are half a page): only an empty answer is whole. */
export const smallPage = 16;

/** Fewest rows at which an answer of this source is known or feared to be cut. */
export function rowLimit({ rows, cutRows }: Capacity): number {
  return Math.min(cutRows ?? rows, rows);
}

/** True when no row cap can have cut the answer: it has strictly less than half the rows of the smallest page that may have been cut. */
export function isShortByRows(capacity: Capacity, rows: number): boolean {
  const limit = rowLimit(capacity);
  return limit >= smallPage && rows * 2 < limit;
}

/** Where pages end at one number of rows, a byte cap was never met: below this share of the largest body none is. */
const evenShare = 0.6;

/**
 * True when no byte cap can have cut the answer. Where pages end at different lengths, a byte cap may be what ends them: then the row that
 * was left out may be as large as the largest that was seen, or larger, and a quarter of the largest body is room enough for either.
 */
export function isShortByBytes(capacity: Capacity, bytes: number, largestRow: number, isEven: boolean): boolean {
  if (isEven) return bytes < capacity.bytes * evenShare;
  return (bytes + largestRow) * 2 < capacity.bytes || bytes * 4 < capacity.bytes;
}

/** How many rows, and how many bytes of rows, a piece may be expected to hold so that its own answer will be short. */
export function pieceSize(capacity: Capacity, largestRow: number, isEven: boolean): { rows: number; bytes: number } {
  const limit = rowLimit(capacity);
  if (capacity.rows === 0) return { rows: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  if (limit < smallPage) return { rows: 0, bytes: 0 };
  // With room for a larger row than was seen so far: a piece that is reopened costs more than a smaller piece.
  const bytes = isEven
    ? capacity.bytes * evenShare
    : Math.max(capacity.bytes / 2 - 1.25 * largestRow, capacity.bytes / 4);
  return { rows: Math.ceil(limit / 2) - 1, bytes: bytes * 0.98 };
}

export function withAnswer(capacity: Capacity, rows: number, bytes: number): Capacity {
  if (rows <= capacity.rows && bytes <= capacity.bytes) return capacity;
  return { ...capacity, rows: Math.max(capacity.rows, rows), bytes: Math.max(capacity.bytes, bytes) };
}

export function withCut(capacity: Capacity, rows: number): Capacity {
  if (capacity.cutRows !== null && capacity.cutRows <= rows) return capacity;
  return { ...capacity, cutRows: rows };
}

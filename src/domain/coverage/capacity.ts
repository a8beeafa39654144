// What pages of this source look like: in which order their rows come, and how much a page holds, and therefore which answers are surely
// whole. The only evidence is what the source returned in this sweep. Knows nothing of ranges or questions.

/** Adjacent pairs in which pages rose and fell. */
export interface Pairs {
  readonly rising: number;
  readonly falling: number;
}

export type Direction = 'ascending' | 'descending' | 'mixed';

/** Fewer pairs than these are chance, not order. */
export const fewestPairs = 10;

/** The order in which pages came, by three pairs in four. */
export function directionOf({ rising, falling }: Pairs): Direction {
  const pairs = rising + falling;
  if (rising * 4 > pairs * 3) return 'ascending';
  return falling * 4 > pairs * 3 ? 'descending' : 'mixed';
}

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

/** While nothing suggests that bytes end pages, an answer below this share of the largest body is whole: no byte cap is believed to lie near it. */
const evenShare = 0.6;

/**
 * What speaks for a short answer being whole. even: pages end at one number of rows, and no row is large. sorted: a list in the order of
 * ids leaves nothing out before its last row, and what follows is asked. small: pages end at different lengths, but no row is large.
 * none: a row that is too large for the rest of a page may hide anywhere, so only an empty answer is whole.
 */
export type Vouch = 'even' | 'sorted' | 'small' | 'none';

/** A row is large from this share of a page on. */
export const largeShare = 1 / 8;

/**
 * True when no byte cap can have cut the answer. Where pages end at different lengths, a byte cap may be what ends them: then the row that
 * was left out may be as large as the largest that was seen, or larger, and a quarter of the largest body is room enough for either.
 */
export function isShortByBytes(capacity: Capacity, bytes: number, largestRow: number, vouch: Vouch): boolean {
  if (vouch === 'even') return bytes < capacity.bytes * evenShare;
  if (vouch === 'sorted' && (bytes + largestRow) * 2 < capacity.bytes) return true;
  return bytes * 4 < capacity.bytes;
}

/**
 * True when a page has a fifth fewer rows than the longest, or as many more, in about as many bytes as the largest: bytes end pages here,
 * not only rows. The longest and the largest may be two pages; a wrong yes only makes the sweep more careful.
 */
export function isCutByBytes(capacity: Capacity, rows: number, bytes: number): boolean {
  const [fewer, more] = [Math.min(rows, capacity.rows), Math.max(rows, capacity.rows)];
  const isAlike = Math.min(bytes, capacity.bytes) >= Math.max(bytes, capacity.bytes) * 0.95;
  return more >= smallPage && fewer * 5 <= more * 4 && isAlike;
}

/** How many rows, and how many bytes of rows, a piece may be expected to hold so that its own answer will be short. */
export function pieceSize(capacity: Capacity, largestRow: number, vouch: Vouch): { rows: number; bytes: number } {
  const limit = rowLimit(capacity);
  if (capacity.rows === 0) return { rows: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  if (limit < smallPage || vouch === 'none') return { rows: 0, bytes: 0 };
  // With room for a larger row than was seen so far: a piece that is reopened costs more than a smaller piece.
  const sorted = Math.max(capacity.bytes / 2 - 1.25 * largestRow, capacity.bytes / 4);
  const bytes = vouch === 'even' ? capacity.bytes * evenShare : vouch === 'sorted' ? sorted : capacity.bytes / 4;
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

// Learns how the source builds pages: in which order rows come and how much a page holds. From that it decides which answers are certainly
// complete. The only evidence is what the source returned in this sweep. Does not know ranges or questions.

/** Adjacent pairs of rows in rising and in falling order. */
export interface Pairs {
  readonly rising: number;
  readonly falling: number;
}

/** Counts the adjacent pairs of values. */
export function countPairs(values: readonly (number | bigint)[]): Pairs {
  let [rising, falling] = [0, 0];
  for (const [index, value] of values.entries()) {
    const last = values[index - 1] ?? value;
    if (value > last) rising++;
    if (value < last) falling++;
  }
  return { rising, falling };
}

export type Direction = 'ascending' | 'descending' | 'mixed';

/** Fewer pairs than this may be in order by chance. */
export const fewestPairs = 10;

/** The order that more than three pairs in four have. */
export function directionOf({ rising, falling }: Pairs): Direction {
  const pairs = rising + falling;
  if (rising * 4 > pairs * 3) return 'ascending';
  return falling * 4 > pairs * 3 ? 'descending' : 'mixed';
}

/** The rows and bytes of an answer, or of a part of the list. */
export interface PageSize {
  readonly rows: number;
  readonly bytes: number;
}

/** How large answers of one shape have been: the most rows and the largest body returned. */
export interface Capacity extends PageSize {
  /** Fewest rows of an answer that proved to be cut off by a row cap; null while none is known. */
  readonly cutRows: number | null;
}

export const unknownCapacity: Capacity = { rows: 0, bytes: 0, cutRows: null };

/** Below this page size, row counts prove nothing, because a few rows are half a page. Then only an empty answer is complete. */
export const smallPage = 16;

/** Fewest rows at which an answer of this source was, or may have been, cut off. */
export function rowLimit({ rows, cutRows }: Capacity): number {
  return Math.min(cutRows ?? rows, rows);
}

/** True when no row cap can have cut the answer: it has less than half the rows of the smallest page that may have been cut off. */
export function isShortByRows(capacity: Capacity, rows: number): boolean {
  const limit = rowLimit(capacity);
  return limit >= smallPage && rows * 2 < limit;
}

/** While nothing suggests a byte cap, an answer below this share of the largest body is complete. */
const evenShare = 0.6;

/**
 * Why a short answer may count as complete. even: all pages end at the same number of rows, and no row is large. sorted: a list sorted by
 * id leaves nothing out before its last row, and the sweep asks for the rest. small: pages end at different lengths, but no row is large.
 * none: a row too large for the rest of a page may be missing anywhere, so only an empty answer is complete.
 */
export type Vouch = 'even' | 'sorted' | 'small' | 'none';

/** A row counts as large from this share of a page upwards. */
export const largeShare = 1 / 8;

/**
 * True when no byte cap can have cut the answer. Where pages end at different lengths, a byte cap may end them. Then the row that was left
 * out may be as large as the largest row seen, or larger. An answer below a quarter of the largest body leaves enough room for either.
 */
export function isShortByBytes(capacity: Capacity, bytes: number, largestRow: number, vouch: Vouch): boolean {
  if (vouch === 'even') return bytes < capacity.bytes * evenShare;
  if (vouch === 'sorted' && (bytes + largestRow) * 2 < capacity.bytes) return true;
  return bytes * 4 < capacity.bytes;
}

/**
 * True when the page and the longest page differ by a fifth in rows but hardly in bytes. Then a byte cap ends pages, not only a row cap.
 * The page with the most rows and the one with the most bytes may be two pages; a false positive only makes the sweep more careful.
 */
export function isCutByBytes(capacity: Capacity, { rows, bytes }: PageSize): boolean {
  const [fewer, more] = [Math.min(rows, capacity.rows), Math.max(rows, capacity.rows)];
  const isAlike = Math.min(bytes, capacity.bytes) >= Math.max(bytes, capacity.bytes) * 0.95;
  return more >= smallPage && fewer * 5 <= more * 4 && isAlike;
}

/** How many rows and bytes a piece may hold so that its answer will be short. */
export function pieceSize(capacity: Capacity, largestRow: number, vouch: Vouch): PageSize {
  const limit = rowLimit(capacity);
  if (capacity.rows === 0) return { rows: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  if (limit < smallPage || vouch === 'none') return { rows: 0, bytes: 0 };
  // Leaves room for a larger row than any seen so far: reopening a piece costs more than making it smaller.
  const sorted = Math.max(capacity.bytes / 2 - 1.25 * largestRow, capacity.bytes / 4);
  const bytes = vouch === 'even' ? capacity.bytes * evenShare : vouch === 'sorted' ? sorted : capacity.bytes / 4;
  return { rows: Math.ceil(limit / 2) - 1, bytes: bytes * 0.98 };
}

export function withAnswer(capacity: Capacity, { rows, bytes }: PageSize): Capacity {
  if (rows <= capacity.rows && bytes <= capacity.bytes) return capacity;
  return { ...capacity, rows: Math.max(capacity.rows, rows), bytes: Math.max(capacity.bytes, bytes) };
}

export function withCut(capacity: Capacity, rows: number): Capacity {
  if (capacity.cutRows !== null && capacity.cutRows <= rows) return capacity;
  return { ...capacity, cutRows: rows };
}

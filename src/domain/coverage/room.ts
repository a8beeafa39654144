// When an answer certainly shows everything that matches. The second assumption says: within one sweep, every page
// has room for at least half of the rows and three quarters of the bytes of any other, and no application fills a quarter of a page.
//
// Let the largest page of this sweep have R rows and S bytes, and let at most C rows and B bytes fit at the time of an answer.
//   By count: C >= R / 2, and a page that was cut off has C rows. So fewer than half of R rows were not cut off by count.
//   By bytes: B >= 3 S / 4. A page that ends before a row which does not fit has more than B - B / 4 >= 9 S / 16 bytes. (A source that ends a
//   page after the row that exceeds its limit may have S = 5 / 4 of the limit; it cuts off at 3 / 4 * 4 / 5 S, which is more.)
// A poll knows only the pages of an earlier sweep. It takes three eighths: the bytes may have fallen to half since.

import type { PageSize, Shape, ShapedPage } from './question.ts';
import type { Facts } from './state.ts';

type PageFacts = Pick<Facts, 'pages' | 'largestRow' | 'rigor'>;

/** Rows of the longest page. */
export function longestOf({ pages }: Pick<Facts, 'pages'>): number {
  return Math.max(pages.after.rows, pages.both.rows);
}

/** In shorter pages a few deleted or late rows are half of a page. A choice: it costs requests only. */
export const smallPage = 16;

/** Bytes below which an answer of this shape cannot have been cut off; 0 if none can tell. */
function byteLimit(facts: PageFacts, shape: Shape): number {
  const { rows, bytes } = facts.pages[shape];
  return rows < smallPage || facts.largestRow * 8 >= bytes ? 0 : bytes * (facts.rigor === 'poll' ? 3 / 8 : 9 / 16);
}

/** True if an answer of this size cannot have been cut off. */
export function hasRoom(facts: PageFacts, { rows, bytes, shape }: ShapedPage): boolean {
  return rows * 2 < facts.pages[shape].rows && bytes < byteLimit(facts, shape);
}

/** True if a page of elements without a readable id, or of bounds that came back, has room by the longest page of any shape. */
export function isFarFromFull({ pages }: Pick<Facts, 'pages'>, { rows, bytes }: PageSize): boolean {
  const mostBytes = Math.max(pages.after.bytes, pages.both.bytes);
  return rows * 2 < longestOf({ pages }) && bytes * 16 < mostBytes * 9;
}

/** How many rows a part may have so that its answer will have room, with two to spare for bounds that come back; 0 if none will have. */
export function partRows(facts: PageFacts, shape: Shape): number {
  const page = facts.pages[shape];
  const byRows = Math.ceil(page.rows / 2) - 3;
  // Rows differ in size. A part that turns out too large is only split again.
  const byBytes = Math.floor((byteLimit(facts, shape) * 0.96 * page.rows) / page.bytes) - 2;
  return Math.max(0, Math.min(byRows, byBytes));
}

// When an answer certainly shows everything that matches: rule R1 of docs/coverage.md derives half of the rows and 9/16 of the bytes from
// the second assumption. A poll knows only the pages of an earlier sweep. It takes three eighths: the bytes may have fallen to half since.

import type { PageSize, Shape, ShapedPage } from './question.ts';
import type { Facts } from './state.ts';

type PageFacts = Pick<Facts, 'pages' | 'largestRow' | 'rigor'>;

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

/** R1: true if an answer of this size cannot have been cut off. */
export function hasRoom(facts: PageFacts, { rows, bytes, shape }: ShapedPage): boolean {
  return rows * 2 < facts.pages[shape].rows && bytes < byteLimit(facts, shape);
}

/** R3: true if a page of elements without a readable id, or of bounds that came back, has room by the longest page of any shape. */
export function isFarFromFull({ pages }: Pick<Facts, 'pages'>, { rows, bytes }: PageSize): boolean {
  const mostBytes = Math.max(pages.after.bytes, pages.both.bytes);
  return rows * 2 < longestOf({ pages }) && bytes * 16 < mostBytes * 9;
}

/** How many rows a part may have so that its answer will have room, with two to spare for bounds that come back; 0 if none will have. */
export function partRows(facts: PageFacts, shape: Shape): number {
  const page = facts.pages[shape];
  const byRows = Math.ceil(page.rows / 2) - 3;
  // Rows differ in size: 4 % to spare, a choice. A part that turns out too large is only split again.
  const byBytes = Math.floor((byteLimit(facts, shape) * 0.96 * page.rows) / page.bytes) - 2;
  return Math.max(0, Math.min(byRows, byBytes));
}

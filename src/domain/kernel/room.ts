// When an answer certainly shows everything that matches. The second assumption says: what fits into a page, by count or by bytes, does not
// shrink below half within one sweep, and no application fills an eighth of it.
//
// Let a page hold at most C rows and B bytes, and let the largest page of this sweep have R rows and S bytes. Then C >= R / 2 and
// B >= S / 2 at any time of the sweep (if the source ends a page after the row that exceeds its bytes, S may exceed B by an eighth).
//   By count: a page that was cut off has C >= R / 2 rows. So fewer than half of R rows were not cut off by count.
//   By bytes: a page that was cut off lacks room for one more row, which is below S / 8. So it has more than S / 2 - S / 8 bytes: three
//   eighths of S. A poll takes this limit. It would cost a proof more than 2.5 questions per page, so a proof takes nine sixteenths, which
//   follows if the bytes of a page do not fall below eleven sixteenths within the sweep. The second reading and the witnesses cover a
//   deeper fall by likelihood only.

import type { PageSize, Shape } from './question.ts';
import type { Facts } from './state.ts';

type PageFacts = Pick<Facts, 'pages' | 'largestRow' | 'rigor'>;

/** The largest page of a shape. A page with one bound, whichever it is, is a page of the same size. */
function pageOf({ pages }: Pick<Facts, 'pages'>, shape: Shape): PageSize {
  return shape === 'both' ? pages.both : pages.after;
}

/** Rows of the longest page. */
export function longestOf({ pages }: Pick<Facts, 'pages'>): number {
  return Math.max(pages.after.rows, pages.both.rows);
}

/** In shorter pages a few deleted or late rows are half of a page. A choice: it costs requests only. */
export const smallPage = 16;

/** Bytes below which an answer of this shape cannot have been cut off; 0 if none can tell. */
function byteLimit(facts: PageFacts, shape: Shape): number {
  const { rows, bytes } = pageOf(facts, shape);
  return rows < smallPage || facts.largestRow * 8 >= bytes ? 0 : bytes * (facts.rigor === 'poll' ? 3 / 8 : 9 / 16);
}

/** True if an answer of this size cannot have been cut off. */
export function hasRoom(facts: PageFacts, shape: Shape, { rows, bytes }: PageSize): boolean {
  return rows * 2 < pageOf(facts, shape).rows && bytes < byteLimit(facts, shape);
}

/** How many rows a part may have so that its answer will have room, with two to spare for bounds that come back; 0 if none will have. */
export function partRows(facts: PageFacts, shape: Shape): number {
  const page = pageOf(facts, shape);
  const byRows = Math.ceil(page.rows / 2) - 3;
  // Rows differ in size. A part that turns out too large is only split again.
  const byBytes = Math.floor((byteLimit(facts, shape) * 0.96 * page.rows) / page.bytes) - 2;
  return Math.max(0, Math.min(byRows, byBytes));
}

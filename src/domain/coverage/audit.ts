// A random audit: the questions about one place of the list, and the stored ids that the answers should show. The worker runs audits
// between sweeps. Does not know how a place is chosen or what follows from a contradiction.

import { isShortByBytes, largeShare, type PageSize } from './capacity.ts';
import { aloneQuestion } from './next-question.ts';
import type { Question } from './question.ts';
import type { KnownCapacity } from './sweep-state.ts';

/** A few neighbouring stored ids at a random place, and the ids on either side of them. */
export interface AuditPlace {
  readonly ids: readonly bigint[];
  readonly after: bigint;
  readonly before: bigint;
}

/** An audit asks for this share of a page, so that its answer is not cut off. */
const shareOfPage = 1 / 3;

/** Stored ids that one audit asks alone. If more are missing, a page was cut off or the source deletes: the next recheck finds out. */
const mostAlone = 3;

/** How many neighbouring ids make a place, given the page size that a sweep has seen. */
export function auditSize(pageSize: number): number {
  return Math.max(1, Math.min(200, Math.floor(pageSize * shareOfPage)));
}

/** Asks for the place with both bounds, and with the lower bound alone. The bounds are at random between the place and its neighbours. */
export function auditQuestions(place: AuditPlace, random: () => number): { both: Question; lower: Question } {
  const within = (low: bigint, high: bigint) => low + BigInt(Math.floor(random() * Number(high - low + 1n)));
  const from = within(place.after + 1n, place.ids[0] as bigint);
  const upper = within(place.ids.at(-1) as bigint, place.before - 1n);
  // In a proof, a question for a single id means that the answer before it left that id out (docs/proof-format.md). That is not so here.
  const to = upper === from ? from + 1n : upper;
  const both: Question = { axis: 'id', purpose: 'witness', from, to, after: from - 1n, before: to + 1n, since: null };
  return { both, lower: { ...both, before: null, to: null } };
}

/** A question for each stored id that the answer with both bounds lacks; none where the page may have been cut off. */
export function lackingQuestions(
  place: AuditPlace,
  page: { readonly ids: readonly bigint[]; readonly bytes: number },
  capacity: KnownCapacity,
): Question[] {
  if (mayBeCutOff({ rows: page.ids.length, bytes: page.bytes }, capacity)) return [];
  const shown = new Set(page.ids);
  const lacking = place.ids.filter((id) => !shown.has(id));
  return lacking.slice(0, mostAlone).map(aloneQuestion);
}

/** True unless the page is short, by rows and by bytes, compared with the pages that sweeps have seen. */
function mayBeCutOff(page: PageSize, { count, bytes, largestRow, uneven }: KnownCapacity): boolean {
  if (page.rows * 2 >= count || largestRow >= bytes * largeShare) return true;
  return !isShortByBytes({ rows: count, bytes, cutRows: null }, page.bytes, largestRow, uneven ? 'small' : 'even');
}

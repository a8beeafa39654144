// A random audit: the questions about one place of the list. The worker runs audits between sweeps. They can only contradict a certificate.

import { type IdRange, lastPosition, nearestPosition, type Position } from './position.ts';
import type { Question } from './question.ts';
import { hasRoom } from './room.ts';
import type { KnownPages } from './state.ts';
import { from, within } from './witness.ts';

/** A few neighbouring stored ids at a random place, and the free positions around them, up to the next stored ids. */
export interface AuditPlace extends IdRange {
  readonly ids: readonly Position[];
}

/** Stored ids that one audit asks alone. If more are lacking, a page was cut off or the source deletes: the next recheck finds out. */
const mostAlone = 3;

/** An audit asks for a third of a page, so that its answer is not cut off. */
export function auditSize(pages: KnownPages | null): number {
  return Math.max(1, Math.min(200, Math.floor((pages?.both.rows ?? 0) / 3)));
}

/** Asks for the place with both bounds, and with the lower bound alone. The bounds are at random between the place and its neighbours. */
export function auditQuestions(place: AuditPlace, random: () => number): readonly [Question, Question] {
  const between = (low: bigint, high: bigint) =>
    nearestPosition(low + BigInt(Math.floor(random() * Number(high - low + 1n))));
  const lower = between(place.from, place.ids[0] as Position);
  const upper = between(place.ids.at(-1) as Position, place.to);
  return [within({ from: lower, to: upper }), from({ from: lower, to: lastPosition })];
}

/** Stored ids that the answer with both bounds lacks, to be asked alone; none where the page may have been cut off. */
export function lackingIds(
  place: AuditPlace,
  page: { readonly ids: readonly bigint[]; readonly bytes: number },
  known: KnownPages | null,
): Position[] {
  const facts = known && { pages: known, largestRow: known.largestRow, rigor: 'poll' as const };
  if (facts === null || !hasRoom(facts, { rows: page.ids.length, bytes: page.bytes, shape: 'both' })) return [];
  const shown = new Set(page.ids);
  return place.ids.filter((id) => !shown.has(id)).slice(0, mostAlone);
}

// A random audit: what is asked at one place of the list, and which stored ids its answer should have shown. The worker asks it between
// sweeps. Knows neither how a place is found nor what follows from a contradiction.

import { aloneQuestion } from './next-question.ts';
import type { Question } from './question.ts';

/** A few neighbouring stored ids at a random place, and the ids on either side of them. */
export interface AuditPlace {
  readonly ids: readonly bigint[];
  readonly after: bigint;
  readonly before: bigint;
}

/** An audit asks for this share of a page, so that its answer is not cut off. */
const shareOfPage = 1 / 3;

/** Stored ids that one audit asks alone. More at once are a page that was cut off, or a source that deletes: the next recheck tells. */
const mostAlone = 3;

/** How many neighbouring ids make a place, by the page size that a sweep has seen. */
export function auditSize(pageSize: number): number {
  return Math.max(1, Math.min(200, Math.floor(pageSize * shareOfPage)));
}

/** The place with both bounds, and with the lower one alone. The bounds lie at random positions, not at ids. */
export function auditQuestions(place: AuditPlace, random: () => number): { both: Question; lower: Question } {
  const within = (low: bigint, high: bigint) => low + BigInt(Math.floor(random() * Number(high - low + 1n)));
  const from = within(place.after + 1n, place.ids[0] as bigint);
  const upper = within(place.ids.at(-1) as bigint, place.before - 1n);
  // A question for one id alone says that the answer before it left that id out (docs/proof-format.md); this one says nothing of the kind.
  const to = upper === from ? from + 1n : upper;
  const both: Question = { axis: 'id', purpose: 'witness', from, to, after: from - 1n, before: to + 1n, since: null };
  return { both, lower: { ...both, before: null, to: null } };
}

/** Stored ids that the answer with both bounds lacks, each to be asked alone; none where the page may have been cut off. */
export function lackingQuestions(place: AuditPlace, shown: ReadonlySet<bigint>, pageSize: number): Question[] {
  if (shown.size * 2 >= pageSize) return [];
  const lacking = place.ids.filter((id) => !shown.has(id));
  return lacking.slice(0, mostAlone).map(aloneQuestion);
}

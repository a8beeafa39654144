// The one rule for stored ids that an answer does not show: every id that was stored before the question was sent, lies in the asked range
// and is not in the answer. Ids that this sweep stored count like all others. The store computes it in SQL (store/applications/diff-page.ts); a
// test holds the SQL against this function on random pages, and the simulation uses this function.

import type { ListedRow, Question, UnshownId } from './question.ts';

/** A stored id, and when the source first showed it. Erased ids are left out. */
export interface Held {
  readonly id: bigint;
  /** By the same clock as the times below. */
  readonly firstSeenAt: number;
  /** Since when it is known to be gone at the source, or null. */
  readonly missingSince: number | null;
}

/** Which ids an answer is expected to show, and how many of those that it lacks are worth knowing. */
export interface ExpectedIds {
  readonly low: bigint;
  /** Null is no end. */
  readonly high: bigint | null;
  readonly limit: number;
  /** Report the highest of these ids instead of the lowest. */
  readonly fromTop: boolean;
}

/** Where a question expects ids to come back; null when it speaks of no range of ids. */
export function toExpectedIds(question: Question, heldBefore: number): ExpectedIds | null {
  if (question.axis === 'date' || question.from === null || question.purpose === 'alone') return null;
  const fromTop = question.purpose === 'walk' && question.after === null;
  return { low: question.from, high: question.to, limit: mostUnshown(heldBefore), fromTop };
}

/**
 * Stored ids that the answer should have shown: stored before the question was sent, in the asked range, not among the rows. No sweep looks
 * for ids that were gone before it began. One that another sweep has found gone since is looked for: otherwise the proof of this sweep
 * would say nothing of an application that was stored when it began.
 */
export function findUnshown(
  asked: ExpectedIds,
  rows: readonly Pick<ListedRow, 'id'>[],
  held: Iterable<Held>,
  times: { readonly sentAt: number; readonly sweepStartedAt: number },
): UnshownId[] {
  const shown = new Set(rows.map((row) => row.id));
  const unshown: UnshownId[] = [];
  for (const { id, firstSeenAt, missingSince } of held) {
    if (id < asked.low || (asked.high !== null && id > asked.high)) continue;
    if (firstSeenAt > times.sentAt || shown.has(id)) continue;
    if (missingSince !== null && missingSince < times.sweepStartedAt) continue;
    unshown.push({ id, old: firstSeenAt < times.sweepStartedAt });
  }
  unshown.sort((a, b) => (a.id < b.id === asked.fromTop ? 1 : -1));
  return unshown.slice(0, asked.limit);
}

/** Most ids that one sweep may find gone at the source before it believes the source no more. */
export function absentLimit(heldBefore: number): number {
  return Math.max(20, Math.floor(heldBefore * 0.02));
}

/** Enough unshown ids to tell deleted applications from a page that was cut off. */
function mostUnshown(heldBefore: number): number {
  return Math.max(64, absentLimit(heldBefore) + 1);
}

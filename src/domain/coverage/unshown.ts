// The one rule for unshown ids: every id that was stored before the question was sent, lies in the range of the question and is not in the
// answer. Ids that this sweep stored count like all others. The store computes the rule in SQL (store/applications/diff-page.ts). A test
// compares the SQL with this function on random pages, and the simulation uses this function.

import type { ListedRow, Question, UnshownId } from './question.ts';

/** A stored id, and when the source first showed it. Erased ids are left out. */
export interface Held {
  readonly id: bigint;
  /** By the same clock as the times below. */
  readonly firstSeenAt: number;
  /** Since when it is known to be gone at the source, or null. */
  readonly missingSince: number | null;
}

/** The ids that an answer is expected to show, and how many unshown ids to report. */
export interface ExpectedIds {
  readonly low: bigint;
  /** Null is no end. */
  readonly high: bigint | null;
  readonly limit: number;
  /** Report the highest of these ids instead of the lowest. */
  readonly fromTop: boolean;
}

/** The ids that a question expects; null when it covers no range of ids. */
export function toExpectedIds(question: Question, listedBefore: number): ExpectedIds | null {
  if (question.axis === 'date' || question.from === null || question.purpose === 'alone') return null;
  const fromTop = question.purpose === 'walk' && question.after === null;
  return { low: question.from, high: question.to, limit: mostUnshown(listedBefore), fromTop };
}

/**
 * Stored ids that the answer should have shown: stored before the question was sent, in its range, and not among the rows. Ids that were
 * missing before the sweep began are left out. Ids that another sweep marked missing since then are included: otherwise the proof of this
 * sweep would not mention an application that was stored when the sweep began.
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

/** Most ids that one sweep may find deleted at the source. Beyond that the sweep no longer trusts the source. */
export function absentLimit(listedBefore: number): number {
  return Math.max(20, Math.floor(listedBefore * 0.02));
}

/** Enough unshown ids to tell deleted applications from a page that was cut off. */
function mostUnshown(listedBefore: number): number {
  return Math.max(64, absentLimit(listedBefore) + 1);
}

// Unshown ids: every id that was stored before the question was sent, lies in the range of the question and is not in the answer. Ids that
// this sweep stored count like all others. Ids that were missing before the sweep began are left out. Ids that another sweep marked missing
// since then are included: otherwise the proof of this sweep would not mention an application that was stored when the sweep began.
// The store finds the ids (store/applications/diff-page.ts).

import type { Question } from './question.ts';
import type { Covered } from './range.ts';

/** The ids that an answer is expected to show, and how many unshown ids to report. */
export interface ExpectedIds extends Covered {
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

/** Most ids that one sweep may find deleted at the source. Beyond that the sweep no longer trusts the source. */
export function absentLimit(listedBefore: number): number {
  return Math.max(20, Math.floor(listedBefore * 0.02));
}

/** Enough unshown ids to tell deleted applications from a page that was cut off. */
function mostUnshown(listedBefore: number): number {
  return Math.max(64, absentLimit(listedBefore) + 1);
}

// What becomes of a download that failed: when it is tried again, whether the try counts against it, and when it is given up.
// Pure; the caller knows the clock, the queue and what else it heard of the source.

import type { AttachmentState } from './application.ts';
import { type BackoffRange, backoff, backoffCeiling } from './backoff.ts';
import type { Trouble } from './trouble.ts';

/** What to do with a failed download. */
export type Verdict =
  | { readonly kind: 'retry'; readonly delayMs: number; readonly spend: boolean }
  /** Not this download's fault: it goes back unspent, and nothing is claimed (of this account, or at all) for a while. */
  | { readonly kind: 'pause'; readonly scope: 'account' | 'all'; readonly delayMs: number }
  /** The account rests until its cause is gone. */
  | { readonly kind: 'halt' }
  | { readonly kind: 'complete'; readonly state: FinalState; readonly reason: string };

export type FinalState = Extract<AttachmentState, 'infected' | 'missing' | 'rejected' | 'given_up'>;

/**
 * What became of the account's other requests, or of other files at the storage. served: what fails is this file, not the source or the
 * storage. failing: nothing is served, or nothing is known. refused: the list is refused too, so it is the credential.
 */
export type Others = 'served' | 'failing' | 'refused';

export interface FailedAttempt {
  readonly trouble: Trouble;
  /** Whose trouble it is: the source's, or that of our storage, disk or database. */
  readonly at: 'source' | 'storage';
  /** This one included. */
  readonly attempts: number;
  readonly others: Others;
  /** From 0 to 1. */
  readonly random: number;
}

/** Tries that a file gets from a source which serves others. */
export const mostAttempts = 8;
/** Lapses of a claim on a file that was fetched alone. */
export const mostLapses = 3;
const hourMs = 3_600_000;
const delays: BackoffRange = { baseMs: 5_000, maxMs: 6 * hourMs, factor: 4 };
const dayMs = 24 * hourMs;
/** A file that is not there yet: tries over a day. */
const missingDelaysMs = [60_000, 600_000, hourMs, 4 * hourMs, 8 * hourMs, 11 * hourMs];

/** True where the failure alone does not tell whether the file or the whole source is at fault: `others` decides. */
export function dependsOnOthers({ trouble, at }: Pick<FailedAttempt, 'trouble' | 'at'>): boolean {
  return at === 'source' && ['refused', 'unreachable', 'malformed'].includes(trouble.kind);
}

/** The one verdict on every failure. */
export function toVerdict(failed: FailedAttempt): Verdict {
  const { trouble, at, attempts, others, random } = failed;
  if (at === 'storage' && trouble.kind !== 'mismatch') {
    return others === 'served' ? toRetry(failed, true) : toPause('all', trouble, random);
  }
  switch (trouble.kind) {
    case 'local':
      return toPause('all', trouble, random);
    case 'throttled':
      return others === 'served' ? toPostponed(failed) : toPause('account', trouble, random);
    case 'missing':
      return toMissing(trouble, attempts, random);
    case 'mismatch':
      return toRetry(failed, true);
    case 'refused':
    case 'unreachable':
    case 'malformed':
      // An outage spends nobody's tries, and a refused credential halts its account.
      return others === 'refused' ? { kind: 'halt' } : toRetry(failed, others === 'served');
  }
}

/**
 * The longest that a download may wait, in milliseconds, by the attempts that are noted for it (this one may be among them or not): for a
 * file that is not there yet, and for any other that fails.
 */
export const longestWaitsMs = {
  missing: missingDelaysMs.map((delayMs) => 1.1 * delayMs),
  other: Array.from({ length: mostAttempts + 1 }, (_, attempts) => backoffCeiling(attempts + 1, delays)),
};

function toRetry({ trouble, attempts, random }: FailedAttempt, spend: boolean): Verdict {
  if (spend && attempts >= mostAttempts) {
    return { kind: 'complete', state: 'given_up', reason: `${trouble.message} Tried ${attempts} times.` };
  }
  return { kind: 'retry', delayMs: Math.round(backoff(attempts, delays, random)), spend };
}

/** The source asked for fewer requests because of this file alone: only the file waits, for at least as long as it asked. */
function toPostponed(failed: FailedAttempt): Verdict {
  const verdict = toRetry(failed, true);
  if (verdict.kind !== 'retry') return verdict;
  return { ...verdict, delayMs: Math.max(verdict.delayMs, toPauseMs(failed.trouble, failed.random)) };
}

function toMissing(trouble: Trouble, attempts: number, random: number): Verdict {
  const delayMs = missingDelaysMs[attempts - 1];
  if (trouble.status === 410 || delayMs === undefined)
    return { kind: 'complete', state: 'missing', reason: trouble.message };
  // The tries must cover a day, so the jitter is a fifth.
  return { kind: 'retry', delayMs: Math.round(delayMs * (0.9 + 0.2 * random)), spend: true };
}

function toPause(scope: 'account' | 'all', trouble: Trouble, random: number): Verdict {
  return { kind: 'pause', scope, delayMs: toPauseMs(trouble, random) };
}

function toPauseMs({ retryAfterMs }: Trouble, random: number): number {
  const delayMs = retryAfterMs === undefined ? 1_000 + 1_000 * random : Math.min(dayMs, Math.max(1_000, retryAfterMs));
  return Math.round(delayMs);
}

// Decides whether a file is downloaded at all, by its Hash, and what happens to a failed download: when it is retried, whether the attempt
// counts, and when it is given up.
// A failure alone does not tell whether the file or the whole source is at fault. `missing` and `mismatch` always count. Other failures at
// the source count if the list was read since the attempt before, those at our storage if another file was put since. During an outage
// neither happens, so no attempt counts, however long it lasts; a refused credential halts the account where the list is read.

import type { AttachmentState } from './application.ts';
import { type BackoffRange, backoff, type Trouble } from './trouble.ts';

export type Verdict =
  | { readonly kind: 'retry'; readonly delayMs: number; readonly countsAttempt: boolean }
  /** Not this download's fault: the attempt does not count, and nothing is claimed (for this account, or for all) for a while. */
  | { readonly kind: 'pause'; readonly scope: 'account' | 'all'; readonly delayMs: number }
  | { readonly kind: 'complete'; readonly state: FinalState; readonly reason: string };

export type FinalState = Extract<AttachmentState, 'infected' | 'missing' | 'rejected' | 'given_up'>;

export interface FailedAttempt {
  readonly trouble: Trouble;
  /** Where it failed: at the source, or at our storage, disk or database. */
  readonly at: 'source' | 'storage';
  /** Including this one. */
  readonly attempts: number;
  /** Since the attempt before, the list was read, or other files were put. */
  readonly isOwn: boolean;
  /** From 0 to 1. */
  readonly random: number;
}

export const mostAttempts = 8;
/** A file that was in hand when its process ended is fetched alone. It is given up if the process ends again. */
export const mostLapses = 1;
const hourMs = 3_600_000;
/** The last attempt comes after a day: a source may serve its list and no file for hours. */
const delays: BackoffRange = { baseMs: 5_000, maxMs: 24 * hourMs, factor: 4 };
/** For a file that the source does not have yet: attempts spread over a day. */
const missingDelaysMs = [60_000, 600_000, hourMs, 4 * hourMs, 8 * hourMs, 11 * hourMs];

/** True of a failure at the source that may be about this file or about all requests. */
export function isAmbiguous({ kind }: Pick<Trouble, 'kind'>): boolean {
  return kind === 'refused' || kind === 'unreachable' || kind === 'malformed';
}

export function toVerdict({ trouble, at, attempts, isOwn, random }: FailedAttempt): Verdict {
  const { kind, status, message } = trouble;
  const pauseMs = Math.round(Math.max(1_000, trouble.retryAfterMs ?? 1_000 + 1_000 * random));
  const pause = (scope: 'account' | 'all'): Verdict => ({ kind: 'pause', scope, delayMs: pauseMs });
  const retry = (countsAttempt: boolean, leastMs = 0): Verdict => {
    if (countsAttempt && attempts >= mostAttempts)
      return { kind: 'complete', state: 'given_up', reason: `${message} Tried ${attempts} times.` };
    return { kind: 'retry', delayMs: Math.max(leastMs, Math.round(backoff(attempts, delays, random))), countsAttempt };
  };
  if (at === 'storage' && kind !== 'mismatch') return isOwn ? retry(true) : pause('all');
  if (kind === 'local') return pause('all');
  // The source throttles only this file, so only this file waits. Without a status no request was sent: an earlier Retry-After applies.
  if (kind === 'throttled') return isOwn && status !== undefined ? retry(true, pauseMs) : pause('account');
  if (kind !== 'missing') return retry(isOwn || kind === 'mismatch');
  const delayMs = missingDelaysMs[attempts - 1];
  if (status === 410 || delayMs === undefined) return { kind: 'complete', state: 'missing', reason: message };
  // The attempts must cover a day, so the jitter is only 10 % in each direction.
  return { kind: 'retry', delayMs: Math.round(delayMs * (0.9 + 0.2 * random)), countsAttempt: true };
}

// How far Intake trusts the source's Hash. The spec names no algorithm, and nothing guarantees that equal hashes mean equal bytes. So Hash
// is an opaque hint: it saves downloads once it has earned trust, and one contradiction ends the trust.

/** The setting SOURCE_HASH: trust is earned, always given, or never given. */
export type HashSetting = 'learn' | 'always' | 'never';

export interface HashTrust {
  /** Pairs of files with equal Hash and Size whose bytes were compared and are equal. */
  readonly agreed: number;
  readonly contradicted: boolean;
}

/** Pairs that are downloaded and compared before the first download is skipped. */
const pairsToTrust = 20;
/** After that, one pair in this many is still compared. */
const comparedOneIn = 20;
/** After this many changes of Hash without a change of bytes, a new Hash no longer counts as a changed file. */
export const mostUnchanged = 3;

/** What to do with a file whose Hash and Size equal those of a stored file: fetch, fetch and compare, or link without a request. */
export function toHashUse(setting: HashSetting, trust: HashTrust, random: number): 'fetch' | 'compare' | 'link' {
  if (setting === 'never') return 'fetch';
  if (setting === 'always') return 'link';
  if (trust.contradicted) return 'fetch';
  return trust.agreed < pairsToTrust || random < 1 / comparedOneIn ? 'compare' : 'link';
}

// Handles the failure of a download: finds out whether the file or the whole source is at fault, and applies the verdict.
import { isAttachmentKind } from '../../domain/application.ts';
import { type Others, toVerdict } from '../../domain/download-verdict.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { CompletedState } from '../../store/files/complete-download.ts';
import type { Claim } from '../../store/files/download-queue.ts';
import type { Store } from '../../store/store.ts';
import { type FetchDeps, fetchFile } from './fetch.ts';

/** A download that failed, and where. */
export interface FailedDownload {
  readonly claim: Claim;
  readonly at: 'source' | 'storage';
  readonly trouble: Trouble;
}

/** The state of an account in this run. */
export interface Standing {
  /** Failures in a row. */
  streak: number;
  /** Failures that count against their files only if the account's other requests are served. Their claims are still held. */
  undecided: FailedDownload[];
  /** A probe for the undecided failures is in flight. */
  isAsking: boolean;
  /** No download of the account is claimed before this time, on the `performance.now` clock. */
  pausedUntil: number;
  /** The source has served the account and has not throttled it since. */
  isServed: boolean;
  /** The queue of files that were throttled before and are fetched one after the other. */
  line: Promise<void>;
}

/** After this many failures in a row a served list no longer shows that files are served; only a served file does. */
export const outageStreak = 8;
export const outagePauseMs = 5_000;

/** Commits the failure of one download. Returns its state if that completes it, and `pause` if the whole run has to pause. */
export async function failDownload(
  store: Pick<Store, 'downloads'>,
  { claim, at, ...failed }: FailedDownload,
  others: Others,
  standing: Standing,
): Promise<CompletedState | 'pause' | null> {
  const trouble = others === 'served' && at === 'source' ? toFileTrouble(failed.trouble) : failed.trouble;
  const { message } = trouble;
  // A storage failure is recorded as `local`, whatever kind the storage reports.
  const kind = at === 'storage' && trouble.kind !== 'mismatch' ? 'local' : trouble.kind;
  const verdict = toVerdict({ trouble, at, attempts: claim.attempts, others, random: Math.random() });
  if (verdict.kind === 'complete') {
    const { state, reason } = verdict;
    return await store.downloads.complete(claim, { kind: 'final', state, reason });
  }
  const { delayMs, spend } = { delayMs: 0, spend: false, ...verdict };
  await store.downloads.postpone(claim, { delayMs, spend, trouble: { kind, message } });
  if (verdict.kind !== 'pause') return null;
  if (verdict.scope === 'all') return 'pause';
  standing.pausedUntil = performance.now() + delayMs;
  return null;
}

/** A refusal usually concerns the credential, and a Retry-After all requests. If other requests are served, both concern only this file. */
function toFileTrouble(trouble: Trouble): Trouble {
  const { status, retryAfterMs } = trouble;
  if (status === undefined) return trouble;
  if (trouble.kind === 'throttled') {
    const message = `The source throttles this file (${status}) and serves others.`;
    return new Trouble('throttled', message, { status, retryAfterMs });
  }
  if (trouble.kind !== 'refused') return trouble;
  return new Trouble('refused', `The source refuses this file (${status}) and accepts the credential.`, { status });
}

/** Whether the source serves the account. `trouble` is the reason why a probe was refused or failed. */
export type SourceProbe =
  | { readonly others: 'served' }
  | { readonly others: 'failing'; readonly trouble?: Trouble }
  | { readonly others: 'refused'; readonly trouble: Trouble };

/**
 * Requests the list, then a file that is already stored. A served list proves that the credential is valid; a served file proves that
 * files are served. An account without a stored file has only its list, which is not enough once many files have failed.
 */
export async function probeSource(
  deps: FetchDeps & { readonly store: Pick<Store, 'downloads'> },
  { advertiserId, streak }: { readonly advertiserId: bigint } & Pick<Standing, 'streak'>,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<SourceProbe> {
  const { newestId, stored } = await deps.store.downloads.loadProbe(advertiserId);
  try {
    await deps.source.list(newestId === null ? {} : { afterId: newestId }, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Trouble)) throw error;
    return { others: error.kind === 'refused' ? 'refused' : 'failing', trouble: error };
  }
  if (stored === null || !isAttachmentKind(stored.kind)) {
    return { others: streak < outageStreak ? 'served' : 'failing' };
  }
  try {
    const { applicationId, kind, sizeBytes } = stored;
    const fetched = await fetchFile(deps, { applicationId, kind, sizeBytes, maxBytes, signal });
    if (fetched !== 'tooLarge') await fetched[Symbol.asyncDispose]();
    return { others: 'served' };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Trouble)) throw error;
    // The source may have deleted the file since. It still answered a request for a file, so files are served.
    return error.kind === 'missing' ? { others: 'served' } : { others: 'failing', trouble: error };
  }
}

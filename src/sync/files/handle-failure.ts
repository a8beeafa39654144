// Commits the failure of one download: gives it back to the queue, or ends it.
import { toVerdict, type Verdict } from '../../domain/download-verdict.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { CompletedState } from '../../store/files/complete-download.ts';
import type { Claim } from '../../store/files/download-queue.ts';
import type { Store } from '../../store/store.ts';

/** A download that failed, and where. */
export interface FailedDownload {
  readonly claim: Claim;
  readonly at: 'source' | 'storage';
  readonly trouble: Trouble;
}

/** The verdict; of a download that ended, also what was written. */
export type CommittedVerdict =
  | Exclude<Verdict, { readonly kind: 'complete' }>
  | (Extract<Verdict, { readonly kind: 'complete' }> & { readonly written: CompletedState });

/** Commits a failure. `isOwn`: others were served since the attempt before, so that this one is the file's own. */
export async function failDownload(
  store: Pick<Store, 'downloads'>,
  { claim, at, ...failed }: FailedDownload,
  isOwn: boolean,
): Promise<CommittedVerdict> {
  const trouble = isOwn && at === 'source' ? toFileTrouble(failed.trouble) : failed.trouble;
  const { attempts, wasThrottled } = claim;
  const verdict = toVerdict({ trouble, at, attempts, isOwn, wasThrottled, random: Math.random() });
  if (verdict.kind === 'complete') {
    const { state, reason } = verdict;
    return { ...verdict, written: await store.downloads.complete(claim, { kind: 'final', state, reason }) };
  }
  // A storage failure is recorded as `local`, whatever kind the storage reports.
  const kind = at === 'storage' && trouble.kind !== 'mismatch' ? 'local' : trouble.kind;
  const spend = verdict.kind === 'retry' && verdict.spend;
  const { message } = trouble;
  // After a Retry-After the list comes first: it tells whether the next one is about this file.
  const isThrottled = verdict.kind === 'pause' && verdict.scope === 'account';
  const delayMs = verdict.delayMs + (isThrottled ? Math.max(listFirstMs, verdict.delayMs / 8) : 0);
  await store.downloads.postpone(claim, { delayMs, spend, trouble: { kind, message } });
  return verdict;
}

const listFirstMs = 1_000;

/** A refusal usually concerns the credential, and a Retry-After all requests. If the list is served, both concern only this file. */
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

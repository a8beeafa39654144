// Commits the failure of one download: gives it back to the queue, or ends it.
import { toVerdict, type Verdict } from '../../domain/download-verdict.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { CompletedState } from '../../store/files/complete-download.ts';
import type { Claim } from '../../store/files/download-queue.ts';
import type { Store } from '../../store/store.ts';

/** True of a trouble of our storage, disk or database, even during a fetch. Every other one is of the source. */
export function isOfStorage({ kind, at }: Trouble): boolean {
  return kind === 'local' || at === 'storage' || at === 'database';
}

/**
 * Commits a failure. `isOwn`: others were served since the attempt before, so that this one is the file's own. Returns the verdict and, of a
 * download that ended, the state that was written.
 */
export async function failDownload(
  store: Pick<Store, 'downloads'>,
  claim: Claim,
  failure: Trouble,
  isOwn: boolean,
): Promise<{ readonly verdict: Verdict; readonly state: CompletedState | null }> {
  const at = isOfStorage(failure) ? 'storage' : 'source';
  const trouble = isOwn && at === 'source' ? toFileTrouble(failure) : failure;
  const { attempts, wasThrottled } = claim;
  const verdict = toVerdict({ trouble, at, attempts, isOwn, wasThrottled, random: Math.random() });
  if (verdict.kind === 'complete') {
    const { state, reason } = verdict;
    return { verdict, state: await store.downloads.complete(claim, { kind: 'final', state, reason }) };
  }
  // A storage failure is recorded as `local`, whatever kind the storage reports.
  const kind = at === 'storage' && trouble.kind !== 'mismatch' ? 'local' : trouble.kind;
  const spend = verdict.kind === 'retry' && verdict.spend;
  // After a Retry-After the list comes first: it tells whether the next one is about this file.
  const isThrottled = verdict.kind === 'pause' && verdict.scope === 'account';
  const delayMs = verdict.delayMs + (isThrottled ? Math.max(listFirstMs, verdict.delayMs / 8) : 0);
  await store.downloads.postpone(claim, { delayMs, spend, trouble: { kind, message: trouble.message } });
  return { verdict, state: null };
}

const listFirstMs = 1_000;

/** A refusal usually concerns the credential, and a Retry-After all requests. If the list is served, both concern only this file. */
function toFileTrouble(trouble: Trouble): Trouble {
  const { kind, status, retryAfterMs } = trouble;
  if (status === undefined) return trouble;
  if (kind === 'throttled') {
    const message = `The source throttles this file (${status}) and serves others.`;
    return new Trouble(kind, message, { status, retryAfterMs });
  }
  if (kind !== 'refused') return trouble;
  return new Trouble(kind, `The source refuses this file (${status}) and accepts the credential.`, { status });
}

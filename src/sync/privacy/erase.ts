// Erases a person: deletes the rows at once, then the files. What was on its way meets the tombstones, or has lost its claim. The job is in
// the database, so the same command or any worker can finish an interrupted erasure.
import type { BlobStore } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { type ErasureJob, isBraked } from '../../domain/erasure.ts';
import { SettingTrouble, Trouble } from '../../domain/trouble.ts';
import type { ErasureRequest } from '../../store/privacy/erasure-jobs.ts';
import type { Store } from '../../store/store.ts';
import { deleteUnneeded } from '../files/delete-objects.ts';

/** Throws if another PRIVACY_KEY filled this database: no tombstone would match, and erased people return. False: none did. */
export async function requireKey(store: {
  readonly privacy: Pick<Store['privacy'], 'loadKeyState'>;
}): Promise<boolean> {
  const state = await store.privacy.loadKeyState();
  if (state !== 'differs') return state === 'matches';
  throw new SettingTrouble(
    'PRIVACY_KEY is not the key that this database was filled with: with another one erased people could return. ' +
      'Set the earlier key, or restore it from your secrets.',
  );
}

export interface EraseDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions' | 'erasures' | 'privacy'>;
  readonly blobs: BlobStore;
  /** Takes the people of a job out of extracts, and returns the kept versions; absent where a caller has no extracts to reach. */
  readonly eraseExtracts?: EraseExtracts | undefined;
  /** Called with a job before its files are deleted, and when it is closed. */
  readonly onStep?: ((job: ErasureJob) => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export type EraseExtracts = (job: ErasureJob, signal: AbortSignal, onStep: () => void) => Promise<number>;

/** Erases a person, and finishes interrupted requests with the same search; the receipts, also where nothing more was found. */
export async function erase(
  deps: EraseDeps,
  request: ErasureRequest & { readonly signal: AbortSignal },
): Promise<ErasureJob[]> {
  const { store } = deps;
  await requireKey(store);
  const begun = await store.erasures.begin(request);
  deps.crashPoint?.('erasureBegun');
  const open = await store.erasures.loadOpenErasures(request.advertiserId, request.sought);
  return await finishErasures(deps, begun === null ? open : [...open, begun], request.signal);
}

/** The receipts, also of jobs that another process has finished. A failed job stops no other; it is thrown at the end. */
export async function finishErasures(
  deps: EraseDeps,
  jobs: readonly ErasureJob[],
  signal: AbortSignal,
): Promise<ErasureJob[]> {
  const receipts: ErasureJob[] = [];
  let trouble: Trouble | undefined;
  for (const job of new Map(jobs.map((one) => [one.jobId, one])).values()) {
    try {
      receipts.push(await finishErasure(deps, job, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Trouble)) throw error;
      trouble ??= error;
    }
  }
  if (trouble) throw trouble;
  return receipts;
}

/** Deletes the files of a job and closes it. Several processes may do this at once, because it can be repeated. */
async function finishErasure(deps: EraseDeps, job: ErasureJob, signal: AbortSignal): Promise<ErasureJob> {
  const { store, blobs, eraseExtracts, onStep, crashPoint } = deps;
  onStep?.(job);
  if (job.closedAt !== null) return job;
  try {
    const { advertiserId } = job;
    const deleting = { store, blobs, onDeleted: () => crashPoint?.('erasureDeleted') };
    // Of forgotten bytes it is no longer known whose they are.
    const hashes = [...(job.hashes ?? []), ...(await store.blobs.loadForgotten(advertiserId))];
    const { needed, keptVersions } = await deleteUnneeded(deleting, advertiserId, hashes, signal);
    const keptInExtracts = (await eraseExtracts?.(job, signal, () => onStep?.(job))) ?? 0;
    const receipt = await store.erasures.closeErasure(job, {
      shared: needed,
      keptVersions: keptVersions + keptInExtracts,
    });
    crashPoint?.('erasureClosed');
    onStep?.(receipt);
    return receipt;
  } catch (error) {
    // The status shows the trouble from the first failure on. An unavailable database is reported elsewhere.
    if (error instanceof Trouble && error.at !== 'database') {
      await store.erasures.noteErasureTrouble(job, error.message).catch(() => {});
    }
    throw error;
  }
}

export interface RetentionRequest {
  readonly advertisers: readonly bigint[];
  /** Applications that were stored before this time are erased. */
  readonly before: Date;
  /** An operator has confirmed the erasure, so the brake does not apply. */
  readonly released: boolean;
  readonly by: string;
  readonly signal: AbortSignal;
}

/** Applications per transaction. It takes a fraction of a second, during which no page of the advertiser is written. */
const batchSize = 200;

/** Erases applications older than the retention period, unless implausibly many (`isBraked`). Files and receipts follow as always. */
export async function retain({ store, onStep }: Pick<EraseDeps, 'store' | 'onStep'>, request: RetentionRequest) {
  const { before, by, signal } = request;
  let [erased, braked] = [0, 0];
  for (const advertiserId of request.advertisers) {
    const { due, stored } = await store.erasures.countAged(advertiserId, before);
    const isHeldBack = !request.released && isBraked({ due, stored });
    await store.erasures.noteRetention(advertiserId, isHeldBack ? due : null);
    if (isHeldBack) braked += due;
    if (isHeldBack || due === 0) continue;
    await requireKey(store);
    const sought = { by: 'retention', before, limit: batchSize } as const;
    for (;;) {
      signal.throwIfAborted();
      const job = await store.erasures.begin({ advertiserId, sought, by });
      if (job === null) break;
      erased += job.counts.applications;
      onStep?.(job);
    }
  }
  return { erased, braked };
}

// Erasing a person: the rows at once, then the files, then a wait until everything that ran at the time has lapsed, then a second look.
// The job lies in the database: an interrupted erasure is finished by the same command, or by any worker.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { type ErasureJob, isBraked, type Sought } from '../../domain/erasure.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import { deleteUnneeded } from '../files/delete-objects.ts';
import { deleteLeavingResumes } from '../prefill.ts';
import { requireKey } from './privacy-key.ts';

export interface EraseDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions' | 'erasures' | 'prefills' | 'privacy'>;
  readonly blobs: BlobStore;
  /** Told when a step is reached, and every second of a wait. */
  readonly onStep?: ((job: ErasureJob) => void) | undefined;
  /** For tests that end the process at named moments. */
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface EraseRequest {
  readonly advertiserId: bigint;
  readonly sought: Sought;
  readonly by: string;
  readonly signal: AbortSignal;
}

/**
 * Erases and waits for the receipts: of this request, and of earlier ones of the same words that were interrupted. A request that finds
 * nothing has a receipt as well.
 */
export async function erase(deps: EraseDeps, request: EraseRequest): Promise<ErasureJob[]> {
  const { store } = deps;
  const { advertiserId, sought, signal } = request;
  await requireKey(store);
  const begun = await store.erasures.begin(request);
  deps.crashPoint?.('erasureBegun');
  const open = await store.erasures.loadOpen(advertiserId, sought);
  // The earlier job of the same words, which was open a moment ago, has its receipt by now: this request has one of its own.
  if (begun === null && open.length === 0 && sought.by !== 'retention') return await erase(deps, request);
  return await finishBegun(deps, begun === null ? [] : [begun], open, signal);
}

/** Finishes what is open and what was begun here: a worker may have finished one of the latter since, and its receipt is told as well. */
export async function finishBegun(
  deps: EraseDeps,
  begun: readonly ErasureJob[],
  open: readonly ErasureJob[],
  signal: AbortSignal,
): Promise<ErasureJob[]> {
  const known = new Set(open.map(({ jobId }) => jobId));
  const receipts: ErasureJob[] = [];
  for (const job of [...begun.filter(({ jobId }) => !known.has(jobId)), ...open]) {
    receipts.push(await finishErasure(deps, job, signal));
  }
  return receipts;
}

/** Goes on with a job to its receipt. Any number of processes may do it at once: every step can be repeated. */
async function finishErasure(deps: EraseDeps, job: ErasureJob, signal: AbortSignal): Promise<ErasureJob> {
  let current = job;
  while (current.step !== 'closed') {
    deps.onStep?.(current);
    current = await deleteFiles(deps, current, signal);
    deps.crashPoint?.('erasureWaiting');
    await untilQuiet(deps, current, signal);
    // What was on its way while the files were deleted the first time has arrived by now, and nothing can follow it.
    current = await deleteFiles(deps, current, signal);
    current = await deps.store.erasures.checkAgain(current);
    deps.crashPoint?.('erasureLooked');
  }
  deps.onStep?.(current);
  return current;
}

async function deleteFiles(deps: EraseDeps, job: ErasureJob, signal: AbortSignal): Promise<ErasureJob> {
  const { store, blobs } = deps;
  const onDeleted = () => deps.crashPoint?.('erasureDeleted');
  try {
    const { advertiserId } = job;
    const deleting = { store, blobs, onDeleted };
    const { needed, keptVersions } = await deleteUnneeded(deleting, advertiserId, job.hashes ?? [], signal);
    // Nobody can say any more whose these are.
    await deleteUnneeded(deleting, advertiserId, await store.blobs.loadForgotten(advertiserId), signal);
    const resumes = await deleteLeavingResumes({ store, blobs }, signal);
    // Whose resume is refused is not known, but whose is not: where the job has no prefill, it is somebody else's.
    const refused = job.counts.prefills > 0 && resumes.refused.find((resume) => resume.advertiserId === advertiserId);
    if (refused) throw refused.trouble;
    return await store.erasures.recordDeletedFiles(job, {
      shared: needed.length,
      keptVersions: keptVersions + resumes.keptVersions,
    });
  } catch (error) {
    // The status tells from the first failure on; a database that is away is told by others.
    if (error instanceof Trouble && error.at !== 'database') {
      await store.erasures.noteTrouble(job, error.message).catch(() => {});
    }
    throw error;
  }
}

async function untilQuiet({ onStep }: EraseDeps, job: ErasureJob, signal: AbortSignal): Promise<void> {
  const checkAgainAt = performance.now() + job.quietInMs;
  for (let leftMs = job.quietInMs; leftMs > 0; leftMs = checkAgainAt - performance.now()) {
    onStep?.({ ...job, quietInMs: leftMs });
    await sleep(Math.min(1_000, leftMs + 5), undefined, { signal });
  }
}

/** Finishes what was interrupted and has nothing left to wait for; gives the receipts. A job that fails keeps no other: it is thrown last. */
export async function finishErasures(
  deps: EraseDeps,
  request: { readonly advertisers: readonly bigint[]; readonly signal: AbortSignal },
): Promise<ErasureJob[]> {
  const receipts: ErasureJob[] = [];
  let trouble: Trouble | undefined;
  for (const advertiserId of request.advertisers) {
    for (const job of await deps.store.erasures.loadOpen(advertiserId)) {
      if (job.quietInMs > 0) continue;
      try {
        receipts.push(await finishErasure(deps, job, request.signal));
      } catch (error) {
        request.signal.throwIfAborted();
        if (!(error instanceof Trouble)) throw error;
        trouble ??= error;
      }
    }
  }
  if (trouble) throw trouble;
  return receipts;
}

export interface RetentionRequest {
  readonly advertisers: readonly bigint[];
  /** What was stored before this is erased. */
  readonly before: Date;
  /** A person said so: the brake lets everything through. */
  readonly released: boolean;
  readonly by: string;
  readonly signal: AbortSignal;
}

export interface RetentionSummary {
  readonly erased: number;
  /** Held back by the brake. */
  readonly braked: number;
}

/** So many applications in one transaction: a fraction of a second, in which no page of the advertiser is written. */
const batchSize = 200;

/** Erases what has come of age, unless that is more than the days passing explain. Files and receipts follow, as for any erasure. */
export async function retain(
  { store, onStep }: Pick<EraseDeps, 'store' | 'onStep'>,
  request: RetentionRequest,
): Promise<RetentionSummary> {
  const { before, by, signal } = request;
  let erased = 0;
  let braked = 0;
  for (const advertiserId of request.advertisers) {
    const { due, held } = await store.erasures.countAged(advertiserId, before);
    const isHeldBack = !request.released && isBraked({ due, held });
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

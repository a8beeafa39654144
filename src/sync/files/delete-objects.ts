// Deletes objects from the blob store: infected ones, orphans, and those of erased persons and lapsed prefills. Rows in the database decide
// what may be deleted and prevent a put of equal bytes meanwhile (store/files/blobs.ts).
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore, Deleted } from '../../domain/blob.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';

export interface DeletingDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions'>;
  readonly blobs: BlobStore;
  /** Called after the objects are deleted and before their rows are updated. */
  readonly onDeleted?: (() => void) | undefined;
  /** A monotonic clock, in milliseconds; `performance.now` by default. */
  readonly now?: (() => number) | undefined;
}

/** As many as are deleted in time, also where a request is slow and an object has versions. */
const mostAtOnce = 10;
const retryMs = 1_000;

/**
 * Deletes what is due, of every advertiser, and finishes interrupted deletes. Returns how many objects. One that the blob store does not
 * delete keeps its token for a while, and delays no other. The first trouble is thrown at the end, or as soon as the store has answered
 * nothing.
 */
export async function deleteDue(deps: DeletingDeps, signal: AbortSignal): Promise<number> {
  const { store, blobs, now = () => performance.now() } = deps;
  const tried = new Set<string>();
  let deleted = 0;
  let trouble: unknown;
  for (;;) {
    signal.throwIfAborted();
    const startedAt = now();
    const deletion = await store.deletions.beginDueDeletes(mostAtOnce);
    // What comes again was not deleted, and its token has expired meanwhile. It is left to the next run.
    if (deletion.blobs.every(({ key }) => tried.has(key))) break;
    for (const { key } of deletion.blobs) tried.add(key);
    const leftMs = startedAt + deletion.withinMs - now();
    const ends = await Promise.allSettled(
      deletion.blobs.map(async (blob) => ({ ...blob, ...(await deleteInTime(blobs, blob.key, leftMs, signal)) })),
    );
    deps.onDeleted?.();
    const answers = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
    const gone = answers.filter(({ refusal }) => !refusal);
    for (const blob of await store.deletions.confirmDeletion(deletion.token, gone)) {
      // Another run took over while this process was suspended: the same bytes may have been put again and then deleted by this run.
      const condition = await blobs.verify(blob.key, blob, 'metadata', signal);
      if (condition === 'missing') await store.blobs.markDamaged(blob.advertiserId, blob.sha256);
    }
    deleted += gone.length;
    trouble ??=
      ends.find((end) => end.status === 'rejected')?.reason ?? answers.find(({ refusal }) => refusal)?.refusal;
    if (answers.length === 0) break;
  }
  if (trouble) throw trouble;
  return deleted;
}

/** Deletes what nothing needs of these bytes; how many are needed, and how many versions stay. A trouble with others is not thrown. */
export async function deleteUnneeded(
  deps: DeletingDeps,
  advertiserId: bigint,
  hashes: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly needed: number; readonly keptVersions: number }> {
  const { deletions } = deps.store;
  const needed = await deletions.drop(advertiserId, hashes);
  for (;;) {
    let trouble: unknown = null;
    try {
      await deleteDue(deps, signal);
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      trouble = error;
    }
    const { left, keptVersions } = await deletions.loadLeft(advertiserId, hashes);
    if (left === 0) return { needed, keptVersions };
    if (trouble !== null) throw trouble;
    // Another run is deleting these objects, or died while doing so.
    await sleep(retryMs, undefined, { signal });
  }
}

/**
 * Deletes one object. A process that was suspended since it asked for the token has no time left and sends no delete at all: by then the
 * same bytes may have been put again. If the blob store answers with an error, the request is repeated until the time limit. A request
 * without an answer is not: the store may still carry it out, and a second delete that succeeds would release the token before that. What
 * is not deleted is left to the next run, once the token has expired.
 */
async function deleteInTime(blobs: BlobStore, key: string, leftMs: number, signal: AbortSignal): Promise<Deleted> {
  const tooSlow = (cause?: unknown) => {
    const message = `${blobs.location} did not delete an object in time. The next run deletes it.`;
    return new Trouble('local', message, { at: 'storage', cause });
  };
  if (leftMs <= 0) throw tooSlow();
  const limit = AbortSignal.timeout(Math.ceil(leftMs));
  const either = AbortSignal.any([signal, limit]);
  let failure: Trouble | null = null;
  for (;;) {
    try {
      return await blobs.delete(key, either);
    } catch (error) {
      signal.throwIfAborted();
      // Where the time limit ends a repeated request, the earlier failure is the cause to report.
      if (limit.aborted) throw failure ?? (error instanceof Trouble ? error : tooSlow(error));
      if (!(error instanceof Trouble) || error.status === undefined) throw error;
      failure = error;
      await sleep(retryMs, undefined, { signal: either }).catch(() => {});
    }
  }
}

/** Deletes what is due in the background: a sweep takes hours, and infected bytes must be gone within a minute of the flag (P8). */
export function startDeletion(
  deps: Pick<DeletingDeps, 'store'> & {
    /** Opens the blob store; called only when there is something to delete. */
    readonly openBlobs: (signal: AbortSignal) => Promise<BlobStore>;
    /** Called after each failed run with its error, and with null once nothing is left to delete. */
    readonly onTrouble?: (error: unknown) => void;
    /** The token of a run that died expires after 30 s (store/files/blobs.ts): the next run is still within a minute. */
    readonly everyMs?: number;
  },
  signal: AbortSignal,
) {
  const { store, openBlobs, onTrouble, everyMs = 5_000 } = deps;
  const stop = new AbortController();
  const stopSignal = AbortSignal.any([signal, stop.signal]);

  /** The last failure, kept until nothing is left to delete: while the token of a failed delete holds, the runs find nothing due. */
  let lastError: unknown = null;
  /** Undefined before the first report: a process that has died may have left a trouble. */
  let reportedError: unknown;

  /** `stop` does not interrupt a run: an interrupted delete keeps its token, and the last run would find nothing due. */
  async function runOnce(): Promise<void> {
    if (await store.deletions.hasDueDeletes()) {
      await using blobs = await openBlobs(signal);
      await deleteDue({ store, blobs }, signal);
      if (await store.deletions.hasDueDeletes()) return;
    }
    lastError = null;
  }

  async function repeat(): Promise<void> {
    while (!stopSignal.aborted) {
      await runOnce().catch((error: unknown) => {
        lastError = error;
      });
      if (lastError !== reportedError && !stopSignal.aborted) onTrouble?.(lastError);
      reportedError = lastError;
      await sleep(everyMs, undefined, { signal: stopSignal }).catch(() => {});
    }
  }

  const running = repeat();
  const end = () => {
    stop.abort();
    return running;
  };
  return {
    /** Stops the periodic runs, does a last one, and throws its error if anything remains. */
    async finish(): Promise<void> {
      await end();
      await runOnce();
      if (lastError !== null) throw lastError;
    },
    [Symbol.asyncDispose]: end,
  };
}

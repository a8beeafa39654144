// Recall: deletes infected bytes from the blob store within a minute of the flag being read (P8), usually within five seconds. It runs in
// the background for as long as the worker or the command does, because a sweep or a download run may take hours.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore } from '../../domain/blob.ts';
import type { Store } from '../../store/store.ts';
import { deleteDue } from './delete-objects.ts';

export interface RecallDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions'>;
  /** Opens the blob store; called only when there is something to delete. */
  readonly openBlobs: (signal: AbortSignal) => Promise<BlobStore>;
  /** Called after each failed run with its error, and with null once no infected bytes are left. */
  readonly onTrouble?: ((error: unknown) => void) | undefined;
  readonly everyMs?: number;
}

/** The token of a run that died expires after 30 s (store/files/delete-blobs.ts). At this interval the next run is still within a minute. */
const usuallyEveryMs = 5_000;

export function startRecall(deps: RecallDeps, signal: AbortSignal) {
  const stop = new AbortController();
  const stopSignal = AbortSignal.any([signal, stop.signal]);

  const { store, openBlobs, onTrouble, everyMs = usuallyEveryMs } = deps;
  /**
   * The last failure, kept until nothing is left to delete. The token of a failed delete holds for a while; until it expires, the runs find
   * nothing due although bytes remain.
   */
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
  const end = async () => {
    stop.abort();
    await running;
  };
  return {
    /** Stops the periodic runs, does a last one, and throws its error if infected bytes remain. */
    async finish(): Promise<void> {
      await end();
      await runOnce();
      if (lastError !== null) throw lastError;
    },
    [Symbol.asyncDispose]: end,
  };
}

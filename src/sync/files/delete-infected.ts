// Recall: deletes infected bytes from the blob store within a minute of the flag being read (P8), usually within five seconds. It runs
// beside everything else for as long as a worker or a command does, since a sweep or a download run may take hours.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore } from '../../domain/blob.ts';
import type { Store } from '../../store/store.ts';
import { deleteInfected } from './delete-objects.ts';

export interface RecallDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions'>;
  /** Opens the blob store; asked only when there is something to delete. */
  readonly openBlobs: (signal: AbortSignal) => Promise<BlobStore>;
  /** Told what keeps bytes from being deleted, at each failed run; null once none are left. */
  readonly onTrouble?: ((error: unknown) => void) | undefined;
  readonly everyMs?: number;
}

export interface Recall extends AsyncDisposable {
  /** Stops the runs and makes a last one, which throws what keeps bytes from being deleted. */
  finish(): Promise<void>;
}

/** A dead run lapses after 30 s (store/files/delete-blobs.ts): with this the next one is still within a minute. */
const usuallyEveryMs = 5_000;

/** Deletes infected bytes every few seconds until the signal, or its disposal. */
export function startRecall(deps: RecallDeps, signal: AbortSignal): Recall {
  const stop = new AbortController();
  const stopSignal = AbortSignal.any([signal, stop.signal]);

  const { store, openBlobs, onTrouble, everyMs = usuallyEveryMs } = deps;
  /** The last failure, until nothing is left to delete: the token of a failed delete holds for a while, and the runs find nothing due. */
  let lastError: unknown = null;
  let reportedError: unknown = null;

  /** Not ended by `stop`: a delete that is broken off keeps its token, and the last run would find nothing to do. */
  async function runOnce(): Promise<void> {
    const left = await store.deletions.findInfected();
    if (left === 'due') {
      await using blobs = await openBlobs(signal);
      await deleteInfected({ store, blobs }, signal);
    }
    if (left !== 'begun') lastError = null;
  }

  async function runOn(): Promise<void> {
    while (!stopSignal.aborted) {
      await runOnce().catch((error: unknown) => {
        lastError = error;
      });
      if (lastError !== reportedError && !stopSignal.aborted) onTrouble?.(lastError);
      reportedError = lastError;
      await sleep(everyMs, undefined, { signal: stopSignal }).catch(() => {});
    }
  }

  const running = runOn();
  const end = async () => {
    stop.abort();
    await running;
  };
  return {
    async finish() {
      await end();
      await runOnce();
      if (lastError !== null) throw lastError;
    },
    [Symbol.asyncDispose]: end,
  };
}

// Recall: infected bytes are deleted from the blob store within seconds of the flag being read (P8). It runs beside everything else for
// as long as a worker or a command does, since a reading or a download run may take hours.
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
  const either = AbortSignal.any([signal, stop.signal]);

  const { store, openBlobs, onTrouble, everyMs = usuallyEveryMs } = deps;
  /** What a run met, until nothing is left to delete: after a failed delete its token holds for a while, and the runs find nothing due. */
  let met: unknown = null;
  let told: unknown = null;

  /** Not ended by `stop`: a delete that is broken off keeps its token, and the last run would find nothing to do. */
  async function runOnce(): Promise<void> {
    const left = await store.deletions.findInfected();
    if (left === 'due') {
      await using blobs = await openBlobs(signal);
      await deleteInfected({ store, blobs }, signal);
    }
    if (left !== 'begun') met = null;
  }

  async function runOn(): Promise<void> {
    while (!either.aborted) {
      await runOnce().catch((error: unknown) => {
        met = error;
      });
      if (met !== told && !either.aborted) onTrouble?.(met);
      told = met;
      await sleep(everyMs, undefined, { signal: either }).catch(() => {});
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
      if (met !== null) throw met;
    },
    [Symbol.asyncDispose]: end,
  };
}

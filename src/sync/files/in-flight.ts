// Tracks downloads in flight. Fetching, holding bytes and waiting for the commit have separate limits, so that source, blob store and
// database do not wait for each other.
import type { Claim } from '../../store/files/download-queue.ts';

/** Progress of a download, reported in this order. */
export interface DownloadCallbacks {
  /** The download no longer needs the source. */
  readonly onFetched: () => void;
  /** The download no longer holds bytes in the spool. */
  readonly onStored: () => void;
}

/**
 * Most stored downloads that wait for their commit. A waiting download costs only its claim, and larger batches cost less per file. With
 * only twice the concurrency in flight, commits of 14 files at a time were the bottleneck of a run without network latency (measured).
 */
const mostUncommitted = 64;

export function createInFlight(concurrency: number) {
  const inFlight = new Map<Claim, Promise<void>>();
  const fetching = new Set<Claim>();
  const holding = new Set<Claim>();
  let moved = Promise.withResolvers<void>();

  function noteMove(): void {
    moved.resolve();
    moved = Promise.withResolvers();
  }

  function leave(stage: Set<Claim>, claim: Claim): void {
    if (stage.delete(claim)) noteMove();
  }

  return {
    get size(): number {
      return inFlight.size;
    },
    claims: (): Claim[] => [...inFlight.keys()],
    /** True while no further download may start. */
    isFull: (): boolean =>
      fetching.size >= concurrency ||
      holding.size >= 2 * concurrency ||
      inFlight.size >= 2 * concurrency + mostUncommitted,
    /** Starts a download. The promise of `work` must not reject. */
    start(claim: Claim, work: (callbacks: DownloadCallbacks) => Promise<void>): void {
      fetching.add(claim);
      holding.add(claim);
      const tracked = work({
        onFetched: () => leave(fetching, claim),
        onStored: () => leave(holding, claim),
      }).finally(() => {
        inFlight.delete(claim);
        fetching.delete(claim);
        holding.delete(claim);
        noteMove();
      });
      inFlight.set(claim, tracked);
    },
    /** Resolves to true when a download has its bytes, has stored them, or has ended. */
    nextChange: (): Promise<true> => moved.promise.then(() => true),
    async untilIdle(): Promise<void> {
      await Promise.all(inFlight.values());
    },
  };
}

// Tracks downloads in flight. Fetching, holding bytes and waiting for the commit have separate limits, so that source, blob store and
// database do not wait for each other. Knows nothing of what a download does.
import type { Claim } from '../../store/files/download-queue.ts';

/** What a download reports on its way, in this order. */
export interface DownloadCallbacks {
  /** It no longer needs the source. */
  readonly onFetched: () => void;
  /** It no longer has bytes in hand. */
  readonly onStored: () => void;
}

export interface InFlight {
  readonly size: number;
  /** The claims of the downloads in flight. */
  claims(): Claim[];
  /** True while another one would be too many. */
  isFull(): boolean;
  /** Starts a download, which never rejects. */
  start(claim: Claim, work: (signs: DownloadCallbacks) => Promise<void>): void;
  /** Resolves to true when a download has its bytes, has stored them, or has ended. */
  nextChange(): Promise<true>;
  /** Resolves when all have ended. */
  untilIdle(): Promise<void>;
}

/**
 * Most stored downloads that wait for their commit. A waiting one costs nothing but its claim, and larger batches cost less per file. With no
 * more than twice the concurrency in flight, commits of 14 files at a time were the bottleneck of a run without latency (measured).
 */
const mostUncommitted = 64;

/** Starts with none. */
export function createInFlight(concurrency: number): InFlight {
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
    get size() {
      return inFlight.size;
    },
    claims: () => [...inFlight.keys()],
    isFull: () =>
      fetching.size >= concurrency ||
      holding.size >= 2 * concurrency ||
      inFlight.size >= 2 * concurrency + mostUncommitted,
    start(claim, work) {
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
    nextChange: () => moved.promise.then(() => true),
    async untilIdle() {
      await Promise.all(inFlight.values());
    },
  };
}

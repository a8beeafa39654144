// The downloads under way. The source is asked for so many at once; as many again may be on their way to the store, so that neither
// waits for the other; and those that the store has wait for their books beside them. Knows nothing of what a download does.
import type { Claim } from '../../store/files/download-queue.ts';

/** What a flight says on its way, in this order. */
export interface Signs {
  /** It no longer needs the source. */
  readonly onFetched: () => void;
  /** It no longer has bytes in hand. */
  readonly onStored: () => void;
}

export interface Flights {
  readonly size: number;
  /** Whose bytes are under way. */
  claims(): Claim[];
  /** True while another one would be too many. */
  isBusy(): boolean;
  /** Lets one fly, which never rejects. */
  start(claim: Claim, fly: (signs: Signs) => Promise<void>): void;
  /** Until one has its bytes, has stored them, or has landed: a move to go on from, so true. */
  move(): Promise<true>;
  /** Until all have landed. */
  landAll(): Promise<void>;
}

/**
 * So many may wait for their books: they cost nothing but their claims, and the more are written together the less each costs. With no more
 * than twice the concurrency under way in all, books of 14 files at a time were what a drain without latency waited for (measured).
 */
const mostBooking = 64;

/** None yet. */
export function createFlights(concurrency: number): Flights {
  const flights = new Map<Claim, Promise<void>>();
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
      return flights.size;
    },
    claims: () => [...flights.keys()],
    isBusy: () =>
      fetching.size >= concurrency || holding.size >= 2 * concurrency || flights.size >= 2 * concurrency + mostBooking,
    start(claim, fly) {
      fetching.add(claim);
      holding.add(claim);
      const flight = fly({
        onFetched: () => leave(fetching, claim),
        onStored: () => leave(holding, claim),
      }).finally(() => {
        flights.delete(claim);
        fetching.delete(claim);
        holding.delete(claim);
        noteMove();
      });
      flights.set(claim, flight);
    },
    move: () => moved.promise.then(() => true),
    async landAll() {
      await Promise.all(flights.values());
    },
  };
}

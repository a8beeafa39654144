// The downloads under way. The source is asked for so many at once; as many again may be on their way to the store, so that neither
// waits for the other. Knows nothing of what a download does.
import type { Claim } from '../store/downloads.ts';

export interface Flights {
  readonly size: number;
  /** Whose bytes are under way. */
  claims(): Claim[];
  /** True while another one would be too many. */
  isBusy(): boolean;
  /** Lets one fly; it says when it no longer needs the source, and never rejects. */
  start(claim: Claim, fly: (onFetched: () => void) => Promise<void>): void;
  /** Until one has its bytes, or has landed: a move to go on from, so true. */
  move(): Promise<true>;
  /** Until all have landed. */
  landAll(): Promise<void>;
}

/** None yet. */
export function createFlights(concurrency: number): Flights {
  const flights = new Map<Claim, Promise<void>>();
  const fetching = new Set<Claim>();
  let moved = Promise.withResolvers<void>();

  function noteMove(): void {
    moved.resolve();
    moved = Promise.withResolvers();
  }

  return {
    get size() {
      return flights.size;
    },
    claims: () => [...flights.keys()],
    isBusy: () => fetching.size >= concurrency || flights.size >= 2 * concurrency,
    start(claim, fly) {
      fetching.add(claim);
      const onFetched = () => {
        if (fetching.delete(claim)) noteMove();
      };
      const flight = fly(onFetched).finally(() => {
        flights.delete(claim);
        fetching.delete(claim);
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

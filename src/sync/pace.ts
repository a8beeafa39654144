// Pace: requests of one source evenly spaced over all workers, so that no burst ever exceeds the configured rate (P14).
// Turns are reserved in the database; a few at once when many wait, so that a busy backfill does not ask for every single one.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store } from '../store/store.ts';

/** Awaited before each request. */
export type TakeTurn = (signal: AbortSignal) => Promise<void>;

/** Turns reserved ahead are lost when the process ends: few enough to be no loss. */
const mostAtOnce = 8;
const missedMs = 20;

/** The shared pace of one source; null is no limit. */
export function createPace(store: Store, source: string, requestsPerSecond: number | null): TakeTurn {
  if (requestsPerSecond === null) return async () => {};
  const spacingMs = 1_000 / requestsPerSecond;
  const turns: number[] = [];
  let waiting = 0;
  let reserving: Promise<void> | null = null;

  async function reserve(): Promise<void> {
    const count = Math.min(mostAtOnce, waiting);
    const waitMs = await store.takeTurns(source, count, spacingMs);
    const firstAt = performance.now() + waitMs;
    turns.push(...Array.from({ length: count }, (_, nth) => firstAt + nth * spacingMs));
  }

  /** The next turn that is not over; one that was missed is lost, or two requests would follow each other too closely. */
  function next(): number | undefined {
    const now = performance.now();
    while (turns[0] !== undefined && turns[0] < now - missedMs) turns.shift();
    return turns.shift();
  }

  return async (signal) => {
    waiting++;
    try {
      let turnAt = next();
      while (turnAt === undefined) {
        reserving ??= reserve().finally(() => {
          reserving = null;
        });
        await reserving;
        signal.throwIfAborted();
        turnAt = next();
      }
      await sleep(Math.max(0, turnAt - performance.now()), undefined, { signal });
    } finally {
      waiting--;
    }
  };
}

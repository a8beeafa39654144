// Pace: requests of one source evenly spaced over all workers, so that in no second more are sent than the configured rate (P14).
// Turns are reserved in the database; a few at once when many wait, so that a busy backfill does not ask for every single one.
import { Trouble } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';
import { rest } from './retry.ts';

/** Awaited before each request. */
export type TakeTurn = (signal: AbortSignal) => Promise<void>;

/** Turns reserved ahead are lost when the process ends: few enough to be no loss. */
const mostAtOnce = 8;
/** A turn that is used later than this is not used: with others that were late as well, it could make one too many in a second. */
const lateMs = 25;
const missesInARow = 3;

/** More turns than all workers together ever reserve ahead: each reserves no more than it has requests waiting. */
const mostAhead = 1_000;

/** From when until when a request may be sent, by `performance.now()`. */
interface Turn {
  readonly from: number;
  readonly until: number;
}

/** The shared pace of one source; null is no limit. */
export function createPace(store: Store, source: string, requestsPerSecond: number | null): TakeTurn {
  if (requestsPerSecond === null) return async () => {};
  // Spread so that a second, and what may come late into it, has no more turns than the rate.
  const spacingMs = (1_000 + lateMs) / requestsPerSecond;
  const clock = createFarClock();
  const turns: Turn[] = [];
  let waiting = 0;
  let reserving: Promise<void> | null = null;

  async function reserve(count: number, widthMs: number): Promise<Turn[]> {
    const stretchMs = count * spacingMs + widthMs - lateMs;
    const { now, firstAt } = await store.takeTurns(source, stretchMs, mostAhead * spacingMs);
    const from = firstAt - clock.look(now);
    return Array.from({ length: count }, (_, nth) => ({
      from: from + nth * spacingMs,
      until: from + nth * spacingMs + widthMs,
    }));
  }

  async function reserveForAll(): Promise<void> {
    turns.push(...(await reserve(Math.min(mostAtOnce, waiting), lateMs)));
  }

  async function next(signal: AbortSignal): Promise<Turn> {
    for (;;) {
      const turn = turns.shift();
      if (turn && turn.until >= performance.now()) return turn;
      if (turn) continue;
      reserving ??= reserveForAll().finally(() => {
        reserving = null;
      });
      await reserving;
      signal.throwIfAborted();
    }
  }

  return async (signal) => {
    waiting++;
    try {
      let turn: Turn | undefined = await next(signal);
      for (let misses = 1; !(await isReached(turn, signal)); misses++) {
        if (misses < missesInARow) turn = await next(signal);
        else {
          // A machine so busy comes to its turn too: this one is wider, and all that follow are pushed back by as much.
          clock.reset();
          [turn] = await reserve(1, lateMs * 2 ** (misses - 1));
        }
      }
    } finally {
      waiting--;
    }
  };
}

/** A longer Retry-After is told to the caller: queue and schedule wait without holding a lane or a claim. */
const longestWaitMs = 10_000;

/** Waits for the turn, and for the Retry-After that any worker has heard for the account. */
export function honourRetryAfter(store: Pick<Store, 'loadRetryAfter'>, name: string, takeTurn: TakeTurn): TakeTurn {
  return async (signal) => {
    for (;;) {
      await takeTurn(signal);
      const leftMs = await store.loadRetryAfter(name);
      if (leftMs <= 0) return;
      if (leftMs > longestWaitMs) {
        const message = 'The source has asked to be left alone for a time that is not over (Retry-After).';
        throw new Trouble('throttled', message, { retryAfterMs: leftMs });
      }
      await rest(leftMs, signal);
    }
  };
}

/** Waits for a turn; false when it is over. */
async function isReached(turn: Turn | undefined, signal: AbortSignal): Promise<boolean> {
  if (!turn) return false;
  await rest(Math.max(0, turn.from - performance.now()), signal);
  return performance.now() <= turn.until;
}

/** How much clocks may part in a millisecond. */
const drift = 1e-4;

/** The database's clock as seen from here. Every look is late by the answer's way back, so the largest difference is the truest. */
function createFarClock() {
  let aheadMs = Number.NEGATIVE_INFINITY;
  let lookedAt = 0;
  return {
    /** By how much it is ahead of ours, now that it was just seen to stand at `now`. */
    look(now: number): number {
      const at = performance.now();
      aheadMs = Math.max(now - at, aheadMs - (at - lookedAt) * drift);
      lookedAt = at;
      return aheadMs;
    },
    /** Forgets: one of the clocks may have been set. */
    reset(): void {
      aheadMs = Number.NEGATIVE_INFINITY;
    },
  };
}

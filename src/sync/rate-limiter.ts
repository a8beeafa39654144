// The rate limiter: requests to one source are evenly spaced over all workers, so that no second has more than the configured rate (P14).
// Slots are reserved in the database, a few at once when many requests wait.
import { Trouble } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';
import { pause } from './retry.ts';

/** Awaited before each request. */
export type TakeSlot = (signal: AbortSignal) => Promise<void>;

/** Slots reserved ahead are lost when the process ends: few enough to be no loss. */
const mostAtOnce = 8;
/** A slot that is reached later than this is not used: several late ones could make one request too many in a second. */
const lateMs = 25;
/** Two workers may see the database's clock as far apart: the latency of its answers differs. */
const apartMs = 25;
const missesInARow = 3;

/** More slots than all workers together ever reserve ahead: each reserves no more than it has requests waiting. */
const mostAhead = 1_000;

/** From when until when a request may be sent, by `performance.now()`. */
interface Slot {
  readonly from: number;
  readonly until: number;
}

/** The shared limit of one source; null is no limit. */
export function createRateLimiter(
  store: Pick<Store, 'rateLimits'>,
  source: string,
  requestsPerSecond: number | null,
): TakeSlot {
  if (requestsPerSecond === null) return async () => {};
  // Spread so that a second, and what may come late into it, has no more slots than the rate.
  const spacingMs = (1_000 + lateMs + apartMs) / requestsPerSecond;
  const clock = createDatabaseClock();
  const slots: Slot[] = [];
  let waiting = 0;
  let reserving: Promise<void> | null = null;

  const take = (stretchMs: number) => store.rateLimits.takeSlots(source, stretchMs, mostAhead * spacingMs);

  async function reserve(count: number, widthMs: number): Promise<Slot[]> {
    // The first answer may have waited for a connection to be opened: slots by that sample alone would be used too late.
    for (let looks = 0; looks < 2 && clock.samples < 2; looks++) clock.look((await take(0)).now);
    const { now, firstAt } = await take(count * spacingMs + widthMs - lateMs);
    const from = firstAt - clock.look(now);
    return Array.from({ length: count }, (_, nth) => ({
      from: from + nth * spacingMs,
      until: from + nth * spacingMs + widthMs,
    }));
  }

  async function reserveForAll(): Promise<void> {
    slots.push(...(await reserve(Math.min(mostAtOnce, waiting), lateMs)));
  }

  async function next(signal: AbortSignal): Promise<Slot> {
    for (;;) {
      const slot = slots.shift();
      if (slot && slot.until >= performance.now()) return slot;
      if (slot) continue;
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
      let slot: Slot | undefined = await next(signal);
      for (let misses = 1; !(await isReached(slot, signal)); misses++) {
        if (misses < missesInARow) slot = await next(signal);
        else {
          // On a very busy machine: this slot is wider, and all that follow are pushed back by as much.
          clock.reset();
          [slot] = await reserve(1, lateMs * 2 ** (misses - 1));
        }
      }
    } finally {
      waiting--;
    }
  };
}

/** A longer Retry-After is told to the caller: queue and schedule wait without holding a lane or a claim. */
const longestWaitMs = 10_000;

/** Waits for a slot, and for the Retry-After that any worker has received for the account. */
export function honourRetryAfter(store: Pick<Store, 'advertisers'>, name: string, takeSlot: TakeSlot): TakeSlot {
  return async (signal) => {
    for (;;) {
      await takeSlot(signal);
      const leftMs = await store.advertisers.loadRetryAfter(name);
      if (leftMs <= 0) return;
      if (leftMs > longestWaitMs) {
        const message = 'The source has asked to be left alone for a time that is not over (Retry-After).';
        throw new Trouble('throttled', message, { retryAfterMs: leftMs });
      }
      await pause(leftMs, signal);
    }
  };
}

/** Waits for a slot; false when it is over. */
async function isReached(slot: Slot | undefined, signal: AbortSignal): Promise<boolean> {
  if (!slot) return false;
  await pause(Math.max(0, slot.from - performance.now()), signal);
  return performance.now() <= slot.until;
}

/** How much clocks may part in a millisecond. */
const drift = 1e-4;

/** The database's clock as seen from here. Each sample is too small by the latency of its answer, so the largest is the best. */
function createDatabaseClock() {
  let aheadMs = Number.NEGATIVE_INFINITY;
  let lookedAt = 0;
  let samples = 0;
  return {
    get samples(): number {
      return samples;
    },
    /** By how much it is ahead of ours, now that it was just seen to stand at `now`. */
    look(now: number): number {
      const at = performance.now();
      aheadMs = Math.max(now - at, aheadMs - (at - lookedAt) * drift);
      lookedAt = at;
      samples += 1;
      return aheadMs;
    },
    /** Forgets: one of the clocks may have been set. */
    reset(): void {
      aheadMs = Number.NEGATIVE_INFINITY;
      samples = 0;
    },
  };
}

// The rate limiter spaces the requests to one source evenly over all workers, so that no second has more than the configured rate (P14).
// It reserves slots in the database, several at once when several requests wait.
import { toDelay } from '../domain/delay.ts';
import { Trouble } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';
import { pause } from './retry.ts';

/** Waits until a request may be sent. Called before each request. */
export type TakeSlot = (signal: AbortSignal) => Promise<void>;

/** Most slots that one reservation takes. Reserved slots are lost when the process ends, so they are few. */
const mostAtOnce = 8;
/** How late a slot may be used. Several requests that are later could exceed the rate of a second. */
const lateMs = 25;
/** How much two workers may differ in their estimate of the database clock, because the latency of its answers differs. */
const apartMs = 25;
const missesInARow = 3;

/** More slots than all workers together ever reserve ahead, since none reserves more slots than it has waiting requests. */
const mostAhead = 1_000;

/** The time in which a request may be sent, by `performance.now()`. */
interface Slot {
  readonly from: number;
  readonly until: number;
}

/** The shared rate limiter of one source; a rate of null is no limit. */
export function createRateLimiter(
  store: Pick<Store, 'rateLimits'>,
  source: string,
  requestsPerSecond: number | null,
): TakeSlot {
  if (requestsPerSecond === null) return async () => {};
  // Spaced so that one second, plus the lateness and clock difference allowed above, has no more slots than the rate.
  const spacingMs = (1_000 + lateMs + apartMs) / requestsPerSecond;
  const clock = createDatabaseClock();
  const slots: Slot[] = [];
  let waiting = 0;
  let reserving: Promise<void> | null = null;

  const take = (stretchMs: number) => store.rateLimits.takeSlots(source, stretchMs, mostAhead * spacingMs);

  async function reserve(count: number, widthMs: number): Promise<Slot[]> {
    // The first answer may include the time to open a connection. With only that clock sample, slots would be used too late.
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
          // A very busy machine misses its slots. This slot is wider, and all later slots move back by the same time.
          clock.reset();
          [slot] = await reserve(1, lateMs * 2 ** (misses - 1));
        }
      }
    } finally {
      waiting--;
    }
  };
}

/** A longer Retry-After is thrown to the caller, so that the queue or the schedule waits without holding a lane or a claim. */
const longestWaitMs = 10_000;

/** Waits for a slot, and for the Retry-After that any worker has received for the account. */
export function honourRetryAfter(store: Pick<Store, 'advertisers'>, name: string, takeSlot: TakeSlot): TakeSlot {
  return async (signal) => {
    for (;;) {
      await takeSlot(signal);
      const leftMs = await store.advertisers.loadRetryAfter(name);
      if (leftMs <= 0) return;
      if (leftMs > longestWaitMs) {
        const message = 'The source asked for a pause that is not over yet (Retry-After).';
        throw new Trouble('throttled', message, { retryAfterMs: toDelay(leftMs) });
      }
      await pause(leftMs, signal);
    }
  };
}

/** Waits for a slot; false if it is missed. */
async function isReached(slot: Slot | undefined, signal: AbortSignal): Promise<boolean> {
  if (!slot) return false;
  await pause(Math.max(0, slot.from - performance.now()), signal);
  return performance.now() <= slot.until;
}

/** How far two clocks may drift apart per millisecond, in milliseconds. */
const drift = 1e-4;

/** Estimates the database clock. Each sample is too small by the latency of its answer, so the largest is the best. */
function createDatabaseClock() {
  let aheadMs = Number.NEGATIVE_INFINITY;
  let lookedAt = 0;
  let samples = 0;
  return {
    get samples(): number {
      return samples;
    },
    /** Takes the sample `now` of the database clock. Returns how far that clock is ahead of `performance.now()`. */
    look(now: number): number {
      const at = performance.now();
      aheadMs = Math.max(now - at, aheadMs - (at - lookedAt) * drift);
      lookedAt = at;
      samples += 1;
      return aheadMs;
    },
    /** Forgets all samples, because one of the clocks may have been set. */
    reset(): void {
      aheadMs = Number.NEGATIVE_INFINITY;
      samples = 0;
    },
  };
}

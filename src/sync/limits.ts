// The rate limiter spaces the requests to one source over all workers (P14); slots limit what runs at once in this process.
import { Trouble, toDelay } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';
import { pause } from './retry.ts';

/** Waits until a request may be sent. Called before each request. */
export type TakeSlot = (signal: AbortSignal) => Promise<void>;

/** How late a slot may be used. Several requests that are later could exceed the rate of a second. */
const lateMs = 50;
/** More slots than all workers together ever have ahead. */
const mostAhead = 1_000;

/** The shared rate limiter of one source; a rate of null is no limit. */
export function createRateLimiter(
  store: Pick<Store, 'rateLimits'>,
  source: string,
  requestsPerSecond: number | null,
): TakeSlot {
  if (requestsPerSecond === null) return async () => {};
  // Spaced so that one second, plus the lateness allowed above, has no more slots than the rate.
  const spacingMs = (1_000 + lateMs) / requestsPerSecond;
  /** What a slot is wider by where the database or this machine is slow. All later slots move back by as much. */
  let extraMs = 0;
  let last: Promise<unknown> = Promise.resolve();

  /** The slot begins, by `performance.now()`, between `from` and now plus the wait. */
  async function take() {
    const widerMs = extraMs;
    const askedAt = performance.now();
    const waitMs = await store.rateLimits.takeSlot(source, spacingMs + widerMs, mostAhead * spacingMs);
    return { from: askedAt + waitMs, to: performance.now() + waitMs, widerMs };
  }

  return async (signal) => {
    for (;;) {
      // One statement at a time, so that each answer is quick.
      const taken = last.then(take);
      last = taken.catch(() => {});
      const { from, to, widerMs } = await taken;
      await pause(Math.max(0, to - performance.now()), signal);
      const tooLateMs = performance.now() - from - lateMs;
      // It grows step by step, so that one long stall costs little: all workers wait for a wide slot.
      extraMs = Math.max(0, Math.min(2 * tooLateMs, lateMs + 2 * widerMs));
      if (tooLateMs <= widerMs) return;
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

/** Lets a number of callers work at once in this process. The others wait in the order in which they came. */
export type Slots = ReturnType<typeof createSlots>;

export function createSlots(most: number) {
  const waiting = new Set<() => void>();
  let free = most;
  return {
    /** Throws the signal's reason if it aborts before there is a slot. */
    async take(signal: AbortSignal): Promise<Disposable> {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        const end = () => waiting.delete(resolve) && reject(signal.reason);
        waiting.add(resolve);
        signal.addEventListener('abort', end);
        await promise.finally(() => signal.removeEventListener('abort', end));
      }
      return {
        [Symbol.dispose]() {
          const [next] = waiting;
          if (next === undefined) free += 1;
          // Handed over, so that nobody who comes meanwhile takes it.
          else if (waiting.delete(next)) next();
        },
      };
    },
  };
}

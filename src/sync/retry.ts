// Retries work while a source or a database is unavailable. The source client retries one request for seconds (p-retry). What failed
// nevertheless is run again as a whole, and goes on from its rows: a task of the worker after a pause, a command for two minutes.
import { setTimeout as sleep } from 'node:timers/promises';
import { type BackoffRange, backoff } from '../domain/delay.ts';
import { LastingTrouble, Trouble } from '../domain/trouble.ts';

export interface RetryOptions {
  /** How long failures may last before the last one is thrown. Infinity: retries without end. */
  readonly retryForMs: number;
  readonly signal: AbortSignal;
  /** A count of what the work has done: whenever it has risen, failures begin anew. */
  readonly progress?: (() => number) | undefined;
  /** Called before each wait, with the number of the failed attempt. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
}

/** Repeats the work until it succeeds, or until temporary failures have lasted for `retryForMs`. Other failures are thrown at once. */
export async function retry<T>(retryOptions: RetryOptions, work: () => Promise<T>): Promise<T> {
  const { retryForMs, signal, progress, onWait } = retryOptions;
  let failingSince: number | null = null;
  let done: number | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTemporary(error)) throw error;
      if (failingSince === null || progress?.() !== done) {
        done = progress?.();
        failingSince = performance.now();
        attempt = 1;
      }
      const waitMs = backoffAfter(error, attempt, shortBackoff);
      if (performance.now() - failingSince + waitMs > retryForMs) throw error;
      onWait?.(error, waitMs, attempt);
      await pause(waitMs, signal);
    }
  }
}

/** Backoff for work that is retried inside the same call. */
const shortBackoff: BackoffRange = { baseMs: 500, maxMs: 15_000 };

/** Waits. If the signal aborts, throws the signal's reason, so that a lost lease does not look like an unexpected error. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** True for trouble that may soon be over by itself. */
export function isTemporary(error: unknown): error is Trouble {
  if (!(error instanceof Trouble) || error instanceof LastingTrouble) return false;
  return ['unreachable', 'throttled', 'malformed', 'local'].includes(error.kind);
}

/** The wait after a number of failures in a row: the Retry-After of the source, or a backoff. */
export function backoffAfter({ retryAfterMs }: Trouble, failures: number, range: BackoffRange): number {
  return retryAfterMs ?? backoff(failures, range, Math.random());
}

/** Turns any error into Trouble. An unexpected error becomes `local`. */
export function toTrouble(error: unknown): Trouble {
  return error instanceof Trouble ? error : new Trouble('local', 'Something failed unexpectedly.', { cause: error });
}

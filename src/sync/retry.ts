// Retries work while a source or database is unavailable. The levels: the source client retries for seconds inside one
// request (p-retry), a worker's task for 5 or 30 seconds (then its account rests for up to 5 minutes), a one-shot command for two minutes, the
// download queue for hours.
import { setTimeout as sleep } from 'node:timers/promises';
import { type BackoffRange, backoff } from '../domain/backoff.ts';
import { CertificateTrouble, LaneHeld, LeaseLost, SchemaTrouble, SettingTrouble, Trouble } from '../domain/trouble.ts';

export interface RetryOptions {
  /** How long failures may last before the last one is thrown; Infinity retries without end. */
  readonly retryForMs: number;
  readonly signal: AbortSignal;
  /** Told before each wait, with the number of the attempt that failed. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
}

/** Repeats the work until it succeeds, or until temporary failures have lasted too long. Other failures are thrown at once. */
export async function retry<T>(retryOptions: RetryOptions, work: () => Promise<T>): Promise<T> {
  const { retryForMs, signal, onWait } = retryOptions;
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTemporary(error)) throw error;
      const waitMs = backoffAfter(error, attempt, shortBackoff);
      if (performance.now() - startedAt + waitMs > retryForMs) throw error;
      onWait?.(error, waitMs, attempt);
      await pause(waitMs, signal);
    }
  }
}

/** Waits of work that goes on in the same process as soon as it can. */
export const shortBackoff: BackoffRange = { baseMs: 500, maxMs: 15_000 };

/** Waits. Ended early it throws the signal's own reason: a lost lease must not look like an unexpected error. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** Failures that a retry within minutes does not mend. */
const notRetried = [CertificateTrouble, LaneHeld, LeaseLost, SchemaTrouble, SettingTrouble];

/** Trouble that may be gone a little later without anyone doing anything. */
export function isTemporary(error: unknown): error is Trouble {
  if (!(error instanceof Trouble)) return false;
  if (notRetried.some((kind) => error instanceof kind)) return false;
  return (
    error.kind === 'unreachable' || error.kind === 'throttled' || error.kind === 'malformed' || error.kind === 'local'
  );
}

/** The wait after so many failures in a row: the server's Retry-After, or a backoff. */
export function backoffAfter({ retryAfterMs }: Trouble, failures: number, range: BackoffRange): number {
  return retryAfterMs ?? backoff(failures, range, Math.random());
}

/** Whatever was thrown, as trouble; an unexpected error is local. */
export function toTrouble(error: unknown): Trouble {
  return error instanceof Trouble ? error : new Trouble('local', 'Something failed unexpectedly.', { cause: error });
}

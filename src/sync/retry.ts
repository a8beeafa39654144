// Retries work while a source or database is unavailable. There are four levels: the source client retries for seconds inside one request,
// a worker's task for 5 or 30 seconds (then its account rests for up to 5 minutes), a one-shot command for two minutes.
import { setTimeout as sleep } from 'node:timers/promises';
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
  const startedAt = performance.now();
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      retryOptions.signal.throwIfAborted();
      if (!isTemporary(error)) throw error;
      const waitMs = error.retryAfterMs ?? Math.random() * Math.min(15_000, 250 * 2 ** tries);
      if (performance.now() - startedAt + waitMs > retryOptions.retryForMs) throw error;
      retryOptions.onWait?.(error, waitMs, tries);
      await rest(waitMs, retryOptions.signal);
    }
  }
}

/** Waits. Ended early it throws the signal's own reason: a lost lease must not look like an unexpected error. */
export async function rest(ms: number, signal: AbortSignal): Promise<void> {
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

/** Backoff after so many failures in a row: the server's Retry-After, or a random time below a limit that doubles. */
export function toBackoffMs({ retryAfterMs }: Trouble, failures: number, longestMs: number): number {
  return retryAfterMs ?? Math.max(1_000, Math.random() * Math.min(longestMs, 1_000 * 2 ** failures));
}

/** Whatever was thrown, as trouble; an unexpected error is local. */
export function toTrouble(error: unknown): Trouble {
  return error instanceof Trouble ? error : new Trouble('local', 'Something failed unexpectedly.', { cause: error });
}

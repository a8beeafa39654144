// Waiting out what passes by itself: a source or database that is gone for a while. One-shot commands wait two minutes, a worker for ever.
// This serves minutes; seconds inside one request are the source client's, and hours are the schedule's.
import { setTimeout as sleep } from 'node:timers/promises';
import { CertificateTrouble, LaneHeld, LeaseLost, SchemaTrouble, SettingTrouble, Trouble } from '../domain/trouble.ts';

export interface Patience {
  /** How long one thing may stay broken before it is thrown; Infinity waits for ever. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  /** Told before each wait, with the number of the attempt that failed. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
}

/** Does the work until it succeeds, or until trouble that could pass has lasted too long. Other trouble is thrown at once. */
export async function patiently<T>(patience: Patience, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      patience.signal.throwIfAborted();
      if (!canPass(error)) throw error;
      const waitMs = error.retryAfterMs ?? Math.random() * Math.min(15_000, 250 * 2 ** tries);
      if (performance.now() - startedAt + waitMs > patience.patienceMs) throw error;
      patience.onWait?.(error, waitMs, tries);
      await rest(waitMs, patience.signal);
    }
  }
}

/** Waits. Ended early it throws the signal's own reason: a lane that was taken over must not look like a mistake of ours. */
export async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** What stays as it is until someone acts. */
const lasting = [CertificateTrouble, LaneHeld, LeaseLost, SchemaTrouble, SettingTrouble];

/** Trouble that may be gone a little later without anyone doing anything. */
export function canPass(error: unknown): error is Trouble {
  if (!(error instanceof Trouble)) return false;
  if (lasting.some((kind) => error instanceof kind)) return false;
  return (
    error.kind === 'unreachable' || error.kind === 'throttled' || error.kind === 'malformed' || error.kind === 'ours'
  );
}

/** How long to rest after so many failures in a row: the other side's word, or a draw from a span that doubles. */
export function toBackoffMs({ retryAfterMs }: Trouble, failures: number, longestMs: number): number {
  return retryAfterMs ?? Math.max(1_000, Math.random() * Math.min(longestMs, 1_000 * 2 ** failures));
}

/** Whatever was thrown, as trouble; what nobody foresaw is ours. */
export function toTrouble(error: unknown): Trouble {
  return error instanceof Trouble ? error : new Trouble('ours', 'Something failed unexpectedly.', { cause: error });
}

// How long to wait after a failure. Pure: the caller passes the random number.

export interface BackoffRange {
  /** The ceiling of the wait after the first failed attempt. */
  readonly baseMs: number;
  readonly maxMs: number;
  readonly minMs?: number;
  /** The ceiling is multiplied by this with each further attempt; 2 by default. */
  readonly factor?: number;
}

/**
 * The wait after an attempt: a random time below a ceiling that grows with each attempt. Attempts count from 1. Full jitter keeps callers
 * that failed together from retrying together. `random` is from 0 to 1.
 */
export function backoff(attempt: number, range: BackoffRange, random: number): number {
  return Math.max(range.minMs ?? 0, random * backoffCeiling(attempt, range));
}

/** The longest wait that `backoff` returns after an attempt. */
export function backoffCeiling(attempt: number, { baseMs, maxMs, factor = 2 }: BackoffRange): number {
  return Math.min(maxMs, baseMs * factor ** Math.max(0, attempt - 1));
}

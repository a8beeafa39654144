// How long to wait after a failure. Pure: the caller passes the random number.

export interface BackoffRange {
  /** The ceiling of the wait after the first failed attempt. */
  readonly baseMs: number;
  /** The ceiling never grows beyond this. */
  readonly maxMs: number;
  /** No wait is shorter. */
  readonly minMs?: number;
  /** How much the ceiling grows with each further attempt; 2 unless told. */
  readonly factor?: number;
}

/**
 * The wait after an attempt, of which the first is 1: a random time below a ceiling that grows with each attempt. Full jitter: callers that
 * failed together do not come back together. `random` from 0 to 1.
 */
export function backoff(attempt: number, range: BackoffRange, random: number): number {
  return Math.max(range.minMs ?? 0, random * backoffCeiling(attempt, range));
}

/** The longest wait that `backoff` gives after an attempt. */
export function backoffCeiling(attempt: number, { baseMs, maxMs, factor = 2 }: BackoffRange): number {
  return Math.min(maxMs, baseMs * factor ** Math.max(0, attempt - 1));
}

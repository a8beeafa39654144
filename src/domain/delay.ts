// How long to wait: after a failure, or because someone outside asked for it, which is bounded where it is parsed.

/** Milliseconds, more than none and at most a day. */
export type Delay = number & { readonly isBounded: true };

const longestMs = 86_400_000;

/** The wait, or a day where it is longer; undefined where there is nothing to wait for. */
export function toDelay(ms: number): Delay | undefined {
  return ms > 0 ? (Math.min(longestMs, Math.ceil(ms)) as Delay) : undefined;
}

/** The wait that a Retry-After header demands; undefined where it is absent, invalid, zero or in the past. */
export function parseRetryAfter(
  retryAfter: string | undefined,
  date: string | undefined,
  nowMs: number,
): Delay | undefined {
  const text = retryAfter?.trim() ?? '';
  if (/^\d+$/.test(text)) return toDelay(Number(text) * 1000);
  // Date.parse would read "-5" as a date; an HTTP date begins with its weekday.
  if (!/^[a-z]{3,9},? /i.test(text)) return undefined;
  // Compares with the server's clock (Date) where it is sent: the local clock may differ.
  const serverNowMs = Date.parse(date ?? '');
  return toDelay(Date.parse(text) - (Number.isNaN(serverNowMs) ? nowMs : serverNowMs));
}

export interface BackoffRange {
  /** The ceiling of the wait after the first failed attempt, multiplied by `factor` with each further one. */
  readonly baseMs: number;
  readonly maxMs: number;
  readonly minMs?: number;
  readonly factor?: number;
}

/** A random time below a ceiling that grows with each attempt, from 1 on: callers that failed together do not retry together. */
export function backoff(attempt: number, { baseMs, maxMs, minMs = 0, factor = 2 }: BackoffRange, random: number) {
  const ceilingMs = Math.min(maxMs, baseMs * factor ** Math.max(0, attempt - 1));
  return Math.max(minMs, random * ceilingMs);
}

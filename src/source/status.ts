// Maps a status and its headers to an answer to read or to a Trouble, and decides whether a retry within seconds may help.
// Pure. Spec silent: every status but 200; they are interpreted as sister APIs and HTTP itself define them.

import { parseRetryAfter } from '../domain/delay.ts';
import { CertificateTrouble, Trouble } from '../domain/trouble.ts';

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

// The queue and the schedule handle longer waits: they hold neither a lane nor a claim meanwhile.
const longestWaitMs = 10_000;

/** The Trouble that a status means; null for an answer to read. */
export function toStatusTrouble({ status, headers }: Answered, nowMs: number, address?: string): Trouble | null {
  const source = address === undefined ? 'The source' : `The source at ${address}`;
  const retryAfterMs = parseRetryAfter(headers['retry-after'], headers.date, nowMs);
  if (status === 200 || status === 203 || status === 204) return null;
  if (status === 401 || status === 403)
    return new Trouble('refused', `${source} refuses the credential (${status}).`, { status });
  if (status === 404) return new Trouble('missing', 'The source does not have it (404).', { status });
  if (status === 410) return new Trouble('missing', 'The source has removed it permanently (410).', { status });
  if (status === 429 || (status === 503 && retryAfterMs !== undefined))
    return new Trouble('throttled', `${source} asks to retry later (${status}).`, { status, retryAfterMs });
  if (status >= 500) return new Trouble('unreachable', `${source} failed (${status}).`, { status });
  return new Trouble('unreachable', `${source} answered with an unexpected status (${status}).`, { status });
}

/** True when a retry within seconds may help: after connection resets, 408, 5xx, short waits and unparseable bodies. */
export function isRetryable(trouble: Trouble): boolean {
  const { kind, status, retryAfterMs } = trouble;
  if (trouble instanceof CertificateTrouble) return false;
  if (kind === 'malformed') return true;
  if (kind === 'throttled') return retryAfterMs === undefined || retryAfterMs <= longestWaitMs;
  return kind === 'unreachable' && (status === undefined || status === 408 || status >= 500);
}

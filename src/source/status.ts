// What a status and its headers mean for us: an answer to read, or which Trouble, and whether seconds may mend it.
// Pure. Spec silent: every status but 200; these are the interpretations of sister APIs and of HTTP itself.

import { CertificateTrouble, Trouble } from '../domain/trouble.ts';

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

// Longer waits belong to the queue and the schedule, which do not hold a connection meanwhile.
const longestWaitMs = 10_000;

/** The trouble that a status is; null for an answer to be read. */
export function toStatusTrouble({ status, headers }: Answered, nowMs: number, address?: string): Trouble | null {
  const source = address === undefined ? 'The source' : `The source at ${address}`;
  const retryAfterMs = toRetryAfterMs(headers['retry-after'], headers.date, nowMs);
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (status === 200 || status === 203 || status === 204) return null;
  if (status === 401 || status === 403)
    return new Trouble('refused', `${source} refuses the credential (${status}).`, { status });
  if (status === 404) return new Trouble('missing', 'The source does not have it (404).', { status });
  if (status === 410) return new Trouble('missing', 'The source has taken it away for good (410).', { status });
  if (status === 429) return new Trouble('throttled', `${source} asks for fewer requests (429).`, { status, ...wait });
  if (status === 503 && retryAfterMs !== undefined) {
    return new Trouble('throttled', `${source} is away and says for how long (503).`, { status, retryAfterMs });
  }
  if (status >= 500) return new Trouble('unreachable', `${source} failed (${status}).`, { status });
  if (isRedirect(status))
    return new Trouble('unreachable', `${source} redirects where we do not follow (${status}).`, { status });
  return new Trouble('unreachable', `${source} gave an answer that cannot be used (${status}).`, { status });
}

/** True for a redirect that names another place. */
export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

/** True when asking again within seconds may help: resets, 5xx, short waits, and bodies cut off on the way. */
export function isWorthAnother(trouble: Trouble): boolean {
  const { kind, status, retryAfterMs } = trouble;
  if (trouble instanceof CertificateTrouble) return false;
  if (kind === 'malformed') return true;
  if (kind === 'throttled') return retryAfterMs === undefined || retryAfterMs <= longestWaitMs;
  return kind === 'unreachable' && (status === undefined || status === 408 || status >= 500);
}

// Milliseconds that Retry-After asks to wait; undefined when absent, unreadable, zero or past.
function toRetryAfterMs(retryAfter: string | undefined, date: string | undefined, nowMs: number): number | undefined {
  const text = retryAfter?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000 || undefined;
  // Date.parse would read "-5" as a year; an HTTP date begins with its weekday.
  if (!/^[a-z]{3,9},? /i.test(text)) return undefined;
  // The server's own clock where it shows it: ours may differ.
  const serverNowMs = Date.parse(date ?? '');
  const waitMs = Date.parse(text) - (Number.isNaN(serverNowMs) ? nowMs : serverNowMs);
  return waitMs > 0 ? waitMs : undefined;
}

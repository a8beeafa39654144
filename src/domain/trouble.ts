// One error class for everything that can go wrong outside the process. Its kind decides what happens next. Its message is for people and
// never contains a payload, a credential or a fact about a person.

/**
 * unreachable: no usable answer, try again. throttled: the source limits requests. refused: the credential is not accepted.
 * missing: it is not there (yet). malformed: the answer cannot be parsed. mismatch: the answer contradicts what Intake knows.
 * local: our own disk, database or storage fails.
 */
export type TroubleKind = 'unreachable' | 'throttled' | 'refused' | 'missing' | 'malformed' | 'mismatch' | 'local';

/** A service that Intake depends on, and waits for while it is unavailable. */
export type Dependency = 'source' | 'database' | 'storage';

/** Work that waits for a dependency. Each kind goes on while the others wait. */
export type WaitingTask = 'reading' | 'downloads' | 'deletion';

export interface Wait {
  readonly advertiser: string;
  readonly task: WaitingTask;
  readonly dependency: Dependency;
  /** The failure in words: host, port and error code, never a payload. */
  readonly reason: string;
  readonly since: Date;
}

export interface TroubleFacts {
  readonly at?: Dependency;
  readonly status?: number;
  /** How long to wait, where the other side named a time. */
  readonly retryAfterMs?: Delay | undefined;
  readonly cause?: unknown;
}

/** What source/, store/ and blobs/ throw. `kind` decides what happens next; the rest explains. */
export class Trouble extends Error {
  readonly kind: TroubleKind;
  readonly at: Dependency | undefined;
  readonly status: number | undefined;
  readonly retryAfterMs: Delay | undefined;

  constructor(kind: TroubleKind, message: string, { at, status, retryAfterMs, cause }: TroubleFacts = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.kind = kind;
    this.at = at;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

export const isMissing = (error: unknown): boolean => error instanceof Trouble && error.kind === 'missing';

/** Trouble that does not pass within minutes, so that a command does not wait. */
export abstract class LastingTrouble extends Trouble {}

/** A setting is wrong, which only its use could show. */
export class SettingTrouble extends LastingTrouble {
  constructor(message: string, cause?: unknown, at?: Dependency) {
    super('local', message, { cause, ...(at && { at }) });
  }
}

/** The TLS certificate of the source or the storage is not trusted. A command fails at once; a worker waits, since it may be renewed. */
export class CertificateTrouble extends LastingTrouble {}

/** The database's schema is not the one that this version needs, or could not be migrated to it. */
export class SchemaTrouble extends LastingTrouble {
  readonly next: string;

  constructor(message: string, next: string, cause?: unknown) {
    super('local', message, { cause, at: 'database' });
    this.next = next;
  }
}

/** The source answers, but not in a way that can be believed. */
export class NotBelieved extends LastingTrouble {}

/** The configured blob store does not belong to this database. */
export class WrongStore extends LastingTrouble {}

export class LaneHeld extends LastingTrouble {}

/** Another process has taken over a lane. The state that this process has in memory is stale and must be dropped. */
export class LeaseLost extends LastingTrouble {
  constructor(name: string, lane: string) {
    super('local', `The ${lane} lane of ${name} was taken over by another process; nothing of this step was written.`);
  }
}

/** Another answer showed an application that the source had hidden from this sweep, which must be begun again. */
export class SweepDropped extends LastingTrouble {}

// Failed connections, in the same words for the database, the source and the storage.

/** The error's code, with an explanation where the code does not speak for itself. */
export function toConnectionReason(code: string): string {
  if (/^(ENOTFOUND|EAI_AGAIN|ENODATA|ESERVFAIL|ETIMEOUT)$/.test(code)) return `the name does not resolve, ${code}`;
  // A server without TLS answers the handshake with something else.
  return /^(EPROTO|ERR_SSL_)/.test(code) ? `it does not speak TLS, or another version of it, ${code}` : code;
}

/** OpenSSL's codes for a certificate that is not trusted. */
const certificateCodes = /^(CERT_|CRL_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|INVALID_|PATH_LENGTH|ERROR_IN_)/;

/** What is wrong with a server's certificate; null for another code. `remedy`: where the certificate of its authority belongs. */
export function toCertificateProblem(code: string, server: string, remedy: string): string | null {
  const whose = `the certificate of ${server} is`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH')
    return `${whose} for another name; use the name in the certificate`;
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return `${whose} not valid at this time; renew it, or set this machine's clock right`;
  if (!certificateCodes.test(code)) return null;
  return `${whose} signed by an authority that is not known here; name its certificate ${remedy}`;
}

export function toHostAndPort({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

// How long to wait: after a failure, or because someone outside asked for it, which is bounded where it is parsed.

/** Milliseconds, more than none and at most a day. */
export type Delay = number & { readonly isBounded: true };

const longestMs = 86_400_000;

/** The wait, or a day where it is longer; undefined where there is nothing to wait for. */
export function toDelay(ms: number): Delay | undefined {
  return ms > 0 ? (Math.min(longestMs, Math.ceil(ms)) as Delay) : undefined;
}

/** The wait that a Retry-After header demands; undefined where it is absent, invalid, zero or in the past. */
export function parseRetryAfter(retryAfter: string | undefined, date: string | undefined, nowMs: number) {
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

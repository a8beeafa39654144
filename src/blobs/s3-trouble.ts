// Maps errors of the S3 SDK to Trouble. A message contains only the store's error code and status, never the store's message or the
// request: those may contain names, keys and signed URLs.

import {
  CertificateTrouble,
  Trouble,
  type TroubleKind,
  toCertificateProblem,
  toConnectionReason,
  toDelay,
} from '../domain/trouble.ts';

/** Converts any error of the SDK to Trouble. */
export function toTrouble(error: unknown, bucket: string, address: string): Trouble {
  if (error instanceof Trouble) return error;
  const told = (error ?? {}) as SdkError;
  const [name, code, status] = [toWord(told.name), toWord(told.code), told.$metadata?.httpStatusCode];
  // A Retry-After of zero is ignored, so that the default backoff applies.
  const retryAfterMs = toDelay(Number(told.$response?.headers?.['retry-after']) * 1000);
  const said = status ? `${name || 'no code'}, ${status}` : code || name || 'no answer';
  const toOne = (kind: TroubleKind, message: string, answered = status) =>
    new Trouble(kind, message, { at: 'storage', ...(answered ? { status: answered } : {}), retryAfterMs });

  if (name === 'NoSuchBucket')
    return toOne('local', `There is no bucket ${bucket} at the store at ${address} (${said}).`, 404);
  if (name === 'NoSuchKey' || status === 404) return toOne('missing', 'This blob is not in the store.');
  if (throttles.has(name) || status === 429 || status === 503)
    return toOne('throttled', `The store at ${address} asks for fewer requests (${said}).`);
  if (mismatches.has(name))
    return toOne('mismatch', `The store received bytes that differ from those that were hashed (${said}).`);
  if (redirects.has(name) || status === 301 || status === 307)
    return toOne('local', `Bucket ${bucket} is not in the region that S3_REGION names (${said}).`);
  if (name === 'CredentialsProviderError')
    return toOne('local', 'There are no credentials for the store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.');
  if (status === 401 || status === 403 || name === 'AccessDenied') {
    const how = `check the AWS_* credentials and the bucket's policy`;
    return toOne('local', `The store at ${address} denies access to bucket ${bucket}: ${how} (${said}).`);
  }
  const problem = toCertificateProblem(code, address, 'file in NODE_EXTRA_CA_CERTS');
  if (problem !== null) return new CertificateTrouble('local', `S3_ENDPOINT: ${problem} (${code}).`, { at: 'storage' });
  if (status === undefined)
    return toOne('local', `The store at ${address} cannot be reached (${toConnectionReason(said)}).`);
  return toOne('local', `The store at ${address} failed (${said}).`);
}

const throttles = new Set(['SlowDown', 'Throttling', 'ThrottlingException', 'RequestLimitExceeded', 'TooManyRequests']);
const mismatches = new Set(['BadDigest', 'XAmzContentSHA256Mismatch', 'XAmzContentChecksumMismatch', 'InvalidDigest']);
const redirects = new Set([
  'PermanentRedirect',
  'TemporaryRedirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
]);

interface SdkError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: { readonly headers?: Record<string, string> };
}

/** The name comes from the store's answer, so it is repeated only if it looks like an error code. */
function toWord(text: unknown): string {
  return typeof text === 'string' && /^[A-Za-z0-9_]{1,60}$/.test(text) && text !== 'Error' ? text : '';
}

/** True when the store answered that it does not support this request, or does not permit it. */
export function isUnsupported(error: unknown): boolean {
  if (!(error instanceof Trouble) || error.status === undefined || error.kind === 'throttled') return false;
  const isNoBucket = error.kind === 'local' && error.status === 404;
  return error.status === 501 || (error.status >= 400 && error.status < 500 && !isNoBucket);
}

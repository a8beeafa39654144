// AWS Signature Version 4 as a server checks it, written only from AWS's published description, so that the SDK under test is checked by an
// independent interpretation of the rules.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface SignedRequest {
  readonly method: string;
  /** As sent on the request line. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
}

export interface Keeper {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
  readonly now: () => number;
}

/** The error code and status with which S3 refuses a request. */
export class Refusal extends Error {
  readonly code: string;
  readonly status: number;
  constructor(code: string, status = 403) {
    super(code);
    this.code = code;
    this.status = status;
  }
}

/** Checks a request signed by header or by query. Returns the payload hash that was signed: hex, or UNSIGNED-PAYLOAD. */
export function verifySignature(request: SignedRequest, keeper: Keeper): string {
  const query = new URL(request.target, 'http://x').searchParams;
  return query.has('X-Amz-Signature') ? verifyQuery(request, query, keeper) : verifyHeader(request, keeper);
}

const maxSkewMs = 15 * 60 * 1000;
const algorithm = 'AWS4-HMAC-SHA256';

function verifyHeader(request: SignedRequest, keeper: Keeper): string {
  const { headers } = request;
  const match = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? '',
  );
  if (!match) throw new Refusal('AccessDenied');
  const [, credential = '', signedHeaders = '', signature = ''] = match;
  const at = String(headers['x-amz-date'] ?? '');
  if (Math.abs(parseTime(at) - keeper.now()) > maxSkewMs) throw new Refusal('RequestTimeTooSkewed');
  const payloadHash = headers['x-amz-content-sha256'];
  if (typeof payloadHash !== 'string') throw new Refusal('MissingSecurityHeader', 400);
  // The signature must cover every header that changes the meaning of the request.
  const names = signedHeaders.split(';');
  for (const name of Object.keys(headers)) {
    const matters = name === 'host' || name === 'content-type' || name === 'content-md5' || name.startsWith('x-amz-');
    if (matters && !names.includes(name)) throw new Refusal('AccessDenied');
  }
  compare(signature, { request, credential, signedHeaders, at, payloadHash, keeper, drop: '' });
  return payloadHash;
}

function verifyQuery(request: SignedRequest, query: URLSearchParams, keeper: Keeper): string {
  const parameter = (name: string) => query.get(`X-Amz-${name}`) ?? '';
  if (parameter('Algorithm') !== algorithm) throw new Refusal('AuthorizationQueryParametersError', 400);
  const seconds = Number(parameter('Expires'));
  if (!(seconds >= 1 && seconds <= 604_800)) throw new Refusal('AuthorizationQueryParametersError', 400);
  const at = parameter('Date');
  const age = keeper.now() - parseTime(at);
  if (age > seconds * 1000 || age < -maxSkewMs) throw new Refusal('AccessDenied');
  const signedHeaders = parameter('SignedHeaders');
  if (!signedHeaders.split(';').includes('host')) throw new Refusal('AccessDenied');
  const payloadHash = 'UNSIGNED-PAYLOAD';
  compare(parameter('Signature'), {
    request,
    credential: parameter('Credential'),
    signedHeaders,
    at,
    payloadHash,
    keeper,
    drop: 'X-Amz-Signature',
  });
  return payloadHash;
}

interface Claim {
  readonly request: SignedRequest;
  readonly credential: string;
  readonly signedHeaders: string;
  readonly at: string;
  readonly payloadHash: string;
  readonly keeper: Keeper;
  /** The query parameter that holds the signature and is therefore not signed. */
  readonly drop: string;
}

function compare(
  signature: string,
  { request, credential, signedHeaders, at, payloadHash, keeper, drop }: Claim,
): void {
  const [accessKeyId, day = '', region = '', service, end] = credential.split('/');
  if (accessKeyId !== keeper.accessKeyId) throw new Refusal('InvalidAccessKeyId');
  if (region !== keeper.region) throw new Refusal('AuthorizationHeaderMalformed', 400);
  if (service !== 's3' || end !== 'aws4_request' || day !== at.slice(0, 8)) throw new Refusal('AccessDenied');

  const [path = '', search = ''] = request.target.split('?');
  const canonicalRequest = [
    request.method,
    // S3 encodes the path once; other services encode it twice.
    path
      .split('/')
      .map((part) => encode(decodeURIComponent(part)))
      .join('/'),
    toCanonicalQuery(search, drop),
    ...signedHeaders.split(';').map(
      (name) =>
        `${name}:${String(request.headers[name] ?? '')
          .trim()
          .replace(/ +/g, ' ')}`,
    ),
    '',
    signedHeaders,
    payloadHash,
  ].join('\n');
  const stringToSign = [algorithm, at, [day, region, service, end].join('/'), sha256Hex(canonicalRequest)].join('\n');
  const key = [day, region, service, end].reduce<Buffer | string>(
    (previous, part) => hmac(previous, part),
    `AWS4${keeper.secretAccessKey}`,
  );
  const expected = hmac(key, stringToSign);
  const given = Buffer.from(signature, 'hex');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw new Refusal('SignatureDoesNotMatch');
}

function toCanonicalQuery(search: string, drop: string): string {
  return search
    .split('&')
    .filter((pair) => pair !== '' && !pair.startsWith(`${drop}=`))
    .map((pair) => {
      const [name = '', value = ''] = pair.split('=');
      return `${encode(decodeURIComponent(name))}=${encode(decodeURIComponent(value))}`;
    })
    .sort((a, b) => (a < b ? -1 : 1))
    .join('&');
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function parseTime(text: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (!match) throw new Refusal('AccessDenied');
  const [, year, month, day, hour, minute, second] = match.map(Number) as [number, ...number[]];
  return Date.UTC(year ?? 0, (month ?? 1) - 1, day, hour, minute, second);
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

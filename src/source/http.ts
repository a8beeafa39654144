// The only code that sends requests to the source. It handles timeouts, retries within seconds, Retry-After and redirects, maps statuses to
// Trouble, and reads bodies up to a limit. The credential is sent to the configured origin only and never appears in an error.

import { pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import pRetry from 'p-retry';
import { Agent, type Dispatcher } from 'undici';
import { version } from '../domain/schema.ts';
import {
  CertificateTrouble,
  type Delay,
  parseRetryAfter,
  Trouble,
  toCertificateProblem,
  toConnectionReason,
  toHostAndPort,
} from '../domain/trouble.ts';
import { refuse } from './parse/values.ts';

export interface HttpOptions {
  readonly url: string;
  /** Sent as SWS with every request that has no `authorization`. Called for each request, so that it can be rotated. */
  readonly credential?: () => string;
  /** A request fails after this long, even while bytes arrive. */
  readonly totalTimeoutMs: number;
  readonly connections: Agent;
  /** Awaited before every request, retries included: the shared rate limit. */
  readonly takeSlot?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Called with the wait that the source demands, and awaited before the next request. */
  readonly onRetryAfter?: ((retryAfterMs: Delay) => Promise<void>) | undefined;
  /** The delay before the first retry; it doubles for each further retry, with jitter. */
  readonly retryDelayMs?: number | undefined;
}

interface HttpRequest {
  readonly path: string;
  readonly accept: string;
  /** True when the source serves other requests: a Retry-After then applies to this request alone. */
  readonly isServed?: boolean | undefined;
  /** The Authorization header, sent instead of the credential. A request with it follows no redirect. */
  readonly authorization?: string;
  readonly retries?: number | undefined;
  readonly signal: AbortSignal;
}

type HttpPost = HttpRequest & { readonly contentType: string; readonly body: string };

/** An open answer. Disposing discards the unread part of the body and closes the connection. */
export interface HttpAnswer extends AsyncDisposable {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The body has a length or a last chunk. Otherwise it ends with its connection, like a truncated one. */
  readonly isFramed: boolean;
  /** The bytes as received, not inflated. A connection that fails throws Trouble here. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** At most `most` connections to an origin, shared by its accounts. A request on them fails after `idleTimeoutMs` without a byte. */
export function openConnections(most: number, idleTimeoutMs: number): Agent {
  const timeouts = { headersTimeout: idleTimeoutMs, bodyTimeout: idleTimeoutMs, connectTimeout: idleTimeoutMs };
  return new Agent({ connections: most, ...timeouts, allowH2: false });
}

const redirects = [301, 302, 303, 307, 308];

/** Creates the client of one origin; no connection is opened before the first request. */
export function createHttp(options: HttpOptions) {
  const base = new URL(options.url.endsWith('/') ? options.url : `${options.url}/`);
  const address = toHostAndPort(base);

  async function requestOnce(url: URL, request: HttpRequest | HttpPost): Promise<Dispatcher.ResponseData> {
    await options.takeSlot?.(request.signal);
    const headers = {
      authorization: request.authorization ?? toSws(options.credential),
      accept: request.accept,
      'user-agent': `intake/${version}`,
      // Caches on the way do not answer.
      'cache-control': 'no-cache',
      pragma: 'no-cache',
    };
    try {
      return await options.connections.request({
        origin: base.origin,
        path: url.pathname + url.search,
        signal: AbortSignal.any([request.signal, AbortSignal.timeout(options.totalTimeoutMs)]),
        ...('body' in request
          ? { method: 'POST', headers: { ...headers, 'content-type': request.contentType }, body: request.body }
          : { method: 'GET', headers }),
      });
    } catch (error) {
      throw toTrouble(error, request.signal, address);
    }
  }

  async function openOnce(request: HttpRequest): Promise<HttpAnswer> {
    const first = new URL(request.path, base);
    let response = await requestOnce(first, request);
    if (redirects.includes(response.statusCode) && request.authorization === undefined) {
      response = await requestOnce(toRedirectTarget(response, first, address), request);
    }
    const answer = toAnswer(response, request.signal, address);
    const trouble = toStatusTrouble(answer, Date.now(), address);
    if (trouble === null) return answer;
    discard(response);
    if (trouble.kind === 'throttled' && trouble.retryAfterMs !== undefined && request.isServed !== true) {
      await options.onRetryAfter?.(trouble.retryAfterMs);
    }
    throw trouble;
  }

  function retrying<T>({ signal, retries = 3 }: HttpRequest, attempt: () => Promise<T>): Promise<T> {
    return pRetry(attempt, {
      retries,
      minTimeout: options.retryDelayMs ?? 300,
      randomize: true,
      // Once a request and its retries have used up the total timeout, there is no further retry.
      maxRetryTime: options.totalTimeoutMs,
      signal,
      shouldRetry: async ({ error }) => {
        if (!(error instanceof Trouble) || !isRetryable(error)) return false;
        // An abort ends the pause; p-retry then throws the signal's reason.
        await sleep(error.retryAfterMs ?? 0, undefined, { signal }).catch(() => undefined);
        return true;
      },
    });
  }

  return {
    /** Requests and reads the whole answer. When `read` throws unreachable or malformed, the request is repeated a few times. */
    get: <T>(request: HttpRequest, read: (answer: HttpAnswer) => Promise<T>): Promise<T> =>
      retrying(request, async () => {
        await using answer = await openOnce(request);
        return await read(answer);
      }),
    /** Opens an answer whose body the caller reads. Retries only until the headers have arrived. */
    open: (request: HttpRequest): Promise<HttpAnswer> => retrying(request, () => openOnce(request)),
    /** Sends once, without retries: the source may have acted although its answer was lost. `read` gets every status. */
    async post<T>(request: HttpPost, read: (answer: HttpAnswer) => Promise<T>): Promise<T> {
      await using answer = toAnswer(await requestOnce(new URL(request.path, base), request), request.signal, address);
      return await read(answer);
    },
  };
}

// Spec silent: every status but 200; they are interpreted as sister APIs and HTTP itself define them.

type Answered = Pick<HttpAnswer, 'status' | 'headers'>;

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
  const what = status >= 500 ? 'failed' : 'answered with an unexpected status';
  return new Trouble('unreachable', `${source} ${what} (${status}).`, { status });
}

// The queue and the schedule handle longer waits: they hold neither a lane nor a claim meanwhile.
const longestWaitMs = 10_000;

/** True when a retry within seconds may help: after connection resets, 408, 5xx, short waits and unparseable bodies. */
export function isRetryable(trouble: Trouble): boolean {
  const { kind, status, retryAfterMs } = trouble;
  if (trouble instanceof CertificateTrouble) return false;
  if (kind === 'throttled') return retryAfterMs === undefined || retryAfterMs <= longestWaitMs;
  return kind === 'malformed' || (kind === 'unreachable' && (status === undefined || status === 408 || status >= 500));
}

// Spec: Authentication 2. For an invalid header value undici throws an error that might quote the credential, so it is checked first.
function toSws(credential: HttpOptions['credential']): string {
  const secret = (credential?.() ?? '').trim();
  if (!/^[\x20-\x7e]+$/.test(secret)) throw new Trouble('refused', 'The credential is empty or not plain ASCII.');
  return `SWS ${secret}`;
}

function toAnswer(response: Dispatcher.ResponseData, signal: AbortSignal, address: string): HttpAnswer {
  const headers = Object.entries(response.headers).map(([name, value]) => [name, [value].flat()[0]]);
  async function* read(): AsyncIterable<Uint8Array> {
    try {
      yield* response.body;
    } catch (error) {
      throw toTrouble(error, signal, address);
    }
  }
  return {
    status: response.statusCode,
    headers: Object.fromEntries(headers),
    isFramed:
      'content-length' in response.headers ||
      `${response.headers['transfer-encoding']}`.split(',').at(-1)?.trim().toLowerCase() === 'chunked',
    body: read(),
    async [Symbol.asyncDispose]() {
      response.body.on('error', () => undefined).destroy();
    },
  };
}

// Reads a small rest of the body so that the connection can be reused; a larger rest closes the connection.
function discard(response: Dispatcher.ResponseData): void {
  response.body.dump({ limit: 65_536 }).catch(() => undefined);
}

function toRedirectTarget(response: Dispatcher.ResponseData, from: URL, address: string): URL {
  discard(response);
  const location = [response.headers.location].flat()[0] ?? '';
  const target = URL.parse(location, from.href);
  if (target?.origin === from.origin) return target;
  const where =
    target === null ? 'to an invalid address' : 'to another origin; Intake does not send the credential there';
  const { statusCode: status } = response;
  throw new Trouble('unreachable', `The source at ${address} redirects ${where} (${status}).`, { status });
}

// Never passes on undici's own error: it may contain what was sent (the credential) or received (personal data).
function toTrouble(error: unknown, signal: AbortSignal, address: string): unknown {
  if (signal.aborted) return signal.reason;
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  const at = 'source';
  if (name === 'TimeoutError') {
    return new Trouble('unreachable', `A request to the source at ${address} exceeded its total timeout.`, { at });
  }
  const reason = typeof code === 'string' && /^\w+$/.test(code) ? code : 'no reason given';
  const problem = toCertificateProblem(reason, address, 'file in NODE_EXTRA_CA_CERTS');
  if (problem !== null) return new CertificateTrouble('unreachable', `SOURCE_URL: ${problem} (${reason}).`, { at });
  const why = toConnectionReason(reason);
  return new Trouble('unreachable', `The connection to the source at ${address} failed (${why}).`, { at });
}

const inflaters = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate, br: createBrotliDecompress };

/** Reads a body up to `maxBytes`. A larger body ends the connection; the first `maxBytes` are returned, and `whole` is false. */
export async function readBody(answer: HttpAnswer, maxBytes: number, onBytes?: () => void) {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of inflate(answer)) {
    onBytes?.();
    chunks.push(chunk);
    size += chunk.length;
    // Leaving the loop destroys the stream and its connection.
    if (size > maxBytes) return { bytes: Buffer.concat(chunks, maxBytes), whole: false };
  }
  return { bytes: Buffer.concat(chunks, size), whole: true };
}

/** Intake asks for no compression. The limit counts inflated bytes, so that a decompression bomb cannot exceed it. */
export async function* inflate({ body, headers }: Pick<HttpAnswer, 'body' | 'headers'>) {
  const encoding = (headers['content-encoding'] ?? '').trim().toLowerCase();
  if (encoding === 'identity' || encoding === '') return yield* body;
  if (!Object.hasOwn(inflaters, encoding)) refuse('has an unsupported Content-Encoding');
  const inflater = inflaters[encoding as keyof typeof inflaters]();
  try {
    // The iteration throws the errors; pipeline requires a callback all the same.
    yield* pipeline(body, inflater, () => undefined) as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (typeof (error as { errno?: unknown }).errno !== 'number') throw error;
    refuse('is compressed, and truncated or damaged');
  }
}

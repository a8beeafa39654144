// The only code that sends requests to the source: timeouts, retries of seconds, Retry-After, redirects, byte limits, status to
// Trouble. The credential goes to the configured origin and nowhere else, and into no error. Knows nothing of applications.

import { setTimeout as sleep } from 'node:timers/promises';
import pRetry from 'p-retry';
import { type Dispatcher, Pool } from 'undici';
import { toCertificateProblem, toConnectionReason } from '../domain/connection-error.ts';
import { CertificateTrouble, Trouble } from '../domain/trouble.ts';
import { isRedirect, isWorthAnother, toStatusTrouble } from './status.ts';

/** Where to, as whom, and with which timeouts. */
export interface HttpOptions {
  /** Scheme, host and optional path. */
  readonly url: string;
  /** Sent as SWS with every request that brings no authorization of its own; read anew for each, so that it can be rotated. */
  readonly credential?: string | (() => string | Promise<string>) | undefined;
  /** No byte for this long ends a request. */
  readonly idleTimeoutMs: number;
  /** A whole request ends after this, however steadily it drips. */
  readonly totalTimeoutMs: number;
  /** How many at most, or those of an origin that several accounts share. */
  readonly connections: number | Connections;
  readonly userAgent: string;
  /** Awaited before every single request: the shared rate budget. */
  readonly takeSlot?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Told how long the source wants to be left alone, before anything else is asked. */
  readonly onRetryAfter?: ((retryAfterMs: number) => Promise<void>) | undefined;
  /** The first wait between tries, doubled and spread for each further one. */
  readonly retryDelayMs?: number | undefined;
}

interface HttpRequest {
  /** Below the base URL, with its query. */
  readonly path: string;
  readonly accept: string;
  /** Asks caches on the way to step aside. */
  readonly fresh?: boolean;
  /** Others are known to be served: a Retry-After is about this request alone. */
  readonly isKnownServed?: boolean | undefined;
  /** The whole header, in place of the credential. Such a request is sent where it is meant to go: no redirect is followed. */
  readonly authorization?: string;
  readonly signal: AbortSignal;
}

interface HttpPost extends HttpRequest {
  readonly contentType: string;
  readonly body: string;
}

/** An open answer. Disposing drops what was not read, and its connection. */
export interface HttpAnswer extends AsyncDisposable {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The bytes as they come, not inflated; a failing connection throws Trouble here. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The HTTP client of one origin; closing it ends its connections. */
export interface Http extends AsyncDisposable {
  /** Asks and reads the whole answer: what `read` throws as unreachable or malformed is asked again, a few times. */
  get<T>(request: HttpRequest, read: (answer: HttpAnswer) => Promise<T>): Promise<T>;
  /** Opens an answer to be read by the caller; tries again only until the headers are there. */
  open(request: HttpRequest): Promise<HttpAnswer>;
  /** Sends once, whatever happens: a lost answer does not mean that nothing was done. Every status comes to `read`. */
  post<T>(request: HttpPost, read: (answer: HttpAnswer) => Promise<T>): Promise<T>;
}

/** Connections to one origin. */
export interface Connections extends AsyncDisposable {
  readonly pool: Pool;
}

/** Connections that several accounts at one origin share; nothing is opened before the first request. */
export function openConnections(
  options: Pick<HttpOptions, 'url' | 'idleTimeoutMs'> & { readonly connections: number },
): Connections {
  const pool = new Pool(new URL(options.url).origin, {
    connections: options.connections,
    headersTimeout: options.idleTimeoutMs,
    bodyTimeout: options.idleTimeoutMs,
    connectTimeout: options.idleTimeoutMs,
    allowH2: false,
  });
  return { pool, [Symbol.asyncDispose]: () => pool.destroy() };
}

const retries = 3;
const discardedBytes = 65_536;

/** Creates the client of one origin; nothing is opened before the first request. */
export function createHttp(options: HttpOptions): Http {
  const base = new URL(options.url.endsWith('/') ? options.url : `${options.url}/`);
  const { connections } = options;
  const isShared = typeof connections !== 'number';
  const address = `${base.hostname}:${base.port || (base.protocol === 'https:' ? 443 : 80)}`;
  const { pool } = isShared ? connections : openConnections({ ...options, connections });

  async function requestOnce(url: URL, request: HttpRequest | HttpPost): Promise<Dispatcher.ResponseData> {
    await options.takeSlot?.(request.signal);
    const authorization = request.authorization ?? (await toSws(options.credential));
    const headers = {
      authorization,
      accept: request.accept,
      'user-agent': options.userAgent,
      ...(request.fresh === true && { 'cache-control': 'no-cache', pragma: 'no-cache' }),
    };
    try {
      return await pool.request({
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
    if (isRedirect(response.statusCode) && request.authorization === undefined) {
      response = await requestOnce(toRedirectTarget(response, first, address), request);
    }
    const answer = toAnswer(response, request.signal, address);
    const trouble = toStatusTrouble(answer, Date.now(), address);
    if (trouble === null) return answer;
    discard(response);
    if (trouble.kind === 'throttled' && trouble.retryAfterMs !== undefined && request.isKnownServed !== true) {
      await options.onRetryAfter?.(trouble.retryAfterMs);
    }
    throw trouble;
  }

  function retrying<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    return pRetry(attempt, {
      retries,
      minTimeout: options.retryDelayMs ?? 300,
      randomize: true,
      // A request that has used up its whole time is not given it again.
      maxRetryTime: options.totalTimeoutMs,
      signal,
      shouldRetry: ({ error }) => error instanceof Trouble && isWorthAnother(error),
      onFailedAttempt: async ({ error, retriesLeft }) => {
        // Also called after the last failure.
        if (retriesLeft === 0 || !(error instanceof Trouble) || !isWorthAnother(error)) return;
        if (error.retryAfterMs !== undefined) await pause(error.retryAfterMs, signal);
      },
    });
  }

  return {
    get: (request, read) =>
      retrying(request.signal, async () => {
        await using answer = await openOnce(request);
        return await read(answer);
      }),
    open: (request) => retrying(request.signal, () => openOnce(request)),
    async post(request, read) {
      await using answer = toAnswer(await requestOnce(new URL(request.path, base), request), request.signal, address);
      return await read(answer);
    },
    async [Symbol.asyncDispose]() {
      if (!isShared) await pool.destroy();
    },
  };
}

// Spec: Authentication 2. An invalid header value would be thrown back at us by the client, and no one knows in how many words.
async function toSws(credential: HttpOptions['credential']): Promise<string> {
  const secret = (typeof credential === 'function' ? await credential() : (credential ?? '')).trim();
  if (!/^[\x20-\x7e]+$/.test(secret)) throw new Trouble('refused', 'The credential is empty or not plain ASCII.');
  return `SWS ${secret}`;
}

// An abort ends the pause; p-retry then throws the signal's own reason.
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

function toAnswer(response: Dispatcher.ResponseData, signal: AbortSignal, address: string): HttpAnswer {
  const headers = Object.entries(response.headers).map(([name, value]) => [name, [value].flat()[0]]);
  return {
    status: response.statusCode,
    headers: Object.fromEntries(headers),
    body: toBytes(response, signal, address),
    async [Symbol.asyncDispose]() {
      response.body.on('error', () => undefined).destroy();
    },
  };
}

async function* toBytes(
  response: Dispatcher.ResponseData,
  signal: AbortSignal,
  address: string,
): AsyncGenerator<Uint8Array> {
  try {
    yield* response.body as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw toTrouble(error, signal, address);
  }
}

// A small rest is read so that the connection can serve again; a large or slow one is cut off.
function discard(response: Dispatcher.ResponseData): void {
  response.body.dump({ limit: discardedBytes }).catch(() => undefined);
}

function toRedirectTarget(response: Dispatcher.ResponseData, from: URL, address: string): URL {
  discard(response);
  const location = [response.headers.location].flat()[0] ?? '';
  const target = URL.parse(location, from.href);
  if (target?.origin === from.origin) return target;
  const where = target === null ? 'nowhere' : 'to another origin, where neither we nor the credential go';
  const { statusCode: status } = response;
  throw new Trouble('unreachable', `The source at ${address} redirects ${where} (${status}).`, { status });
}

// Never the client's own error: it may hold what was sent (the credential) or received (people).
function toTrouble(error: unknown, signal: AbortSignal, address: string): unknown {
  if (signal.aborted) return signal.reason;
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  const at = 'source';
  if (name === 'TimeoutError') {
    return new Trouble('unreachable', `The source at ${address} took longer than a whole request may.`, { at });
  }
  const reason = typeof code === 'string' && /^\w+$/.test(code) ? code : 'no reason given';
  const problem = toCertificateProblem(reason, address, 'file in NODE_EXTRA_CA_CERTS');
  if (problem !== null) return new CertificateTrouble(at, `SOURCE_URL: ${problem} (${reason}).`);
  const why = toConnectionReason(reason);
  return new Trouble('unreachable', `The connection to the source at ${address} failed (${why}).`, { at });
}

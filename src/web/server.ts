// Opens a port for the admin or the prefill routes and closes it again: idle connections at once, requests in progress after a limit.
// Every answer of both has the same headers.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';
import { type ContentSecurityPolicyOptionHandler, secureHeaders } from 'hono/secure-headers';
import { SettingTrouble } from '../domain/trouble.ts';

/** A listening server. Disposing it accepts no new requests and waits up to `closingMs` for those in progress. */
export interface HttpServer extends AsyncDisposable {
  /** With the actual port, also where port 0 was requested. */
  readonly url: string;
}

const mostConnections = 2_000;
/** The most connections without a request in hand. The oldest makes room: a browser sends its request as soon as it is connected. */
const mostSilent = 500;
/** Limits for untrusted clients: size of the headers, time to send them and the whole request. Node checks every 5 s. */
const portLimits = {
  maxHeaderSize: 16_384,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  requireHostHeader: false,
};

interface PortOptions {
  /** IPv6 in brackets. */
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly fetch: Parameters<typeof getRequestListener>[0];
  /** The setting that names the port, for the error when it is taken. */
  readonly setting: string;
  /** How long requests in progress may take once the server closes. */
  readonly closingMs: number;
  /** A connection is closed after this long without a byte, one whose answer is not read after twice that. A prefill callback takes 60 s. */
  readonly silenceMs?: number;
}

export async function openServer(options: PortOptions): Promise<HttpServer> {
  const { host, port, fetch, closingMs, silenceMs = 75_000 } = options;
  const answer = getRequestListener(fetch);
  const open = new Set<Socket>();
  const inHand = new Set<Socket>();
  const server = createServer(portLimits);
  const take = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    if (inHand.has(socket)) return stopParsing(socket);
    inHand.add(socket);
    response.once('close', () => inHand.delete(socket) && makeRoom());
    response.once('finish', () => request.complete || limitRest(request));
    if (isPlain(request)) void answer(request, response);
    else response.writeHead(400, { Connection: 'close' }).end();
  };
  // Every request that is read comes here, also one without a host or with an expectation that is none.
  server.on('request', take).on('checkExpectation', take);
  server.maxConnections = mostConnections;
  server.setTimeout(silenceMs);
  const makeRoom = () => {
    const over = open.size - inHand.size - mostSilent;
    if (over > 0) for (const oldest of open.difference(inHand).values().take(over)) oldest.destroy();
  };
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => open.delete(socket));
    open.add(socket);
    makeRoom();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host.replace(/^\[|\]$/g, ''), resolve);
  }).catch((cause: NodeJS.ErrnoException) => {
    throw new SettingTrouble(`${toListenProblem(cause.code, options)} (${cause.code}).`, cause);
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${taken}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      // A connection that was busy at the start becomes idle a moment later, and keep-alive would hold it open for seconds.
      const closingIdle = setInterval(() => server.closeIdleConnections(), 20);
      const late = setTimeout(() => server.closeAllConnections(), closingMs);
      await closed;
      clearInterval(closingIdle);
      clearTimeout(late);
    },
  };
}

/**
 * Closes a connection that sends a request before the last one is answered, as no browser or proxy does. Node would take all that came with
 * it, 2,400 in 64 kB, and end each with an error: 0.3 s of the event loop. So its parser is told that no HTTP follows, which is 2.
 */
function stopParsing(socket: Socket & { readonly parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
  socket.destroy();
}

/**
 * Closes a connection that goes on with a request after its answer. A short rest is read, because its client may send the next request. A
 * long one in chunks of one byte holds the event loop for 70 ms, and a hundred of them for 7 s.
 */
function limitRest(request: IncomingMessage): void {
  const { socket } = request;
  const most = socket.bytesRead + 16_384;
  const count = () => {
    if (request.complete) socket.off('data', count);
    else if (socket.bytesRead > most) socket.destroy();
  };
  socket.on('data', count);
}

/** The adaptor makes a URL of the host, and fails later where it is none. That takes quadratic time: 0.2 s for 16 kB of punycode. */
function isPlain({ headers: { host = '' }, url }: IncomingMessage): boolean {
  return url?.startsWith('/') === true && host.length < 256 && URL.canParse(`http://${host}`);
}

function toListenProblem(code: string | undefined, { setting, host, port }: PortOptions): string {
  if (code === 'EADDRINUSE') return `${setting}: port ${port} of ${host} is taken by another process`;
  if (code === 'EADDRNOTAVAIL') return `${setting.replace('PORT', 'HOST')}: ${host} is not an address of this machine`;
  return `${setting}: port ${port} cannot be opened on ${host}`;
}

type Sources = (string | ContentSecurityPolicyOptionHandler)[];

/** The headers of every answer: a page takes nothing but what `sources` name, is in no frame and in no cache. */
export function createHeaders(sources: { styleSrc: Sources; imgSrc?: Sources }, isSecure: boolean): MiddlewareHandler {
  const none = ["'none'"];
  const setSecure = secureHeaders({
    contentSecurityPolicy: { defaultSrc: none, ...sources, baseUri: none, formAction: none, frameAncestors: none },
    referrerPolicy: 'no-referrer',
    xFrameOptions: 'DENY',
    strictTransportSecurity: isSecure && 'max-age=31536000',
  });
  return async (context, next) => {
    await setSecure(context, next);
    context.header('Cache-Control', 'no-store');
  };
}

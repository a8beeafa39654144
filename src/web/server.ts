// Opens a port for the admin or the prefill routes and closes it again: idle connections at once, requests in progress after a limit.
// Knows nothing of the routes.

import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { SettingTrouble } from '../domain/trouble.ts';

/** A listening server. Disposing it accepts no new requests and waits up to `closingMs` for those in progress. */
export interface HttpServer extends AsyncDisposable {
  /** With the actual port, also where port 0 was requested. */
  readonly url: string;
}

/** Limits for untrusted clients: connections, size of the headers, time to send them and the whole request. Node checks every 5 s. */
const mostConnections = 2_000;
/** The most connections without a request in hand. A browser sends its request at once, so the longest silent one makes room for it. */
const mostSilent = 500;
/** A connection is closed after this long without a byte, and one whose answer is not read after twice that. A callback takes 60 s. */
const silenceMs = 75_000;
const portLimits = {
  maxHeaderSize: 16_384,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
};

/** Starts listening; port 0 takes a free port. */
export async function openServer(options: {
  readonly host: string;
  readonly port: number;
  readonly fetch: Parameters<typeof createAdaptorServer>[0]['fetch'];
  /** The setting that names the port, for the error when it is taken. */
  readonly setting: string;
  /** How long requests in progress may take once the server closes. */
  readonly closingMs: number;
}): Promise<HttpServer> {
  const { host, port, fetch, setting, closingMs } = options;
  const server = createAdaptorServer({ fetch, serverOptions: portLimits }) as Server;
  server.maxConnections = mostConnections;
  server.setTimeout(silenceMs);
  const silent = new Set<Socket>();
  const wait = (socket: Socket) => {
    if (!socket.destroyed) silent.add(socket);
    for (const longest of silent.values().take(Math.max(0, silent.size - mostSilent))) longest.destroy();
  };
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => silent.delete(socket));
    wait(socket);
  });
  server.on('request', ({ socket }, response) => {
    silent.delete(socket);
    response.once('close', () => wait(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host.replace(/^\[|\]$/g, ''), resolve);
  }).catch((cause: NodeJS.ErrnoException) => {
    const problem = toListenProblem(cause.code, setting, options);
    throw new SettingTrouble(`${problem} (${cause.code}).`, cause);
  });
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${toHostName(host)}:${taken}`,
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

function toListenProblem(
  code: string | undefined,
  setting: string,
  { host, port }: { readonly host: string; readonly port: number },
): string {
  if (code === 'EADDRINUSE') return `${setting}: port ${port} of ${host} is taken by another process`;
  if (code === 'EADDRNOTAVAIL') return `${setting.replace('PORT', 'HOST')}: ${host} is not an address of this machine`;
  return `${setting}: port ${port} cannot be opened on ${host}`;
}

/** A host as written in a URL: IPv6 in brackets. */
export function toHostName(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

// Listens on a port for a face of Intake and stops again: what is idle is closed, what is being answered has its time.
// Knows nothing of what is answered.

import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { SettingTrouble } from '../domain/trouble.ts';

/** A listening server; closing it takes no new requests and waits for those under way, as long as it was told. */
export interface HttpServer extends AsyncDisposable {
  /** With the port that was really taken. */
  readonly url: string;
}

/** What a port allows a stranger: so long a head, so much time for it, and so much for a whole request; looked at every few seconds. */
const portLimits = {
  maxHeaderSize: 16_384,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
};

/** Starts to listen; port 0 takes a free one. */
export async function openServer(options: {
  readonly host: string;
  readonly port: number;
  readonly fetch: Parameters<typeof createAdaptorServer>[0]['fetch'];
  /** The setting that names the port, for the error when it is taken. */
  readonly setting: string;
  /** What is still being answered when it closes may take so long. */
  readonly closingMs: number;
}): Promise<HttpServer> {
  const { host, port, fetch, setting, closingMs } = options;
  const server = createAdaptorServer({ fetch, serverOptions: portLimits });
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
      if (!('closeIdleConnections' in server)) return void (await closed);
      // A connection that was answering when we began becomes idle a moment later, and would be kept for seconds.
      const sweeping = setInterval(() => server.closeIdleConnections(), 20);
      const late = setTimeout(() => server.closeAllConnections(), closingMs);
      await closed;
      clearInterval(sweeping);
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
  if (code === 'EADDRNOTAVAIL') return `${setting.replace('PORT', 'HOST')}: ${host} is no address of this machine`;
  return `${setting}: port ${port} cannot be opened on ${host}`;
}

/** A host as it stands in an address: IPv6 in brackets. */
export function toHostName(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

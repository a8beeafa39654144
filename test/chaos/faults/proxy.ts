// A TCP proxy that plays the network between a worker and a service, and misbehaves on demand. It handles only bytes and connections.

import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenLocally } from '../../support/servers/local-server.ts';

/** How bytes pass: at once, delayed, in small pieces, not at all until the mode changes; `cut` also resets new connections. */
export type ProxyMode = 'open' | 'late' | 'slow' | 'stalled' | 'cut';

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  mode: ProxyMode;
  /** Resets every existing connection. */
  cut(): void;
  /** Existing connections stay open but never carry a byte again; new connections work. */
  deaden(): void;
}

const lateMs = 120;
const slowPieceBytes = 400;
const slowEveryMs = 8;

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  isDead: boolean;
}

/** Opens a proxy on a free port that forwards to `targetPort` on this machine. */
export async function openProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();

  async function forward(chunk: Buffer, to: Socket): Promise<void> {
    while (proxy.mode === 'stalled') await sleep(20);
    if (proxy.mode === 'late') await sleep(lateMs);
    if (proxy.mode !== 'slow') return void to.write(chunk);
    for (let at = 0; at < chunk.length; at += slowPieceBytes) {
      to.write(chunk.subarray(at, at + slowPieceBytes));
      await sleep(slowEveryMs);
    }
  }

  function pass(pair: Pair, from: Socket, to: Socket): void {
    from.on('data', (chunk: Buffer) => {
      if (pair.isDead) return;
      from.pause();
      // Pausing also delays the end of the stream, so the bytes and the end stay in order.
      void forward(chunk, to).then(() => from.resume());
    });
    from.on('end', () => pair.isDead || to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => {
      if (!pair.isDead) to.destroy();
      pairs.delete(pair);
    });
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (proxy.mode === 'cut') return void client.resetAndDestroy();
    const pair: Pair = { client, server: connect({ port: targetPort, host: '127.0.0.1' }), isDead: false };
    pairs.add(pair);
    pass(pair, client, pair.server);
    pass(pair, pair.server, client);
  });
  const local = await listenLocally(server);

  const proxy: TcpProxy = {
    port: local.port,
    mode: 'open',
    cut() {
      for (const { client, server: behind } of pairs) {
        client.resetAndDestroy();
        behind.destroy();
      }
    },
    deaden() {
      for (const pair of pairs) {
        pair.isDead = true;
        // The server side stays open until the client gives up, as behind a firewall that dropped the connection state.
        pair.client.on('close', () => pair.server.destroy());
      }
    },
    [Symbol.asyncDispose]() {
      proxy.mode = 'open';
      return local[Symbol.asyncDispose]();
    },
  };
  return proxy;
}

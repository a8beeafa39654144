// A TCP proxy that can be told to misbehave: the network between a worker and what it talks to. It knows bytes and connections only.

import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How bytes pass: at once, after a while, a few at a time, not at all while it lasts, or not even a connection. */
export type ProxyMode = 'open' | 'late' | 'slow' | 'stalled' | 'cut';

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  mode: ProxyMode;
  /** Resets every connection there is. */
  cut(): void;
  /** The connections there are stay open and never carry a byte again; new ones work. */
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

/** Opens one on a free port before `targetPort` of this machine. */
export async function openProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  const sockets = new Set<Socket>();

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
    sockets.add(from);
    from.on('data', (chunk: Buffer) => {
      if (pair.isDead) return;
      from.pause();
      // An end that follows is held back with it: bytes and their end stay in order.
      void forward(chunk, to).then(() => from.resume());
    });
    from.on('end', () => pair.isDead || to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => {
      if (!pair.isDead) to.destroy();
      pairs.delete(pair);
      sockets.delete(from);
    });
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (proxy.mode === 'cut') return void client.resetAndDestroy();
    const pair: Pair = { client, server: connect({ port: targetPort, host: '127.0.0.1' }), isDead: false };
    pairs.add(pair);
    pass(pair, client, pair.server);
    pass(pair, pair.server, client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const proxy: TcpProxy = {
    port: (server.address() as { port: number }).port,
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
        // What stands behind is let go of by its own timeouts, as behind a firewall that forgot.
        pair.client.on('close', () => pair.server.destroy());
      }
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      proxy.mode = 'open';
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  return proxy;
}

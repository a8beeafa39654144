// A gate in front of a TCP server. While shut, it refuses new connections and drops the open ones, as a stopped server does.
// Tests use it for outages of a database, a source or a storage.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { findFreePort } from './free-port.ts';

export interface TcpGate extends AsyncDisposable {
  /** The URL of the server behind the gate, with the gate's host and port. */
  readonly url: string;
  shut(): Promise<void>;
  open(): Promise<void>;
}

export interface TcpGateOptions {
  readonly shut?: boolean;
  /** Called with each chunk that a client sends; true drops the connection when the server answers, before the client sees the answer. */
  readonly breaks?: (said: Buffer, client: Socket) => boolean;
}

/** Creates a gate to the host and port of a URL, open unless `shut` is set. */
export async function openTcpGate(target: string, { shut = false, breaks }: TcpGateOptions = {}): Promise<TcpGate> {
  const behind = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(behind.port), behind.hostname);
    client.on('data', (said) => {
      upstream.write(said);
      if (!breaks?.(said, client)) return;
      upstream.unpipe(client).once('data', () => client.destroy());
      upstream.resume();
    });
    upstream.pipe(client);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  const port = await findFreePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.host = `127.0.0.1:${port}`;

  const gate: TcpGate = {
    url: String(url).replace(/\/$/, ''),
    async shut() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async open() {
      if (server.listening) return;
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    [Symbol.asyncDispose]: () => gate.shut(),
  };
  if (shut) await gate.shut();
  return gate;
}

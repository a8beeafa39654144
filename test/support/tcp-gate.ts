// A gate in front of a TCP server: shut, it refuses and ends every connection, as a server that is gone does.
// Stands for the outages of a database, a source or a storage.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpGate extends AsyncDisposable {
  /** The address of the server behind, seen through the gate. */
  readonly url: string;
  shut(): Promise<void>;
  open(): Promise<void>;
}

export interface TcpGateOptions {
  readonly shut?: boolean;
  /** Asked about everything a client says: true breaks its connection when the server answers, before the client hears it. */
  readonly breaks?: (said: Buffer, client: Socket) => boolean;
}

/** Opens a gate to the host and port of a URL; it is open at first unless told otherwise. */
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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
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

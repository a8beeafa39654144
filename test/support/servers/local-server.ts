// A server of a test, on a free port of this machine.
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

export interface LocalServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
}

/** Listens on a free port; disposing closes the server with its connections. */
export async function listenLocally(server: Server, host = '127.0.0.1'): Promise<LocalServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(server.listen(0, host), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

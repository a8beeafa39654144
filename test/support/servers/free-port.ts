// Ports for servers that a test closes and opens again, or that must know their port before they start.
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that systems give to connections and to servers without a port of their own. One of those could be taken by any process
// between two uses. Each process of the tests begins at another port.
const lowest = 12_000;
const count = 20_000;
let next = (process.pid * 100) % count;

/** A port on which no process listens. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = lowest + (next++ % count);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    await once(probe.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  await once(probe.close(), 'close');
  return true;
}

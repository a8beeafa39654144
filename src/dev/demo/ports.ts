// The demo's ports: the same at every start, so that bookmarks and saved addresses keep working.
import { createServer } from 'node:net';
import { Trouble } from '../../domain/trouble.ts';

const preferred = {
  sandbox: { port: 4710, what: 'the sandbox' },
  statusPage: { port: 4711, what: 'the status page' },
  prefill: { port: 4712, what: 'prefill' },
  careersSite: { port: 4713, what: 'the careers site' },
  receiver: { port: 4714, what: 'the receiver of webhooks' },
} as const;

export type DemoPorts = Readonly<Record<keyof typeof preferred, number>>;

/** The next port to try is ten higher, so that the demos of two checkouts each have consecutive ports. */
const stride = 10;
const highest = 65_535;

/** Finds the ports. A port that is taken is replaced by the next free one, and `onTaken` is called. */
export async function findDemoPorts(onTaken: (text: string) => void): Promise<DemoPorts> {
  const found: Record<string, number> = {};
  for (const [name, { port: wanted, what }] of Object.entries(preferred)) {
    const port = await findFree(wanted);
    if (port !== wanted) onTaken(`Port ${wanted} is taken: ${what} listens on ${port}.`);
    found[name] = port;
  }
  return found as DemoPorts;
}

async function findFree(wanted: number): Promise<number> {
  for (let port = wanted; port <= highest; port += stride) {
    if (await isFree(port)) return port;
  }
  throw new Trouble('local', 'No port of 127.0.0.1 is free.');
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

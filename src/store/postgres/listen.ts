// Wakes a worker when downloads are queued: LISTEN on a connection of its own, past any pooler. It only spares waiting: a worker that relies on
// it polls as well, since a notification can be lost with its connection.
import { setTimeout as sleep } from 'node:timers/promises';
import { clientOf, type DatabaseUrl } from './connection.ts';

export interface ListenerOptions {
  /** The database itself, not a pooler. */
  readonly url: DatabaseUrl;
  /** Told the advertiser's id; may come when there is nothing left to fetch. */
  readonly onQueued: (advertiserId: string) => void;
}

const reconnectMs = 2_000;

/** Listens until disposed; a connection that is lost, or that could not be had at first, is opened again. Resolves after the first try. */
export async function openQueueListener({ url, onQueued }: ListenerOptions): Promise<AsyncDisposable> {
  const stop = new AbortController();
  const first = Promise.withResolvers<void>();
  const listening = (async () => {
    while (!stop.signal.aborted) {
      await listen().catch(() => {});
      first.resolve();
      await sleep(reconnectMs, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    }
  })();

  /** Until the connection ends. */
  async function listen(): Promise<void> {
    const client = new (clientOf(url))({
      application_name: 'intake listen',
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
    });
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    client.on('notification', ({ payload }) => onQueued(payload ?? ''));
    const end = () => void client.end().catch(() => {});
    stop.signal.addEventListener('abort', end, { once: true });
    try {
      const heard = client.connect().then(() => client.query('LISTEN intake_downloads'));
      // A client that is ended while it connects never resolves its `connect`.
      await Promise.race([heard, ended]);
      first.resolve();
      await ended;
    } finally {
      stop.signal.removeEventListener('abort', end);
      end();
    }
  }

  await first.promise;
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await listening;
    },
  };
}

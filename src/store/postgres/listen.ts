// Wakes a worker when downloads are queued or events are committed: LISTEN on a dedicated connection that bypasses any pooler. It only
// shortens waits: workers poll as well, because a notification can be lost together with its connection.
import { setTimeout as sleep } from 'node:timers/promises';
import { clientOf, type DatabaseUrl } from './connection.ts';

/** Called with the advertiser's id after a commit. Another worker may have claimed the downloads by then. */
export interface Listeners {
  readonly onQueued: (advertiserId: string) => void;
  readonly onEvents?: (advertiserId: string) => void;
}

const reconnectMs = 2_000;

/** Listens until disposed and reconnects after every failure. Resolves after the first attempt, successful or not. */
export async function openQueueListener(url: DatabaseUrl, { onQueued, onEvents }: Listeners): Promise<AsyncDisposable> {
  const stop = new AbortController();
  const first = Promise.withResolvers<void>();
  const listening = (async () => {
    while (!stop.signal.aborted) {
      await listen().catch(() => {});
      first.resolve();
      await sleep(reconnectMs, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    }
  })();

  /** Resolves when the connection ends. */
  async function listen(): Promise<void> {
    const client = new (clientOf(url))({
      application_name: 'intake listen',
      keepAlive: true,
      connectionTimeoutMillis: 10_000,
    });
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    client.on('notification', ({ channel, payload = '' }) =>
      channel === 'intake_events' ? onEvents?.(payload) : onQueued(payload),
    );
    const end = () => void client.end().catch(() => {});
    stop.signal.addEventListener('abort', end, { once: true });
    try {
      const heard = client.connect().then(() => client.query('LISTEN intake_downloads; LISTEN intake_events'));
      // If the client is ended while it connects, `connect` never resolves.
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

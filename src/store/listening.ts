// Wakes a worker when downloads are queued: LISTEN on a connection of its own, past any pooler. It only spares waiting: whoever relies on
// it polls as well, since a notification can be lost with its connection.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

export interface ListenerOptions {
  /** The database itself, not a pooler. */
  readonly url: string;
  /** Told the advertiser's id; may come when there is nothing left to fetch. */
  readonly onQueued: (advertiserId: string) => void;
}

const reconnectMs = 2_000;

/** Listens until disposed; a lost connection is opened again. */
export async function openQueueListener({ url, onQueued }: ListenerOptions): Promise<AsyncDisposable> {
  const stop = new AbortController();
  let client = await connect();

  async function connect(): Promise<pg.Client> {
    const opened = new pg.Client({ connectionString: url, application_name: 'intake listen', keepAlive: true });
    opened.on('notification', ({ payload }) => onQueued(payload ?? ''));
    opened.on('error', () => {});
    opened.on('end', () => void reconnect());
    await opened.connect();
    await opened.query('LISTEN intake_downloads');
    return opened;
  }

  async function reconnect(): Promise<void> {
    await sleep(reconnectMs, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    if (stop.signal.aborted) return;
    // A failed connection ends as well, which brings us here again.
    client = await connect().catch(() => client);
  }

  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await client.end();
    },
  };
}

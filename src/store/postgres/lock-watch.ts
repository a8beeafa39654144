// Finds out which session holds the lock that another one waits for. The server tells it only during the wait, so a second connection asks
// several times a second.
import { setTimeout as sleep } from 'node:timers/promises';
import { clientOf, type DatabaseUrl } from './connection.ts';

export interface Blocker {
  readonly pid: number;
  readonly user: string | null;
  readonly application: string | null;
  /** Null, like `seconds`, where this role may not see it. */
  readonly state: string | null;
  readonly seconds: number | null;
}

export interface LockWatch extends AsyncDisposable {
  /** The session that was last seen in the way since the previous call. */
  take(): Blocker | null;
}

const lookMs = 200;

/** Watches the session with this process id. Without a second connection it sees nothing. */
export async function openLockWatch(url: DatabaseUrl, pid: number): Promise<LockWatch> {
  const client = new (clientOf(url))({ application_name: 'intake migrate watch', connectionTimeoutMillis: 10_000 });
  const stop = new AbortController();
  let seen: Blocker | null = null;
  const looking = (async () => {
    await client.connect();
    while (!stop.signal.aborted) {
      const { rows } = await client.query<Blocker>(
        `SELECT pid, usename::text AS "user", application_name AS application, state, extract(epoch FROM now() - xact_start)::int AS seconds
         FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1::int)) ORDER BY xact_start LIMIT 1`,
        [pid],
      );
      seen = rows[0] ?? seen;
      await sleep(lookMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  })().catch(() => {});
  return {
    take() {
      const last = seen;
      seen = null;
      return last;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await looking;
      await client.end();
    },
  };
}

/** Names a session and its transaction, for the operator who has to decide about it. */
export function describeBlocker(blocker: Blocker | null): string {
  if (blocker === null) return 'The transaction that held it has ended by now.';
  const { pid, user, application, state, seconds } = blocker;
  const name = `A transaction of ${user ?? 'an unknown user'} (process ${pid}, application "${application ?? ''}"`;
  return `${name}${state === null ? '' : `, ${state}`}) ${seconds === null ? 'holds it' : `has been open for ${seconds} s`}.`;
}

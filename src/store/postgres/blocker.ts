// Names the session in the way of a migration, for the operator who has to decide about it.
import { clientOf, type DatabaseUrl } from './connection.ts';

export interface Blocker {
  readonly pid: number;
  readonly user: string | null;
  readonly application: string | null;
  /** Null, like `seconds`, where this role may not see it. */
  readonly state: string | null;
  readonly seconds: number | null;
}

/** The oldest transaction that holds a lock on the tables of Intake; null where there is none, or none can be asked for. */
export async function findBlocker(url: DatabaseUrl): Promise<Blocker | null> {
  // A connection of its own, because the migration's may be waiting.
  const client = new (clientOf(url))({ application_name: 'intake migrate watch', connectionTimeoutMillis: 10_000 });
  try {
    await client.connect();
    const { rows } = await client.query<Blocker>(
      `SELECT pid, usename::text AS "user", application_name AS application, state, extract(epoch FROM now() - xact_start)::int AS seconds
       FROM pg_stat_activity WHERE application_name <> 'intake migrate' AND pid IN (
         SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND n.nspname IN ('intake', 'intake_analytics'))
       ORDER BY xact_start LIMIT 1`,
    );
    return rows[0] ?? null;
  } catch {
    return null;
  } finally {
    await client.end();
  }
}

export function describeBlocker(blocker: Blocker | null): string {
  if (blocker === null) return 'The transaction that held it has ended by now.';
  const { pid, user, application, state, seconds } = blocker;
  const name = `A transaction of ${user ?? 'an unknown user'} (process ${pid}, application "${application ?? ''}"`;
  return `${name}${state === null ? '' : `, ${state}`}) ${seconds === null ? 'holds it' : `has been open for ${seconds} s`}.`;
}

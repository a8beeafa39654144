// Names the session in the way of a migration, for the operator who has to decide about it.
import type pg from 'pg';

export interface Blocker {
  readonly pid: number;
  readonly user: string | null;
  readonly application: string | null;
  /** Null, like `seconds`, where this role may not see it. */
  readonly state: string | null;
  readonly seconds: number | null;
}

/** The session that this one waits for, by its oldest transaction where there are several; null where there is none, or none can be asked for. */
export async function findBlocker(watch: pg.Client, pid: number): Promise<Blocker | null> {
  const { rows } = await watch
    .query<Blocker>(
      `SELECT pid, usename::text AS "user", application_name AS application, state, extract(epoch FROM now() - xact_start)::int AS seconds
       FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1)) ORDER BY xact_start LIMIT 1`,
      [pid],
    )
    .catch(() => ({ rows: [] }));
  return rows[0] ?? null;
}

export function describeBlocker(blocker: Blocker | null): string {
  if (blocker === null) return 'Which transaction holds it could not be seen.';
  const { pid, user, application, state, seconds } = blocker;
  const name = `A transaction of ${user ?? 'an unknown user'} (process ${pid}, application "${application ?? ''}"`;
  return `${name}${state === null ? '' : `, ${state}`}) ${seconds === null ? 'holds it' : `has been open for ${seconds} s`}.`;
}

// Publishes what workers wait for to every process through the database. A worker replaces its rows when they change.
import type { Wait } from '../../domain/wait.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

/** A wait as its worker reports it: the start is given as a duration, since the worker's clock may differ from the database's. */
export interface ReportedWait extends Pick<Wait, 'dependency' | 'reason' | 'advertisers'> {
  readonly waitedMs: number;
}

/** Workers refresh their rows well within this time; an older row belongs to a worker that was killed. */
const freshFor = `interval '90 seconds'`;
/** A row from further in the future was written before the clock was set back: its age is unknown. */
const furthestAhead = `interval '1 minute'`;

/** Replaces the rows of this worker, and deletes rows that killed workers left. */
export async function recordWaits(db: Database, worker: string, waits: readonly ReportedWait[]): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(
      `DELETE FROM intake.waits
       WHERE worker = $1 OR seen_at < now() - interval '1 hour' OR seen_at > now() + ${furthestAhead}`,
      [worker],
    );
    if (waits.length === 0) return;
    await tx.query(
      `INSERT INTO intake.waits (worker, dependency, reason, advertisers, since, seen_at)
       SELECT $1, w.dependency, w.reason, w.advertisers, now() - w.waited_ms * interval '1 millisecond', now()
       FROM jsonb_to_recordset($2::jsonb) AS w (dependency text, reason text, advertisers text[], waited_ms float8)`,
      [worker, JSON.stringify(waits.map(({ waitedMs, ...one }) => ({ ...one, waited_ms: waitedMs })))],
    );
  });
}

/** The current waits of all workers. */
export async function loadWaits(db: Queryable): Promise<Wait[]> {
  return await db.query<Columns<'waits', 'worker' | 'dependency' | 'reason' | 'advertisers' | 'since'>>(
    `SELECT worker, dependency, reason, advertisers, since FROM intake.waits
     WHERE seen_at > now() - ${freshFor} AND seen_at <= now() + ${furthestAhead}
     ORDER BY since, worker, dependency, reason`,
  );
}

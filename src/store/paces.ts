// One request budget per source, shared by all workers through one row: turns are given out evenly spaced, by the database's clock.
import type { Queryable } from './database.ts';

/** Reserves the next turns of a source; answers how long until the first of them, in milliseconds. The others follow at the spacing. */
export async function takeTurns(db: Queryable, source: string, count: number, spacingMs: number): Promise<number> {
  const [row] = await db.query<{ wait_ms: number }>(
    `INSERT INTO intake.paces AS p (source, next_at) VALUES ($1, clock_timestamp() + $2::float8 * $3::float8 * interval '1 millisecond')
     ON CONFLICT (source) DO UPDATE
       SET next_at = greatest(p.next_at, clock_timestamp()) + $2::float8 * $3::float8 * interval '1 millisecond'
     RETURNING extract(epoch FROM p.next_at - clock_timestamp())::float8 * 1000 - $2::float8 * $3::float8 AS wait_ms`,
    [source, count, spacingMs],
  );
  return Math.max(0, row?.wait_ms ?? 0);
}

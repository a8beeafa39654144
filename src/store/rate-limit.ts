// One request budget per source, shared by all workers through one row: slots are given out evenly spaced, by the database's clock.
import type { Queryable } from './postgres/database.ts';

/** A stretch of a source's time, in milliseconds of the database's clock: when it begins, and what the clock says now. */
export interface Slots {
  readonly now: number;
  readonly firstAt: number;
}

/**
 * Reserves the next stretch of a source's time for the caller alone; nobody else has a slot in it. Slots further ahead than `mostAheadMs`
 * were given out by a clock that has been set back since: they are forgotten.
 */
export async function takeSlots(db: Queryable, source: string, stretchMs: number, mostAheadMs: number): Promise<Slots> {
  const [row] = await db.query<{ now: number; first_at: number }>(
    `INSERT INTO intake.rate_limits AS p (source, next_at) VALUES ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
     ON CONFLICT (source) DO UPDATE
       SET next_at = $2::float8 * interval '1 millisecond' + CASE
         WHEN p.next_at BETWEEN clock_timestamp() AND clock_timestamp() + $3::float8 * interval '1 millisecond' THEN p.next_at
         ELSE clock_timestamp() END
     RETURNING extract(epoch FROM clock_timestamp())::float8 * 1000 AS now,
       extract(epoch FROM p.next_at)::float8 * 1000 - $2::float8 AS first_at`,
    [source, stretchMs, mostAheadMs],
  );
  if (!row) throw new Error('The rate limit gave no slot.');
  return { now: row.now, firstAt: row.first_at };
}

// One request budget per source, which all workers share through one row: slots are evenly spaced by the database's clock.
import type { Queryable } from './postgres/database.ts';

/** A reserved period of a source's time, in milliseconds of the database's clock: its start, and the clock's current time. */
export interface Slots {
  readonly now: number;
  readonly firstAt: number;
}

/**
 * Reserves the next period of a source's time for the caller alone. Reservations further ahead than `mostAheadMs` were made before the
 * clock was set back, and are discarded.
 */
export async function takeSlots(db: Queryable, source: string, stretchMs: number, mostAheadMs: number): Promise<Slots> {
  const [row] = await db.query<{ now: number; firstAt: number }>(
    `INSERT INTO intake.rate_limits AS p (source, next_at) VALUES ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
     ON CONFLICT (source) DO UPDATE
       SET next_at = $2::float8 * interval '1 millisecond' + CASE
         WHEN p.next_at BETWEEN clock_timestamp() AND clock_timestamp() + $3::float8 * interval '1 millisecond' THEN p.next_at
         ELSE clock_timestamp() END
     RETURNING extract(epoch FROM clock_timestamp())::float8 * 1000 AS now,
       extract(epoch FROM p.next_at)::float8 * 1000 - $2::float8 AS "firstAt"`,
    [source, stretchMs, mostAheadMs],
  );
  if (!row) throw new Error('The rate limit returned no slot.');
  return row;
}

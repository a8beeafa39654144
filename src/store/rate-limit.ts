// One request budget per source, which all workers share through one row: slots are evenly spaced by the database's clock.
import type { Queryable } from './postgres/database.ts';

/**
 * Takes the next slot of a source, which lasts this long; returns in how many milliseconds it begins. A row further ahead than `mostAheadMs`
 * was written before the clock was set back. The commit does not wait for the disk: a slot that a database crash loses is one of its second.
 */
export async function takeSlot(db: Queryable, source: string, slotMs: number, mostAheadMs: number): Promise<number> {
  const [slot] = await db.query<{ waitMs: number }>(
    `INSERT INTO intake.rate_limits AS p (source, next_at)
     SELECT $1, clock_timestamp() + $2::float8 * interval '1 millisecond' FROM set_config('synchronous_commit', 'off', true)
     ON CONFLICT (source) DO UPDATE
       SET next_at = $2::float8 * interval '1 millisecond' + CASE
         WHEN p.next_at BETWEEN clock_timestamp() AND clock_timestamp() + $3::float8 * interval '1 millisecond' THEN p.next_at
         ELSE clock_timestamp() END
     RETURNING extract(epoch FROM p.next_at - clock_timestamp())::float8 * 1000 - $2::float8 AS "waitMs"`,
    [source, slotMs, mostAheadMs],
  );
  if (!slot) throw new Error('The rate limit returned no slot.');
  return slot.waitMs;
}

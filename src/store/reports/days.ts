// Counts the stale days again (schema/days.ts), and marks all of them.
import type { Queryable } from '../postgres/database.ts';

/** So many days in one transaction: a day of a large account takes about a tenth of a second. */
const daysAtOnce = 20;

/** Counts some stale days again. Returns whether there are more. Days that become stale meanwhile wait for the next time. */
export async function countStaleDays(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ counted: number }>(`SELECT intake.count_stale_days($1::int) AS counted`, [daysAtOnce]);
  return row?.counted === daysAtOnce;
}

export async function markAllDays(db: Queryable): Promise<void> {
  await db.query(
    `INSERT INTO intake.stale_days (advertiser_id, day)
     SELECT advertiser_id, intake.local_time(submitted_at, source_offset)::date FROM intake.applications WHERE submitted_at IS NOT NULL
     UNION SELECT advertiser_id, day FROM intake.job_days`,
  );
}

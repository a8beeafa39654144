// Repairs the counts that reports and views read (schema/counts.ts).
import type { Queryable } from '../postgres/database.ts';

/** Counts again in one statement, so that nothing has to stop meanwhile, and adds what is missing. Returns how many counts were wrong. */
export async function repairTallies(db: Queryable): Promise<number> {
  const repaired = await db.query(
    `INSERT INTO intake.tallies (advertiser_id, what, n)
     SELECT advertiser_id, what, sum(n) FROM (
       SELECT advertiser_id, what, n FROM intake.recounted UNION ALL SELECT advertiser_id, what, -n FROM intake.tallies) AS compared
     GROUP BY 1, 2 HAVING sum(n) <> 0 RETURNING 1`,
  );
  return repaired.length;
}

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

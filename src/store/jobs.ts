// A first question of every advertiser: which jobs do people apply for?
import type { Queryable, Row } from './database.ts';

export interface JobRow extends Row {
  readonly job_reference: string | null;
  readonly applications: number;
  readonly job_seekers: number;
  readonly first_application: Date | null;
  readonly last_application: Date | null;
}

/** Jobs by the number of their applications, the busiest first. */
export async function loadBusiestJobs(db: Queryable, limit: number): Promise<JobRow[]> {
  return await db.query<JobRow>(
    `SELECT job_reference, count(*)::int AS applications, count(DISTINCT job_seeker_id)::int AS job_seekers,
       min(submitted_at) AS first_application, max(submitted_at) AS last_application
     FROM intake.applications WHERE erased_at IS NULL GROUP BY job_reference ORDER BY applications DESC, job_reference LIMIT $1`,
    [limit],
  );
}

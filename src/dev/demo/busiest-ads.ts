// The demo's example query: which ads get the most applications?
import pg from 'pg';

export interface AdRow {
  readonly job_reference: string | null;
  readonly applications: number;
  readonly job_seekers: number;
  readonly last_application: Date | null;
}

/** The ten ads with the most applications. */
export async function loadBusiestAds(url: string): Promise<AdRow[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'intake demo' });
  await client.connect();
  try {
    const { rows } = await client.query<AdRow>(
      `SELECT job_reference, count(*)::int AS applications, count(DISTINCT job_seeker_id)::int AS job_seekers,
         max(submitted_at) AS last_application
       FROM intake.applications WHERE erased_at IS NULL GROUP BY job_reference ORDER BY applications DESC, job_reference LIMIT 10`,
    );
    return rows;
  } finally {
    await client.end();
  }
}

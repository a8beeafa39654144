// The data of the charts and of the table of sweeps, one statement each, from rows that exist anyway: no sampling, no extra storage.
// Postgres groups times into steps; this file fills in empty steps, so that a pause is visible.
import {
  type History,
  type Period,
  type RecentSweep,
  type Step,
  steps,
  toStepStarts,
} from '../../domain/status/history.ts';
import type { Queryable } from '../postgres/database.ts';
import { sweepFacts } from './status.ts';

export async function loadHistory(db: Queryable, period: Period, now: Date): Promise<History> {
  const starts = toStepStarts(period, now);
  const found = await loadSteps(db, `${steps[period].stepMs} milliseconds`, starts[0], now);
  const byStart = new Map(found.map((row) => [row.startAt.getTime(), row]));
  return {
    period,
    steps: starts.map((startAt) => byStart.get(startAt.getTime()) ?? { startAt, applications: 0, delayMs: null }),
    recentSweeps: await loadRecentSweeps(db),
  };
}

/**
 * The steps in which applications were submitted. By the time of submission, the rows that a first load has stored just now lie outside of a
 * period. The advertisers are joined, because the index begins with advertiser_id.
 */
async function loadSteps(db: Queryable, step: string, from: Date | undefined, to: Date): Promise<Step[]> {
  return await db.query<Step>(
    `SELECT date_bin($1::interval, a.submitted_at, 'epoch') AS "startAt", count(*)::int AS applications,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY greatest(0, extract(epoch FROM a.first_seen_at - a.submitted_at))::float8 * 1000)
         FILTER (WHERE a.submitted_at >= v.created_at) AS "delayMs"
     FROM intake.advertisers v JOIN intake.applications a ON a.advertiser_id = v.advertiser_id
     WHERE a.submitted_at >= $2 AND a.submitted_at <= $3 GROUP BY 1`,
    [step, from, to],
  );
}

/** True of a sweep `s` that found evidence against completeness, or ended with gaps. */
const isDoubtful = `(s.risk = 'doubt' OR s.state = 'open')`;

async function loadRecentSweeps(db: Queryable): Promise<RecentSweep[]> {
  return await db.query<RecentSweep>(
    `SELECT v.name AS advertiser, ${sweepFacts},
       NOT EXISTS (SELECT 1 FROM intake.sweeps e WHERE e.advertiser_id = s.advertiser_id AND e.sweep_id < s.sweep_id AND e.state <> 'dropped') AS "isFirst"
     FROM intake.advertisers v CROSS JOIN LATERAL (
       SELECT * FROM intake.sweeps s WHERE s.advertiser_id = v.advertiser_id AND s.state <> 'dropped'
         AND (s.purpose <> 'live' OR ${isDoubtful}) ORDER BY s.started_at DESC LIMIT 12) AS s
     ORDER BY s.started_at DESC LIMIT 12`,
  );
}

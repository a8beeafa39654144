// The data of the charts and of the table of sweeps, one statement each, from rows that exist anyway: no sampling, no extra storage.
// Postgres groups times into hours; this file fills in empty hours, so that a pause is visible.
import type { History, Hour, RecentSweep } from '../../domain/status/advertiser-status.ts';
import type { Queryable } from '../postgres/database.ts';
import { sweepFacts } from './status.ts';

const hourMs = 3_600_000;

export async function loadHistory(db: Queryable, now: Date): Promise<History> {
  const last = Math.floor(now.getTime() / hourMs) * hourMs;
  const starts = Array.from({ length: 24 }, (_, index) => new Date(last - (23 - index) * hourMs));
  const found = await loadHours(db, starts[0], now);
  const byStart = new Map(found.map((row) => [row.startAt.getTime(), row]));
  return {
    hours: starts.map((startAt) => byStart.get(startAt.getTime()) ?? { startAt, applications: 0, delayMs: null }),
    recentSweeps: await loadRecentSweeps(db),
  };
}

/**
 * The hours in which applications were submitted. By the time of submission, the rows that a first load has stored just now lie outside of
 * the day. The advertisers are joined, because the index begins with advertiser_id.
 */
async function loadHours(db: Queryable, from: Date | undefined, to: Date): Promise<Hour[]> {
  return await db.query<Hour>(
    `SELECT date_trunc('hour', a.submitted_at, 'UTC') AS "startAt", count(*)::int AS applications,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY greatest(0, extract(epoch FROM a.first_seen_at - a.submitted_at))::float8 * 1000)
         FILTER (WHERE a.submitted_at >= v.created_at) AS "delayMs"
     FROM intake.advertisers v JOIN intake.applications a ON a.advertiser_id = v.advertiser_id
     WHERE a.submitted_at >= $1 AND a.submitted_at <= $2 GROUP BY 1`,
    [from, to],
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

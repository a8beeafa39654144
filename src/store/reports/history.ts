// The data of the charts and of the table of sweeps, one statement each, from rows that exist anyway: no sampling, no extra storage.
// Postgres groups times into steps; this file fills in empty steps, so that a pause is visible.
import { type History, type Period, type RecentSweep, steps, toStepStarts } from '../../domain/status/history.ts';
import type { Queryable, Row } from '../postgres/database.ts';
import { sweepFacts } from './status.ts';

export async function loadHistory(db: Queryable, period: Period, now: Date): Promise<History> {
  const starts = toStepStarts(period, now);
  const span = [`${steps[period].stepMs} milliseconds`, starts[0], now] as const;
  const applications = await loadApplications(db, span);
  const delays = await loadDelays(db, span);
  return {
    period,
    steps: starts.map((startAt) => ({
      startAt,
      applications: applications.get(startAt.getTime())?.n ?? 0,
      delayMs: delays.get(startAt.getTime())?.p95 ?? null,
    })),
    recentSweeps: await loadRecentSweeps(db),
  };
}

/** The length of a step, the start of the first one, the end of the last. */
type Span = readonly [step: string, from: Date | undefined, to: Date];

// Each statement joins the advertisers, because the indexes begin with advertiser_id.

function loadApplications(db: Queryable, span: Span) {
  return loadByStep<{ n: number }>(
    db,
    `SELECT date_bin($1::interval, a.submitted_at, 'epoch') AS step, count(*)::int AS n
     FROM intake.advertisers v JOIN intake.applications a ON a.advertiser_id = v.advertiser_id
     WHERE a.submitted_at >= $2 AND a.submitted_at <= $3 GROUP BY 1`,
    span,
  );
}

/**
 * Leaves out applications that were submitted before their advertiser was added: their delay says nothing about Intake. Of an advertiser that
 * was added in this span, all others came in it; they are found by their own time, or its first load would be read whole.
 */
function loadDelays(db: Queryable, span: Span) {
  return loadByStep<{ p95: number }>(
    db,
    `SELECT date_bin($1::interval, a.first_seen_at, 'epoch') AS step,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY d.ms) AS p95
     FROM intake.advertisers v CROSS JOIN LATERAL (
       SELECT first_seen_at, submitted_at FROM intake.applications
       WHERE v.created_at >= $2 AND advertiser_id = v.advertiser_id AND submitted_at >= v.created_at
       UNION ALL
       SELECT first_seen_at, submitted_at FROM intake.applications
       WHERE v.created_at < $2 AND advertiser_id = v.advertiser_id AND first_seen_at >= $2 AND submitted_at >= v.created_at
     ) AS a
     CROSS JOIN LATERAL (SELECT greatest(0, extract(epoch FROM a.first_seen_at - a.submitted_at))::float8 * 1000 AS ms) AS d
     WHERE a.first_seen_at <= $3 GROUP BY 1`,
    span,
  );
}

async function loadByStep<T extends Row>(db: Queryable, sql: string, span: Span): Promise<ReadonlyMap<number, T>> {
  const rows = await db.query<T & { step: Date }>(sql, [...span]);
  return new Map(rows.map((row) => [row.step.getTime(), row]));
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

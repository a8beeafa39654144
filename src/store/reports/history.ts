// What the charts show, one statement per chart, from rows that exist anyway: no sampling, nothing kept for it.
// Times are cut into steps by Postgres; empty steps are filled in here, so that a pause is seen as one.
import { type History, type Period, type RecentSweep, type Step, steps, toStepStarts } from '../../domain/history.ts';
import type { Queryable, Row } from '../postgres/database.ts';
import { type SweepColumns, toSweepFacts } from './status.ts';

/** All advertisers together, over a day or thirty. */
export async function loadHistory(db: Queryable, period: Period, now: Date): Promise<History> {
  const starts = toStepStarts(period, now);
  const span = [`${steps[period].stepMs} milliseconds`, starts[0], now] as const;
  const [applications, delays, files, sweeps, recentSweeps] = await Promise.all([
    loadApplications(db, span),
    loadDelays(db, span),
    loadFiles(db, span),
    loadSweeps(db, span),
    loadRecentSweeps(db),
  ]);
  return { period, steps: starts.map((startAt) => toStep(startAt, applications, delays, files, sweeps)), recentSweeps };
}

/** Length of a step, beginning of the first one, end of the last. */
type Span = readonly [step: string, from: Date | undefined, to: Date];
type ByStep<T> = ReadonlyMap<number, T>;

function toStep(
  startAt: Date,
  applications: ByStep<{ n: number }>,
  delays: ByStep<{ p50: number; p95: number }>,
  files: ByStep<{ n: number; bytes: number }>,
  sweeps: ByStep<SweepRow>,
): Step {
  const at = startAt.getTime();
  return {
    startAt,
    applications: applications.get(at)?.n ?? 0,
    delayP50Ms: delays.get(at)?.p50 ?? null,
    delayP95Ms: delays.get(at)?.p95 ?? null,
    files: files.get(at)?.n ?? 0,
    fileBytes: files.get(at)?.bytes ?? 0,
    sweeps: sweeps.get(at)?.n ?? 0,
    closedSweeps: sweeps.get(at)?.closed ?? 0,
    sweepP50Ms: sweeps.get(at)?.p50 ?? null,
    sweepP95Ms: sweeps.get(at)?.p95 ?? null,
  };
}

// Each statement names the advertisers it walks: the indexes begin with advertiser_id.

function loadApplications(db: Queryable, span: Span) {
  return loadByStep<{ n: number }>(
    db,
    `SELECT date_bin($1::interval, a.submitted_at, 'epoch') AS step, count(*)::int AS n
     FROM intake.advertisers v JOIN intake.applications a ON a.advertiser_id = v.advertiser_id
     WHERE a.submitted_at >= $2 AND a.submitted_at <= $3 GROUP BY 1`,
    span,
  );
}

/** What was made before its advertiser was first read was late for no fault of anyone's: it is left out. */
function loadDelays(db: Queryable, span: Span) {
  return loadByStep<{ p50: number; p95: number }>(
    db,
    `SELECT date_bin($1::interval, a.first_seen_at, 'epoch') AS step,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY d.ms) AS p50, percentile_cont(0.95) WITHIN GROUP (ORDER BY d.ms) AS p95
     FROM intake.advertisers v JOIN intake.applications a ON a.advertiser_id = v.advertiser_id
     CROSS JOIN LATERAL (SELECT greatest(0, extract(epoch FROM a.first_seen_at - a.submitted_at))::float8 * 1000 AS ms) AS d
     WHERE a.first_seen_at >= $2 AND a.first_seen_at <= $3 AND a.submitted_at >= v.created_at GROUP BY 1`,
    span,
  );
}

function loadFiles(db: Queryable, span: Span) {
  return loadByStep<{ n: number; bytes: number }>(
    db,
    `SELECT date_bin($1::interval, t.stored_at, 'epoch') AS step, count(*)::int AS n, coalesce(sum(t.size_bytes), 0)::float8 AS bytes
     FROM intake.attachments t WHERE t.stored_at >= $2 AND t.stored_at <= $3 GROUP BY 1`,
    span,
  );
}

interface SweepRow extends Row {
  readonly n: number;
  readonly closed: number;
  readonly p50: number | null;
  readonly p95: number | null;
}

function loadSweeps(db: Queryable, span: Span) {
  return loadByStep<SweepRow>(
    db,
    `SELECT date_bin($1::interval, s.started_at, 'epoch') AS step, count(*)::int AS n,
       (count(*) FILTER (WHERE s.state = 'closed'))::int AS closed,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY d.ms) AS p50, percentile_cont(0.95) WITHIN GROUP (ORDER BY d.ms) AS p95
     FROM intake.advertisers v JOIN intake.sweeps s ON s.advertiser_id = v.advertiser_id
     CROSS JOIN LATERAL (SELECT extract(epoch FROM s.ended_at - s.started_at)::float8 * 1000 AS ms) AS d
     WHERE s.started_at >= $2 AND s.started_at <= $3 AND s.state <> 'dropped' GROUP BY 1`,
    span,
  );
}

async function loadByStep<T extends Row>(db: Queryable, sql: string, span: Span): Promise<ByStep<T>> {
  const rows = await db.query<T & { step: Date }>(sql, [...span]);
  return new Map(rows.map((row) => [row.step.getTime(), row]));
}

async function loadRecentSweeps(db: Queryable): Promise<RecentSweep[]> {
  const rows = await db.query<SweepColumns & { advertiser: string }>(
    `SELECT v.name AS advertiser, s.purpose, s.state, s.certificate, s.reason, s.started_at, s.ended_at, s.requests, s.added, s.changed
     FROM intake.advertisers v CROSS JOIN LATERAL (
       SELECT * FROM intake.sweeps s WHERE s.advertiser_id = v.advertiser_id ORDER BY s.started_at DESC LIMIT 12) AS s
     ORDER BY s.started_at DESC LIMIT 12`,
  );
  return rows.map((row) => ({ advertiser: row.advertiser, ...toSweepFacts(row) }));
}

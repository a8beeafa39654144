// Loads the facts of the status and the data of its charts: one statement per kind of fact, whatever the number of advertisers.
import { mostQuarantined } from '../../domain/application.ts';
import type { Conclusion } from '../../domain/coverage/certificate.ts';
import {
  type AdvertiserFacts,
  type AdvertiserStatus,
  arrivalSample,
  type History,
  type Hour,
  type SweepFacts,
} from '../../domain/status/advertiser-status.ts';
import { volatileNames } from '../applications/volatile.ts';
import { isDue, listReadAt } from '../files/download-queue.ts';
import { isUnrepaired } from '../files/verify-blobs.ts';
import type { Queryable } from '../postgres/database.ts';
import type { Columns, OrNull } from '../schema/rows.ts';

/** The counts of attachments begin with this word, and end with their state. */
const ofState = 'attachments ';

/** Downloads that could begin now, at most so many: a backlog of millions is not counted each time. The index gives the oldest first. */
const mostDue = 10_000;

export async function loadAdvertiserStatus(db: Queryable): Promise<AdvertiserStatus[]> {
  const advertisers = await db.query<StatusRow>(
    `SELECT v.name, v.advertiser_id AS "advertiserId", v.halt_kind, v.reason AS halt_reason, v.halted_at, v.late_ms::float8 AS "latenessMs",
       v.retention_due::float8 AS "retentionDue", coalesce(v.unkept, 0)::float8 AS unkept, v.kept_out::float8 AS "keptOut", c.after_id,
       c.as_of, k.open_ranges AS "openRanges", k.certificate, k.risk, k.reason, k.as_of AS "asOf", k.complete_through AS "completeThrough",
       (SELECT coalesce(json_agg(json_build_object('id', u.application_id::text, 'reason', u.reason, 'since', u.since, 'tries', u.tries)), '[]')
        FROM (SELECT * FROM intake.unreadable u
         WHERE u.advertiser_id = v.advertiser_id AND u.accepted_at IS NULL ORDER BY u.application_id LIMIT 20) AS u) AS unreadable,
       (SELECT max(submitted_at) FROM intake.applications a WHERE a.advertiser_id = v.advertiser_id
         AND a.submitted_at < now() + interval '1 day') AS "newestSubmittedAt",
       ${listReadAt('v.advertiser_id')} AS "readAt",
       (SELECT coalesce(json_object_agg(t.what, t.n), '{}') FROM (
         SELECT what, sum(n) AS n FROM intake.tallies WHERE advertiser_id = v.advertiser_id GROUP BY 1) AS t) AS tallies,
       q.due, q.oldest_due_at AS "oldestDueAt",
       (SELECT count(*) FROM intake.blobs b WHERE b.advertiser_id = v.advertiser_id AND ${isUnrepaired})::int AS "damagedBlobs",
       (SELECT count(*) FROM intake.blobs b WHERE b.advertiser_id = v.advertiser_id AND b.kept_versions > 0 AND b.state IN ('infected', 'deleting'))::int
         AS "keptDeleted",
       (SELECT min(u.verified_at) FROM intake.blobs u WHERE u.advertiser_id = v.advertiser_id AND u.state = 'stored') AS "verifiedSince",
       (SELECT count(*) FROM intake.quarantine q WHERE q.advertiser_id = v.advertiser_id AND resolved_at IS NULL)::int AS quarantined,
       ${volatileNames('v.advertiser_id')} AS volatile,
       (SELECT min(j.requested_at) FROM intake.erasure_jobs j WHERE j.advertiser_id = v.advertiser_id AND j.closed_at IS NULL) AS "erasingSince",
       (SELECT j.trouble FROM intake.erasure_jobs j WHERE j.advertiser_id = v.advertiser_id AND j.closed_at IS NULL
          AND j.trouble IS NOT NULL ORDER BY j.requested_at LIMIT 1) AS "erasingTrouble",
       ARRAY(
         -- One index lookup per sampled arrival, however many arrivals lie between two of them.
         WITH RECURSIVE sample (at, n) AS (
           SELECT max(a.submitted_at), 1 FROM intake.applications a WHERE a.advertiser_id = v.advertiser_id AND a.submitted_at <= now()
           UNION ALL
           SELECT (SELECT max(a.submitted_at) FROM intake.applications a WHERE a.advertiser_id = v.advertiser_id
             AND a.submitted_at <= s.at - $1 * interval '1 millisecond' AND a.submitted_at > now() - $3 * interval '1 millisecond'), s.n + 1
           FROM sample s WHERE s.at IS NOT NULL AND s.n < $2
         ) SELECT extract(epoch FROM at)::float8 * 1000 FROM sample WHERE at IS NOT NULL) AS "submittedAt"
     FROM intake.advertisers v JOIN intake_analytics.completeness k ON k.advertiser = v.name
     LEFT JOIN intake.cursors c ON c.advertiser_id = v.advertiser_id
     CROSS JOIN LATERAL (
       SELECT count(*)::int AS due, min(d.due_at) AS oldest_due_at FROM unnest('{0,1,2}'::smallint[]) AS tier (priority) CROSS JOIN LATERAL (
         SELECT due_at FROM intake.downloads d WHERE d.advertiser_id = v.advertiser_id AND d.priority = tier.priority AND ${isDue}
         ORDER BY d.due_at LIMIT ${mostDue}) AS d
     ) AS q
     ORDER BY v.name`,
    [arrivalSample.apartMs, arrivalSample.count, arrivalSample.reachMs],
  );
  const lastSweeps = await db.query<SweepFacts & { advertiserId: bigint }>(
    `SELECT s.advertiser_id AS "advertiserId", ${sweepFacts}
     FROM intake.advertisers v CROSS JOIN LATERAL (SELECT * FROM intake.sweeps w WHERE w.advertiser_id = v.advertiser_id
       AND w.state <> 'dropped' ORDER BY w.sweep_id DESC LIMIT 1) AS s`,
  );
  const sweeps = new Map(lastSweeps.map(({ advertiserId, ...sweep }) => [advertiserId, sweep]));
  const unfinished = await db.query<{ of: bigint; purpose: string; startedAt: Date; reason: string }>(
    `SELECT advertiser_id AS of, purpose, started_at AS "startedAt", reason FROM intake.sweeps
     WHERE state = 'running' AND reason IS NOT NULL ORDER BY sweep_id`,
  );
  return advertisers.map((row) => {
    const { halt_kind: kind, halt_reason, halted_at, after_id: afterId, as_of, tallies, ...facts } = row;
    const { certificate, risk, reason, asOf, completeThrough, ...status } = facts;
    const { advertiserId, quarantined, unkept, volatile, unreadable } = status;
    const count = (what: string) => tallies[what] ?? 0;
    const files = Object.entries(tallies).filter(([what, n]) => what.startsWith(ofState) && n > 0);
    return {
      ...status,
      halt: kind && { kind, reason: halt_reason ?? '', since: halted_at ?? new Date(0) },
      applications: count('applications'),
      cursor: afterId !== null && as_of !== null ? { afterId, asOf: as_of } : null,
      waiting: count('downloads'),
      notThere: count('downloads not there'),
      suspects: count('downloads suspect'),
      blobs: { count: count('blobs'), bytes: count('blob bytes') },
      unreadableScreens: count('unread screens'),
      withheld: count('withheld'),
      attachments: Object.fromEntries(files.map(([what, n]) => [what.slice(ofState.length), n])),
      unkept: quarantined < mostQuarantined ? 0 : unkept,
      volatile: volatile.toSorted().slice(0, 20),
      unreadable: unreadable.map((one) => ({ ...one, id: BigInt(one.id), since: new Date(one.since) })),
      coverage: asOf && { certificate, risk, reason, asOf, completeThrough },
      unfinished: unfinished.filter((one) => one.of === advertiserId).map(({ of, ...sweep }) => sweep),
      lastSweep: (advertiserId !== null && sweeps.get(advertiserId)) || null,
    };
  });
}

type StatusRow = AdvertiserFacts &
  Conclusion &
  Columns<'advertisers', 'halt_kind' | 'halted_at'> &
  OrNull<Columns<'cursors', 'after_id' | 'as_of'>> & {
    halt_reason: string | null;
    asOf: Date | null;
    completeThrough: Date | null;
    tallies: Record<string, number>;
    submittedAt: number[];
    unreadable: { id: string; reason: string; since: string; tries: number }[];
  };

/** The columns of a sweep `s` that reports show, as SweepFacts. */
const sweepFacts = `s.purpose, s.state, s.certificate, s.risk, s.reason, s.started_at AS "startedAt", s.ended_at AS "endedAt",
       s.requests, s.added::int AS added, s.changed::int AS changed`;

const hourMs = 3_600_000;

/** True of a sweep `s` that found evidence against completeness, or ended with gaps. */
const isDoubtful = `(s.risk = 'doubt' OR s.state = 'open')`;

/** The data of the charts and of the table of sweeps. Postgres groups times into hours; empty hours are filled in, so that a pause is visible. */
export async function loadHistory(db: Queryable, now: Date): Promise<History> {
  const last = Math.floor(now.getTime() / hourMs) * hourMs;
  const starts = Array.from({ length: 24 }, (_, index) => new Date(last - (23 - index) * hourMs));
  // By the time of submission: a first load stores old rows. The advertisers are joined because the index begins with advertiser_id.
  const found = await db.query<Hour>(
    `SELECT date_trunc('hour', a.submitted_at, 'UTC') AS "startAt", count(*)::int AS applications,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY greatest(0, extract(epoch FROM a.first_seen_at - a.submitted_at))::float8 * 1000)
         FILTER (WHERE a.submitted_at >= v.created_at) AS "delayMs"
     FROM intake.advertisers v JOIN intake.applications a ON a.advertiser_id = v.advertiser_id
     WHERE a.submitted_at >= $1 AND a.submitted_at <= $2 GROUP BY 1`,
    [starts[0], now],
  );
  const byStart = new Map(found.map((row) => [row.startAt.getTime(), row]));
  const recentSweeps = await db.query<SweepFacts & { advertiser: string }>(
    `SELECT v.name AS advertiser, ${sweepFacts}
     FROM intake.advertisers v CROSS JOIN LATERAL (
       SELECT * FROM intake.sweeps s WHERE s.advertiser_id = v.advertiser_id AND s.state <> 'dropped'
         AND (s.purpose <> 'live' OR ${isDoubtful}) ORDER BY s.started_at DESC LIMIT 12) AS s
     ORDER BY s.started_at DESC LIMIT 12`,
  );
  return {
    hours: starts.map((startAt) => byStart.get(startAt.getTime()) ?? { startAt, applications: 0, delayMs: null }),
    recentSweeps,
  };
}

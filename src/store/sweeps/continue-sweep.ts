// Loads what sweeps and audits need to know of what is stored: open ranges, where a poll begins, known ids, and which were hidden.
import type { Application } from '../../domain/application.ts';
import type { KnownIds } from '../../domain/coverage/coverage.ts';
import { type Covered, nearestPosition, type Position, rising, toRange } from '../../domain/coverage/position.ts';
import type { KnownPages } from '../../domain/coverage/state.ts';
import type { Lane } from '../accounts/leases.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { dropSweeps, type ReadRange, type Sweep } from './sweeps.ts';

/** An interrupted sweep with its complete state: closed ranges are not requested again. */
export interface UnfinishedSweep extends Sweep {
  readonly facts: string;
  readonly ranges: readonly string[];
  /** A day has passed without progress. The source may have changed meanwhile. */
  readonly isOld: boolean;
}

/** Identifies a sweep to continue. A sweep of another range is another sweep. */
export type SweepKey = ReadRange & Pick<Sweep, 'purpose'> & { readonly advertiserId: bigint; readonly lane: Lane };

const matchesKey = `advertiser_id = $1 AND lane = $2 AND purpose = $3 AND axis = $4 AND low = $5 AND high IS NOT DISTINCT FROM $6`;
const toValues = (key: SweepKey) => [key.advertiserId, key.lane, key.purpose, key.axis, key.low, key.high];

/** The newest sweep of this range that has not ended. */
export async function loadUnfinished(db: Queryable, key: SweepKey): Promise<UnfinishedSweep | null> {
  const [row] = await db.query<UnfinishedSweep>(
    `SELECT sweep_id AS "sweepId", purpose, axis, low, high, started_at AS "startedAt", facts::text AS facts,
       ARRAY(SELECT r.evidence::text FROM intake.ranges r
         WHERE r.advertiser_id = s.advertiser_id AND r.sweep_id = s.sweep_id ORDER BY r.low) AS ranges,
       last_progress_at < now() - interval '1 day' AS "isOld"
     FROM intake.sweeps s WHERE ${matchesKey} AND state = 'running' ORDER BY sweep_id DESC LIMIT 1`,
    toValues(key),
  );
  return row ?? null;
}

export async function dropUnfinished(db: Queryable, key: SweepKey): Promise<void> {
  await db.query(dropSweeps(matchesKey), toValues(key));
}

/** The ranges of all ids from 1 on that were never read, were read without a certificate, or were left as a gap. */
export async function loadOpenRanges(db: Queryable, advertiserId: bigint): Promise<Covered[]> {
  const sql = `SELECT low, high FROM intake.open_ranges WHERE advertiser_id = $1 ORDER BY low`;
  return await db.query<Covered>(sql, [advertiserId]);
}

/** Where the next live sweep begins. */
export interface SyncState {
  /** Live-lane sweeps that were interrupted, oldest first. */
  readonly unfinished: readonly (ReadRange & { readonly purpose: 'live' | 'recheck' })[];
  /** The first id that a poll must request, at which an application must still be there; null before the first sweep. */
  readonly pollFrom: Position | null;
  /** Some older applications that nobody has found or accepted to be missing. */
  readonly lifelines: readonly Position[];
  /** Ids that cannot be read; those of them that an operator has accepted, and those to be requested again now. */
  readonly unreadable: readonly Position[];
  readonly accepted: readonly Position[];
  readonly due: readonly Position[];
  readonly afterDate: Date | null;
  /** Whether any sweep over ids has ended. */
  readonly covered: boolean;
  /** Whether an audit has ended a certificate, or an upgrade the first sweep, and no sweep has read that range again since. */
  readonly contradicted: boolean;
  /** How late applications may appear, as far as polls have seen; 0 if none was late. */
  readonly latenessMs: number;
  readonly pages: KnownPages | null;
}

/** True for applications `a` that are not missing. A source that shows nothing at all makes every application absent. */
const isNotMissing = `a.missing_since IS NULL AND a.erased_at IS NULL`;
/** True for applications `a` that the source should show. */
const isExpected = `a.absent_since IS NULL AND ${isNotMissing}`;

/** Most ids that are known as unreadable at once. A source that fails for more is in trouble, and its sweeps find them again. */
const mostUnreadable = 500;

/** The next expected id below `id`, at which a sweep begins: late applications may still appear between the two. */
const olderThan = (id: string, advertiser: string, isMeant = isExpected) => `(
  SELECT a.application_id FROM intake.applications a
  WHERE a.advertiser_id = ${advertiser} AND a.application_id < ${id} AND ${isMeant} ORDER BY a.application_id DESC LIMIT 1)`;

/** The lowest of the first 5,000 ids submitted since: hardly any later one is lower, and the cost does not grow with what is stored. */
const lowestSince = (advertiser: string, time: string, isMeant = 'true') => `(SELECT min(young.application_id) FROM (
  SELECT a.application_id FROM intake.applications a
  WHERE a.advertiser_id = ${advertiser} AND a.submitted_at > now() - ${time} AND ${isMeant}
  ORDER BY a.submitted_at LIMIT 5000) AS young)`;

/** Twice the lateness that polls and rechecks have measured within 30 days, at most a day. A lag that is shorter is raised to it. */
const latenessMs = `least(86400000, CASE WHEN v.late_at > now() - interval '30 days' THEN 2 * v.late_ms ELSE 0 END)`;

/** More applications than arrive within a lag. A poll that read again what a first load has stored in its lag would be a second one. */
const mostInLag = 5_000;

/** One lag before the last poll: what commits late at the source may have appeared at any time since. */
const lagAgo = `least(now(), c.as_of) - greatest(asked.lag_ms, ${latenessMs}) * interval '1 millisecond'`;

/** Keeps a subquery as it is. The planner would copy it into every place that names its column, and plan the statement twice as long. */
const once = 'OFFSET 0';

/**
 * A poll begins where the cursor was one lag before the last poll, by `first_seen_at`; where too many rows are newer (after a first load),
 * below the lowest id submitted in the last 26 hours. It begins at an application that must still be there: no healthy answer is empty.
 */
export async function loadSyncStates(
  db: Queryable,
  asked: readonly { readonly advertiserId: bigint | null; readonly lagMs: number }[],
): Promise<SyncState[]> {
  const rows = await db.query<
    Omit<SyncState, 'pollFrom' | 'unfinished' | Ids> &
      Record<Ids, bigint[]> & {
        pollFrom: bigint | null;
        unfinished: { purpose: 'live' | 'recheck'; axis: 'id' | 'date'; low: string; high: string | null }[];
      }
  >(
    `SELECT nullif(v.learned, '{}') AS pages, c.after_date AS "afterDate", poll.poll_from AS "pollFrom",
       coalesce(${latenessMs}::float8, 0) AS "latenessMs",
       ARRAY(SELECT DISTINCT older.id FROM unnest(ARRAY[${olderThan('poll.poll_from', 'asked.advertiser_id', isNotMissing)},
           ${olderThan('poll.poll_from / 2', 'asked.advertiser_id', isNotMissing)},
           (SELECT a.application_id FROM intake.applications a WHERE a.advertiser_id = asked.advertiser_id
             AND a.application_id < poll.poll_from AND ${isNotMissing} ORDER BY a.application_id LIMIT 1)]) AS older (id)
         WHERE older.id IS NOT NULL) AS lifelines,
       unread.*,
       EXISTS (SELECT 1 FROM intake.coverage k WHERE k.advertiser_id = asked.advertiser_id) AS covered,
       EXISTS (SELECT 1 FROM intake.coverage k JOIN intake.sweeps s USING (advertiser_id, sweep_id)
        WHERE k.advertiser_id = asked.advertiser_id AND k.certificate = 'unproven' AND s.certificate <> 'unproven')
        OR (NOT EXISTS (SELECT 1 FROM intake.coverage k WHERE k.advertiser_id = asked.advertiser_id) AND EXISTS (SELECT 1 FROM intake.sweeps s
          WHERE s.advertiser_id = asked.advertiser_id AND s.state = 'dropped' AND s.purpose = 'recheck' AND s.axis = 'id')) AS contradicted,
       (SELECT coalesce(json_agg(json_build_object('purpose', s.purpose, 'axis', s.axis, 'low', s.low::text, 'high', s.high::text)
          ORDER BY s.sweep_id), '[]') FROM intake.sweeps s
        WHERE s.advertiser_id = asked.advertiser_id AND s.lane = 'live' AND s.state = 'running') AS unfinished
     FROM unnest($1::bigint[], $2::float8[]) WITH ORDINALITY AS asked (advertiser_id, lag_ms, nth)
     LEFT JOIN intake.advertisers v ON v.advertiser_id = asked.advertiser_id
     LEFT JOIN intake.cursors c ON c.advertiser_id = asked.advertiser_id
     LEFT JOIN LATERAL (
       SELECT newest.application_id FROM (
         SELECT a.application_id, a.first_seen_at FROM intake.applications a
         WHERE a.advertiser_id = asked.advertiser_id AND a.application_id <= c.after_id AND ${isExpected}
         ORDER BY a.application_id DESC LIMIT ${mostInLag}) AS newest
       WHERE newest.first_seen_at <= ${lagAgo} ORDER BY newest.application_id DESC LIMIT 1) AS aged ON true
     LEFT JOIN LATERAL (
       SELECT coalesce(${olderThan('lowest', 'asked.advertiser_id')}, lowest) AS id FROM (
         SELECT ${lowestSince('asked.advertiser_id', `interval '26 hours'`, isExpected)} AS lowest WHERE aged.application_id IS NULL ${once}) AS young
       WHERE lowest <= c.after_id ${once}) AS recent ON true
     CROSS JOIN LATERAL (
       SELECT CASE WHEN c.after_id IS NOT NULL THEN coalesce(aged.application_id, recent.id, c.after_id) END AS poll_from ${once}) AS poll
     CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(u.application_id), '{}') AS unreadable,
         coalesce(array_agg(u.application_id) FILTER (WHERE u.accepted_at IS NOT NULL), '{}') AS accepted,
         coalesce(array_agg(u.application_id) FILTER (WHERE u.next_at <= now()), '{}') AS due
       FROM (SELECT * FROM intake.unreadable WHERE advertiser_id = asked.advertiser_id ORDER BY next_at LIMIT ${mostUnreadable}) AS u) AS unread
     ORDER BY asked.nth`,
    columnsOf(asked, 'advertiserId', 'lagMs'),
  );
  return rows.map((row) => ({
    ...row,
    pollFrom: row.pollFrom === null ? null : nearestPosition(row.pollFrom),
    lifelines: toPositions(row.lifelines),
    unreadable: toPositions(row.unreadable),
    accepted: toPositions(row.accepted),
    due: toPositions(row.due),
    unfinished: row.unfinished.map(({ low, high, ...one }) => {
      return { ...one, low: BigInt(low), high: high === null ? null : BigInt(high) };
    }),
  }));
}

type Ids = 'lifelines' | 'unreadable' | 'accepted' | 'due';
const toPositions = (ids: readonly bigint[]) => ids.map(nearestPosition).sort(rising);

/** How many stored applications of a range the source should show. */
export async function countListed(db: Queryable, advertiserId: bigint | null, { low, high }: Covered): Promise<number> {
  const [row] = await db.query<{ listed: number }>(
    `SELECT CASE WHEN $2::bigint <= 1 AND $3::bigint IS NULL
       THEN (SELECT coalesce(sum(n), 0)::int FROM intake.tallies WHERE advertiser_id = $1 AND what = 'listed')
       ELSE (SELECT count(*)::int FROM intake.applications a WHERE a.advertiser_id = $1 AND a.application_id >= $2
         AND ($3::bigint IS NULL OR a.application_id <= $3) AND ${isNotMissing}) END AS listed`,
    [advertiserId, low, high],
  );
  return row?.listed ?? 0;
}

/** Ids that are loaded at once to split a range: enough for many questions, and a few hundred kilobytes. */
const idsAtATime = 5_000;

/** The stored ids from a position on, by which a second sweep splits its range into questions. */
export async function loadKnownIds(db: Queryable, advertiserId: bigint | null, from: Position): Promise<KnownIds> {
  const rows = await db.query<Columns<'applications', 'application_id'>>(
    `SELECT application_id FROM intake.applications WHERE advertiser_id = $1 AND application_id >= $2 AND missing_since IS NULL
     ORDER BY application_id LIMIT ${idsAtATime}`,
    [advertiserId, from],
  );
  return { from, ids: rows.map((row) => nearestPosition(row.application_id)), isAll: rows.length < idsAtATime };
}

/** A random place in the range of stored ids, for an audit; null where nothing is stored there. `random` is a share of the range. */
export async function loadAuditPlace(db: Queryable, advertiserId: bigint, random: number, size: number) {
  const rows = await db.query<Columns<'applications', 'application_id'>>(
    `WITH ends AS (
       SELECT (SELECT application_id FROM intake.applications WHERE advertiser_id = $1 ORDER BY application_id LIMIT 1) AS low,
         (SELECT after_id FROM intake.cursors WHERE advertiser_id = $1) AS high
     )
     SELECT a.application_id FROM intake.applications a, ends
     WHERE a.advertiser_id = $1 AND a.application_id >= ends.low + ((ends.high - ends.low) * $2::float8)::bigint
       AND a.application_id <= ends.high AND ${isExpected}
     ORDER BY a.application_id LIMIT $3`,
    [advertiserId, random, size + 2],
  );
  const ids = rows.map((row) => nearestPosition(row.application_id));
  const [first, last] = [ids[0], ids.at(-1)];
  if (first === undefined || last === undefined) return null;
  // With fewer than three ids there are no neighbours: the place is bounded by the ids themselves.
  if (ids.length < 3) return { ids, from: first, to: last };
  return { ids: ids.slice(1, -1), from: toRange(first + 1n, last)?.from ?? last, to: nearestPosition(last - 1n) };
}

type Dated = Pick<Application, 'id' | 'submittedAt'>;

/**
 * Those of these ids, none of them stored, that a certificate covers, submitted before its `complete_through`; or whose range a running sweep
 * has closed, submitted before the one that it would get. What a poll shows above the cursor is new, whatever its date says.
 */
export async function findHidden(db: Queryable, advertiserId: bigint, shown: readonly Dated[], isPoll: boolean) {
  const rows = await db.query<{ id: bigint }>(
    `SELECT s.id FROM unnest($2::bigint[], $3::float8[]) AS s (id, ms)
     -- Without a date of its own, an application is as old as the next one that has a date.
     CROSS JOIN LATERAL (SELECT coalesce(to_timestamp(s.ms / 1000), (SELECT a.submitted_at FROM intake.applications a WHERE a.advertiser_id = $1
       AND a.application_id > s.id AND a.submitted_at IS NOT NULL ORDER BY a.application_id LIMIT 1)) AS at) AS d
     WHERE (EXISTS (SELECT 1 FROM intake.coverage k WHERE k.advertiser_id = $1 AND k.axis = 'id' AND k.certificate <> 'unproven'
           AND k.low <= s.id AND (k.high IS NULL OR k.high >= s.id) AND d.at < k.complete_through)
         OR EXISTS (SELECT 1 FROM intake.sweeps w
           WHERE w.advertiser_id = $1 AND w.state = 'running' AND w.axis = 'id' AND w.purpose IN ('recheck', 'backfill')
             AND w.low <= s.id AND (w.high IS NULL OR w.high >= s.id) AND d.at < to_timestamp(rtrim(w.facts->>'recentFrom', 'n')::float8)
             AND NOT EXISTS (SELECT 1 FROM intake.ranges r WHERE r.advertiser_id = $1 AND r.sweep_id = w.sweep_id
               AND r.low <= s.id AND (r.high IS NULL OR r.high >= s.id))))
       AND NOT EXISTS (SELECT 1 FROM intake.unreadable u WHERE u.advertiser_id = $1 AND u.application_id = s.id)
       AND (NOT $4 OR s.id < (SELECT c.after_id FROM intake.cursors c WHERE c.advertiser_id = $1))`,
    [advertiserId, ...columnsOf(shown, 'id', 'submittedAt'), isPoll],
  );
  return rows.map((row) => row.id);
}

/** Where a sweep of the recent past begins: at the last id below those submitted within this many days. */
export async function loadRecentFrom(db: Queryable, advertiserId: bigint | null, days: number) {
  const [row] = await db.query<{ lowest: bigint | null }>(
    `SELECT coalesce(${olderThan('lowest', '$1')}, lowest) AS lowest
     FROM (SELECT ${lowestSince('$1', `$2 * interval '1 day'`)} AS lowest) AS recent`,
    [advertiserId, days],
  );
  return row?.lowest ? nearestPosition(row.lowest) : null;
}

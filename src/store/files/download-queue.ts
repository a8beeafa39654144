// The download queue: narrow rows that are deleted when the work is done, so the table stays small after a million files. A claim is a
// token and the time at which it expires (`leased_until`); to complete or fail a download, a process must still hold its token.
import type { AttachmentKind } from '../../domain/application.ts';
import type { BlobFacts, FileDescription } from '../../domain/blob.ts';
import type { HashSetting, HashTrust } from '../../domain/download-verdict.ts';
import type { TroubleKind } from '../../domain/trouble.ts';
import { isAccount } from '../person-search.ts';
import { columnsOf, isAhead, longestLease, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns, NotNull } from '../schema/rows.ts';

export interface Claim {
  readonly advertiserId: bigint;
  readonly applicationId: bigint;
  readonly kind: AttachmentKind;
  readonly token: string;
  /** Including this one. */
  readonly attempts: number;
  /** How often a claim on it expired while it was fetched alone. */
  readonly lapses: number;
  /** The list was read since the last request for this file failed: the source serves the account. False before the first failure. */
  readonly isServed: boolean;
  /** When it last failed because of our storage, on the `performance.now` clock; infinite where its last failure was another, or none. */
  readonly failedAt: number;
}

export interface ClaimRequest {
  /** The advertisers to claim for; halted ones are skipped. */
  readonly advertisers: readonly bigint[];
  /** Suspects are claimed separately, to be fetched alone. */
  readonly tier: 'usual' | 'suspects';
  readonly limit: number;
  /** A fresh uuid; all tokens of a process begin with the same eight digits. */
  readonly token: string;
  readonly leaseMs: number;
}

/** No claim holds download `d`. One too far ahead is from before the clock was set back. Claim columns have no index: a claim updates none. */
export const isFree = `(d.leased_until IS NULL OR d.leased_until <= now() OR d.leased_until > now() + ${longestLease})`;

/** True where download `d` could begin now. */
export const isDue = `d.due_at <= now() AND ${isFree}`;

/** When this advertiser's list was last read. A poll that ended unproven did not read what is new; a time in the future says nothing. */
export const listReadAt = (advertiserId: string) => `greatest(
  (SELECT c.as_of FROM intake.cursors c WHERE c.advertiser_id = ${advertiserId} AND NOT ${isAhead('c.as_of')}),
  (SELECT s.ended_at FROM intake.sweeps s
   WHERE s.advertiser_id = ${advertiserId} AND s.lane = 'live' AND NOT ${isAhead('s.started_at')} AND NOT ${isAhead('s.ended_at')}
     AND NOT (s.purpose = 'live' AND s.certificate = 'unproven')
   ORDER BY s.started_at DESC LIMIT 1))`;

/** 0 live, 1 backfill, 2 suspect: a row whose claim expired. */
const priorities = { usual: [0, 1], suspects: [2] };

/**
 * For each advertiser and priority, the rows that have been due longest. Advertisers with due rows share the limit equally; if there are
 * more of them than the limit, it picks at random. It starts from active ones, so a halted advertiser's million rows are not read. A row
 * whose claim expired is not claimed but becomes a suspect; only expired claims of suspects count as lapses, since suspects are fetched
 * alone, and none of the process that claims now: it has not ended. Joining by ctid keeps the plan an index scan at any size. The commit
 * does not wait for the disk: if a database crash loses a claim, its token completes nothing.
 */
const claimSql = `
  WITH active AS MATERIALIZED (
    SELECT v.advertiser_id, set_config('synchronous_commit', 'off', true) FROM intake.advertisers v
    WHERE v.state = 'active' AND v.advertiser_id = ANY ($1::bigint[]) AND EXISTS (
      SELECT 1 FROM intake.downloads d
      WHERE d.advertiser_id = v.advertiser_id AND d.priority = ANY ($2::smallint[]) AND ${isDue})
    ORDER BY random() LIMIT $3::int
  ), share AS MATERIALIZED (
    SELECT ceil($3::float8 / greatest(count(*), 1))::int AS size FROM active
  ), due AS MATERIALIZED (
    SELECT d.row_id, row_number() OVER (PARTITION BY active.advertiser_id ORDER BY tier.priority, d.due_at) AS nth
    FROM active CROSS JOIN unnest($2::smallint[]) AS tier (priority) CROSS JOIN LATERAL (
      SELECT d.ctid AS row_id, d.due_at FROM intake.downloads d
      WHERE d.advertiser_id = active.advertiser_id AND d.priority = tier.priority AND ${isDue}
      ORDER BY d.due_at LIMIT (SELECT size FROM share) FOR UPDATE SKIP LOCKED
    ) AS d
  )
  UPDATE intake.downloads SET
    lease_token = CASE WHEN lease_token IS NULL THEN $4::uuid END,
    leased_until = CASE WHEN lease_token IS NULL THEN now() + $5 * interval '1 millisecond' END,
    attempts = attempts + CASE WHEN lease_token IS NULL THEN 1 ELSE -1 END,
    lapses = lapses + (lease_token IS NOT NULL AND priority = 2 AND left(lease_token::text, 8) <> left($4::text, 8))::int,
    priority = CASE WHEN lease_token IS NULL THEN priority ELSE 2 END
  WHERE ctid = ANY (ARRAY(SELECT row_id FROM due, share WHERE nth <= size))
  RETURNING advertiser_id AS "advertiserId", application_id AS "applicationId", kind, attempts, lapses,
    lease_token AS token,
    coalesce(failed_at > now() OR failed_at < ${listReadAt('downloads.advertiser_id')}, false) AS "isServed",
    coalesce(CASE WHEN trouble_kind = 'local' THEN extract(epoch FROM now() - failed_at) END, '-infinity')::float8 * 1000 AS "failedMs"`;

/** Claims due downloads, an equal share for each advertiser. `expired` counts rows whose claim had expired, which are now suspects. */
export async function claimDownloads(db: Queryable, request: ClaimRequest) {
  const { advertisers, tier, limit, token, leaseMs } = request;
  const rows = await db.query<Omit<Claim, 'token' | 'failedAt'> & { token: string | null; failedMs: number }>(
    claimSql,
    [advertisers, priorities[tier], limit, token, leaseMs],
  );
  const now = performance.now();
  const claims = rows.flatMap(({ failedMs, ...row }) =>
    row.token === null ? [] : [{ ...row, token: row.token, failedAt: now - failedMs }],
  );
  return { claims, expired: rows.length - claims.length };
}

const toColumns = (claims: readonly Claim[]) => columnsOf(claims, 'advertiserId', 'applicationId', 'kind', 'token');
const keyed = `unnest($1::bigint[], $2::bigint[], $3::text[], $4::uuid[]) AS c (advertiser_id, application_id, kind, token)
  WHERE d.advertiser_id = c.advertiser_id AND d.application_id = c.application_id AND d.kind = c.kind AND d.lease_token = c.token`;

/** Skips rows that are locked: being completed, or extended by the next heartbeat. To wait while holding other rows could deadlock. */
export async function renewDownloads(db: Queryable, claims: readonly Claim[], leaseMs: number): Promise<void> {
  await db.query(
    `UPDATE intake.downloads SET leased_until = now() + $5 * interval '1 millisecond'
     WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM intake.downloads d, ${keyed} FOR UPDATE OF d SKIP LOCKED))`,
    [...toColumns(claims), leaseMs],
  );
}

/** Makes downloads due that wait without a failure, or failed in the future, or are claimed undue: the clock was set back since. */
export async function bringForward(db: Queryable): Promise<void> {
  await db.query(
    `UPDATE intake.downloads SET due_at = now() WHERE ctid = ANY (ARRAY(
       SELECT d.ctid FROM intake.advertisers v CROSS JOIN unnest('{0,1,2}'::smallint[]) AS tier (priority)
       JOIN intake.downloads d ON d.advertiser_id = v.advertiser_id AND d.priority = tier.priority
       WHERE ${isAhead('d.due_at')}
         AND (d.lease_token IS NOT NULL OR d.failed_at IS NULL OR d.failed_at > now())
       FOR UPDATE OF d SKIP LOCKED))`,
  );
}

export interface Postponement {
  readonly delayMs: number;
  /** False: this attempt does not count. */
  readonly countsAttempt: boolean;
  readonly trouble: { readonly kind: TroubleKind; readonly message: string } | null;
}

/** Returns a claim to the queue with a delay. A suspect is no longer one after an attempt that ended. */
export async function postponeDownload(db: Queryable, claim: Claim, wait: Postponement): Promise<void> {
  await db.query(
    `UPDATE intake.downloads d SET lease_token = NULL, leased_until = NULL, due_at = now() + $5 * interval '1 millisecond',
       attempts = d.attempts - $6::int, priority = CASE WHEN d.priority = 2 THEN 1 ELSE d.priority END,
       trouble = coalesce($7, d.trouble), trouble_kind = coalesce($8, d.trouble_kind), failed_at = CASE WHEN $8::text IS NULL THEN d.failed_at ELSE now() END
     FROM ${keyed}`,
    [...toColumns([claim]), wait.delayMs, wait.countsAttempt ? 0 : 1, wait.trouble?.message, wait.trouble?.kind],
  );
}

/** Returns claims to the queue unchanged, for shutdown: the attempt does not count. */
export async function releaseDownloads(db: Queryable, claims: readonly Claim[]): Promise<void> {
  await db.query(
    `UPDATE intake.downloads d SET lease_token = NULL, leased_until = NULL, attempts = d.attempts - 1 FROM ${keyed}`,
    toColumns(claims),
  );
}

/** Revokes the claims of downloads that announced these bytes, without counting the attempt: their objects may be gone. */
export async function takeBackAnnounced(tx: Transaction, advertiserId: bigint, hashes: readonly string[]) {
  await tx.query(
    `UPDATE intake.downloads SET lease_token = NULL, leased_until = NULL, attempts = attempts - 1
     WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND lease_token IS NOT NULL`,
    [advertiserId, hashes],
  );
}

/** `waiting` counts all downloads, `notThere` those whose file the source does not have yet; `nextInMs`: when one of the others is due. */
export async function loadWaiting(db: Queryable, advertisers: readonly bigint[]) {
  const [row] = await db.query<{ waiting: number; notThere: number; nextInMs: number | null }>(
    `SELECT count(*)::int AS waiting, (count(*) FILTER (WHERE trouble_kind = 'missing'))::int AS "notThere",
       extract(epoch FROM min(greatest(due_at, leased_until)) FILTER (WHERE trouble_kind IS DISTINCT FROM 'missing') - now())::float8 * 1000 AS "nextInMs"
     FROM intake.downloads d JOIN intake.advertisers v USING (advertiser_id)
     WHERE d.advertiser_id = ANY ($1::bigint[]) AND v.state = 'active'`,
    [advertisers],
  );
  return row ?? { waiting: 0, notThere: 0, nextInMs: null };
}

/** Wakes workers that wait for downloads, when the transaction commits. */
export async function notifyQueued(tx: Transaction, advertiserId: bigint): Promise<void> {
  await tx.query(`SELECT pg_notify('intake_downloads', $1::bigint::text)`, [advertiserId]);
}

/** Advertisers with a due download that are neither halted nor paused, by name. An empty queue costs one lookup, whatever their number. */
export async function loadDueAdvertisers(db: Queryable, paused: readonly string[] = []): Promise<Map<string, bigint>> {
  const rows = await db.query<NotNull<Columns<'advertisers', 'name' | 'advertiser_id'>>>(
    `SELECT v.name, v.advertiser_id FROM intake.advertisers v
     WHERE v.state = 'active' AND v.name <> ALL ($1::text[]) AND EXISTS (SELECT 1 FROM intake.downloads) AND EXISTS (
         SELECT 1 FROM unnest('{0,1,2}'::smallint[]) AS tier (priority) CROSS JOIN LATERAL (
           SELECT 1 FROM intake.downloads d
           WHERE d.advertiser_id = v.advertiser_id AND d.priority = tier.priority AND ${isDue}
           ORDER BY d.due_at LIMIT 1) AS due)`,
    [paused],
  );
  return new Map(rows.map((row) => [row.name, row.advertiser_id]));
}

/** What is known about a file before its download starts: the source's description, and a stored file that may have the same bytes. */
export interface FileFacts {
  readonly claim: Claim;
  /** Size in the list; it may be wrong. */
  readonly listedBytes: number | null;
  readonly uploadedAt: Date | null;
  /** A stored file with equal Hash and Size, which may have the same bytes. Null where the download only checks a changed Hash. */
  readonly twin: Twin | null;
  readonly trust: HashTrust;
}

/** Without the twin's file name, which a parameter of its type may repeat: it may be another person's, and would survive their erasure. */
export interface Twin extends BlobFacts, Omit<FileDescription, 'fileName'> {}

/**
 * Candidates for a twin: files of the same jobseeker and kind where trust is earned, of the whole advertiser where it is given. A screen is
 * never linked: it has to be parsed. LIMIT 50 bounds a shared jobseeker id. LIMIT and OFFSET 0 also keep the planner, whose statistics lag
 * behind, from reading an advertiser's whole index for each file (measured: 4,000 pages for 32 claims among 500 applications).
 */
const twinSql: Record<Exclude<HashSetting, 'never'>, string> = {
  learn: `SELECT o.* FROM (
      SELECT q.application_id FROM intake.applications q
      WHERE q.advertiser_id = a.advertiser_id AND q.job_seeker_id = p.job_seeker_id AND q.application_id <> a.application_id
        AND ${isAccount('p.job_seeker_id')} LIMIT 50
    ) AS q CROSS JOIN LATERAL (
      SELECT * FROM intake.attachments o
      WHERE o.advertiser_id = a.advertiser_id AND o.application_id = q.application_id AND o.kind = a.kind OFFSET 0
    ) AS o`,
  always: `SELECT o.* FROM intake.attachments o
    WHERE o.advertiser_id = a.advertiser_id AND o.kind <> 'screen' AND left(o.source_hash, 100) = left(a.source_hash, 100)`,
};

/** Loads the facts of a batch of claims. A claim whose attachment no longer exists is left out. */
export async function loadFileFacts(db: Queryable, claims: readonly Claim[], setting: HashSetting) {
  const candidates = setting === 'never' ? `SELECT * FROM intake.attachments WHERE false` : twinSql[setting];
  const rows = await db.query<Omit<FileFacts, 'claim'> & { at: number }>(
    `SELECT c.at::int, a.size_bytes::float8 AS "listedBytes", a.uploaded_at AS "uploadedAt", to_jsonb(t) AS twin,
       jsonb_build_object('agreed', coalesce(h.agreed, 0), 'contradicted', h.contradicted_at IS NOT NULL) AS trust
     FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS c (advertiser_id, application_id, kind, at)
     JOIN intake.attachments a USING (advertiser_id, application_id, kind)
     JOIN intake.applications p USING (advertiser_id, application_id)
     LEFT JOIN intake.hash_trust h USING (advertiser_id)
     LEFT JOIN LATERAL (
       SELECT o.sha256, b.size_bytes AS "sizeBytes", rtrim(split_part(o.content_type, ';', 1)) AS "contentType", o.detected_type AS "detectedType"
       FROM (${candidates}) AS o JOIN intake.blobs b ON b.advertiser_id = o.advertiser_id AND b.sha256 = o.sha256
       WHERE a.state = 'pending' AND a.kind <> 'screen' AND a.source_hash <> '' AND o.state = 'stored' AND b.state = 'stored'
         AND o.source_hash = a.source_hash AND o.size_bytes = a.size_bytes
       ORDER BY o.linked LIMIT 1
     ) AS t ON true`,
    columnsOf(claims, 'advertiserId', 'applicationId', 'kind'),
  );
  return rows.flatMap(({ at, ...facts }) => claims.slice(at - 1, at).map((claim) => ({ ...facts, claim })));
}

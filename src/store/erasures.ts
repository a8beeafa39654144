// Erasures as durable work. The rows go in one transaction together with the job that says what is left to do: files to delete, what ran
// at the time to outlast, a second look. A crash between any two steps leaves a job that any process can go on with.
import { type KeyObject, randomUUID } from 'node:crypto';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import type { ErasureCounts, ErasureJob, Sought } from '../domain/erasure.ts';
import { isNothing } from '../domain/erasure.ts';
import { recordDeed } from './audit.ts';
import { type Database, type Queryable, untilSettled } from './database.ts';
import { appendEvents } from './events.ts';
import { laneLock } from './leases.ts';
import { erasePerson, eraseRemains, findPerson, toSoughtText } from './persons.ts';
import { toTombstone } from './tombstones.ts';

export interface ErasureRequest {
  readonly advertiserId: bigint;
  readonly sought: Sought;
  /** User and machine, or the duty. */
  readonly by: string;
}

/** Erases the rows of a person and leaves a job for the rest; null when there is nothing to erase. */
export async function beginErasure(
  db: Database,
  key: KeyObject,
  request: ErasureRequest,
  crashPoint?: PassCrashPoint,
): Promise<ErasureJob | null> {
  const { advertiserId, sought, by } = request;
  // Alone with the advertiser's applications: a page that was compared before this sees the tombstones when it writes.
  return await untilSettled(() =>
    db.transaction(
      async (tx) => {
        const person = await findPerson(tx, key, advertiserId, sought, true);
        if (isNothing(person.counts)) return null;
        const jobId = randomUUID();
        const quietAt = await loadQuietAt(tx, advertiserId);
        await erasePerson(tx, key, advertiserId, jobId, person, sought);
        const [row] = await tx.query<JobRow>(
          `INSERT INTO intake.erasure_jobs AS j
             (advertiser_id, job_id, sought_by, sought, requested_by, step, quiet_at, application_ids, hashes, counts)
           VALUES ($1, $2, $3, $4, $5, 'bytes', $6, $7, $8, $9::jsonb) RETURNING ${jobColumns}`,
          [
            advertiserId,
            jobId,
            sought.by,
            toTombstone(key, advertiserId, 'request', toSoughtText(sought)),
            by,
            quietAt,
            person.applicationIds,
            person.hashes,
            JSON.stringify(person.counts),
          ],
        );
        const applicationId = sought.by === 'application' ? sought.applicationId : null;
        const facts = { job_id: jobId, sought_by: sought.by, ...person.counts };
        await recordDeed(tx, { advertiserId, action: 'erase', applicationId, by, facts });
        await appendEvents(
          tx,
          advertiserId,
          person.applicationIds.map((id) => ({ applicationId: id, type: 'application.erased' })),
        );
        crashPoint?.('erasureWritten');
        return row ? toJob(row) : null;
      },
      laneLock(advertiserId, 'live'),
    ),
  );
}

/** When every lease and every download of the advertiser that runs now has lapsed, unless it is given a new one; by `due_at`, one of a worker before 0012. */
async function loadQuietAt(tx: Queryable, advertiserId: bigint): Promise<Date> {
  const [row] = await tx.query<{ quiet_at: Date }>(
    `SELECT greatest(now(),
       (SELECT max(greatest(leased_until, due_at)) FROM intake.downloads WHERE advertiser_id = $1 AND lease_token IS NOT NULL),
       (SELECT max(l.expires_at) FROM intake.leases l JOIN intake.advertisers v USING (name)
        WHERE v.advertiser_id = $1 AND l.expires_at > now())) AS quiet_at`,
    [advertiserId],
  );
  return row?.quiet_at ?? new Date();
}

/** Jobs that are not at their end, oldest first; of one request only where given. */
export async function loadOpenErasures(
  db: Queryable,
  key: KeyObject,
  advertiserId: bigint,
  sought?: Sought,
): Promise<ErasureJob[]> {
  const wanted = sought && toTombstone(key, advertiserId, 'request', toSoughtText(sought));
  const rows = await db.query<JobRow>(
    `SELECT ${jobColumns} FROM intake.erasure_jobs j
     WHERE advertiser_id = $1 AND closed_at IS NULL AND ($2::bytea IS NULL OR sought = $2) ORDER BY requested_at`,
    [advertiserId, wanted ?? null],
  );
  return rows.map(toJob);
}

/** The files are deleted, as far as nobody else holds them: `shared` are those that stay. What ran at the time is waited for. */
export async function awaitErasure(db: Queryable, job: ErasureJob, shared: number): Promise<ErasureJob> {
  const [row] = await db.query<JobRow>(
    `UPDATE intake.erasure_jobs j SET step = 'waiting', counts = counts || jsonb_build_object('shared', $3::int)
     WHERE advertiser_id = $1 AND job_id = $2 AND step <> 'closed' RETURNING ${jobColumns}`,
    [job.advertiserId, job.jobId, shared],
  );
  return row ? toJob(row) : job;
}

/** The second look. Finds nothing: the job is closed, and forgets what it was about. Finds something: that goes too, and all begins again. */
export async function lookAgain(
  db: Database,
  { advertiserId, jobId, applicationIds }: ErasureJob,
): Promise<ErasureJob> {
  const [job] = await untilSettled(() =>
    db.transaction(
      async (tx) => {
        const remains = await eraseRemains(tx, advertiserId, applicationIds ?? []);
        const next =
          remains === 0
            ? `step = 'closed', closed_at = now(), application_ids = NULL, hashes = NULL`
            : `step = 'bytes', quiet_at = $3`;
        const rows = await tx.query<JobRow>(
          `UPDATE intake.erasure_jobs j SET looks = looks + 1, ${next}
           WHERE advertiser_id = $1 AND job_id = $2 AND step <> 'closed' RETURNING ${jobColumns}`,
          [advertiserId, jobId, ...(remains === 0 ? [] : [await loadQuietAt(tx, advertiserId)])],
        );
        return rows.length > 0 ? rows : await loadRows(tx, advertiserId, jobId);
      },
      laneLock(advertiserId, 'live'),
    ),
  );
  if (!job) throw new Error('The row of an erasure vanished.');
  return toJob(job);
}

async function loadRows(db: Queryable, advertiserId: bigint, jobId: string): Promise<JobRow[]> {
  return await db.query<JobRow>(
    `SELECT ${jobColumns} FROM intake.erasure_jobs j WHERE advertiser_id = $1 AND job_id = $2`,
    [advertiserId, jobId],
  );
}

/** How many applications are older than that, of how many. */
export async function countAged(
  db: Queryable,
  advertiserId: bigint,
  before: Date,
): Promise<{ readonly due: number; readonly held: number }> {
  const [row] = await db.query<{ due: number; held: number }>(
    `SELECT count(*)::int AS held, count(*) FILTER (
       WHERE submitted_at < $2 OR (submitted_at IS NULL AND first_seen_at < $2))::int AS due
     FROM intake.applications WHERE advertiser_id = $1 AND erased_at IS NULL`,
    [advertiserId, before],
  );
  return row ?? { due: 0, held: 0 };
}

/** Books how many the brake holds back, for the status; null when none. */
export async function noteRetention(db: Queryable, advertiserId: bigint, due: number | null): Promise<void> {
  await db.query(
    `UPDATE intake.advertisers SET retention_due = $2 WHERE advertiser_id = $1 AND retention_due IS DISTINCT FROM $2`,
    [advertiserId, due],
  );
}

interface JobRow extends Record<string, unknown> {
  advertiser_id: bigint;
  job_id: string;
  sought_by: Sought['by'];
  requested_at: Date;
  requested_by: string;
  step: ErasureJob['step'];
  quiet_in_ms: number;
  application_ids: string[] | null;
  hashes: string[] | null;
  counts: ErasureCounts;
  looks: number;
  closed_at: Date | null;
}

const jobColumns = `j.advertiser_id, j.job_id, j.sought_by, j.requested_at, j.requested_by, j.step, j.application_ids::text[] AS application_ids,
  j.hashes, j.counts, j.looks, j.closed_at, extract(epoch FROM j.quiet_at - clock_timestamp())::float8 * 1000 AS quiet_in_ms`;

function toJob(row: JobRow): ErasureJob {
  return {
    advertiserId: row.advertiser_id,
    jobId: row.job_id,
    soughtBy: row.sought_by,
    requestedAt: row.requested_at,
    requestedBy: row.requested_by,
    step: row.step,
    quietInMs: row.quiet_in_ms,
    applicationIds: row.application_ids?.map(BigInt) ?? null,
    hashes: row.hashes,
    counts: row.counts,
    looks: row.looks,
    closedAt: row.closed_at,
  };
}

// Erasures as durable jobs: one transaction erases the rows, writes the tombstones, and inserts a job that any process can finish.
import { type KeyObject, randomUUID } from 'node:crypto';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { type ErasureJob, isNothing, type Sought, toSoughtText } from '../../domain/erasure.ts';
import { laneLock } from '../accounts/leases.ts';
import { type ApplicationEvent, appendEvents } from '../events.ts';
import { type Account, renewTombstones, setTombstones, toTombstone } from '../gate.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import { recordAudit } from './decisions.ts';
import { erasePerson, type FoundPerson, findPerson, isAged } from './find-and-erase.ts';

export interface ErasureRequest {
  readonly advertiserId: bigint;
  readonly sought: Sought;
  /** User and machine, or the maintenance task. */
  readonly by: string;
  /** Also keeps out applications of this account or address that were never read before. */
  readonly future?: boolean | undefined;
}

/** Where nothing is stored, the job is closed at once: the receipt also keeps out a prefill that has begun. Null: retention finds no more. */
export async function beginErasure(
  db: Database,
  privacyKey: KeyObject,
  request: ErasureRequest,
  crashPoint?: PassCrashPoint,
): Promise<ErasureJob | null> {
  const { advertiserId, sought } = request;
  // The lane lock excludes all other writers of applications. A page that was diffed before commits afterwards and sees the tombstones.
  return await db.repeatTransaction(
    async (tx) => {
      const account = { db: tx, privacyKey, advertiserId };
      const person = await findPerson(account, sought, { lock: true });
      if (sought.by === 'retention' && isNothing(person.counts)) return null;
      const job = await writeErasure(account, request, person);
      await appendEvents(tx, advertiserId, person.applicationIds.map(toErasedEvent));
      crashPoint?.('erasureWritten');
      return job;
    },
    laneLock(advertiserId, 'live'),
  );
}

/** Erases what the source shows with an erased account or address, each with a receipt, and nothing that names their former ones. */
export async function eraseStopped(
  account: Account & { events: ApplicationEvent[] },
  stopped: Iterable<{ id: bigint }>,
) {
  for (const { id: applicationId } of stopped) {
    const sought = { by: 'application', applicationId } as const;
    const person = await findPerson(account, sought, { lock: true, alone: true });
    if (person.applicationIds.length > 0) await writeErasure(account, { sought, by: 'gate' }, person);
    account.events.push(...person.applicationIds.map(toErasedEvent));
  }
}

/** Erases what was found, and leaves the job, the tombstones and the line in the audit log. */
async function writeErasure(
  account: Account,
  { sought, by, future = false }: Omit<ErasureRequest, 'advertiserId'>,
  person: FoundPerson,
): Promise<ErasureJob | null> {
  const { db, advertiserId } = account;
  const requestHash = toTombstone(account, 'request', toSoughtText(sought));
  const isFound = !isNothing(person.counts);
  const jobId = randomUUID();
  await erasePerson(account, jobId, person);
  if (!isFound) await renewTombstones(account, requestHash);
  const isPerson = sought.by === 'address' || sought.by === 'jobseeker';
  if (isPerson) await setTombstones(account, jobId, [requestHash], future);
  const rest = isFound ? [person.applicationIds, person.hashes] : [null, null];
  const [row] = await db.query<ErasureJob>(
    `INSERT INTO intake.erasure_jobs AS j
       (advertiser_id, job_id, sought_by, sought, requested_by, step, check_again_at, application_ids, hashes, counts, closed_at)
     VALUES ($1, $2, $3, $4, $5, CASE WHEN $9 THEN 'bytes' ELSE 'closed' END, now(), $6, $7, $8::jsonb,
       CASE WHEN NOT $9 THEN now() END) RETURNING ${jobColumns}`,
    [advertiserId, jobId, sought.by, requestHash, by, ...rest, JSON.stringify(person.counts), isFound],
  );
  const applicationId = sought.by === 'application' ? sought.applicationId : null;
  const facts = { job_id: jobId, sought_by: sought.by, ...(future && { future }), ...person.counts };
  await recordAudit(db, { advertiserId, action: 'erase', applicationId, by, facts });
  return row ?? null;
}

const toErasedEvent = (applicationId: bigint): ApplicationEvent => ({ applicationId, type: 'application.erased' });

/** Open jobs, oldest first; only those of one request where `sought` is given. */
export async function loadOpenErasures(account: Account, sought?: Sought): Promise<ErasureJob[]> {
  const wanted = sought && toTombstone(account, 'request', toSoughtText(sought));
  return await account.db.query<ErasureJob>(
    `SELECT ${jobColumns} FROM intake.erasure_jobs j
     WHERE advertiser_id = $1 AND closed_at IS NULL AND ($2::bytea IS NULL OR sought = $2) ORDER BY requested_at`,
    [account.advertiserId, wanted ?? null],
  );
}

/** Adds to the receipt. Files of extracts are noted before they are deleted: afterwards nothing would show that they were there. */
export async function noteExtracts(
  db: Queryable,
  job: ErasureJob,
  what: 'extractFiles' | 'extractsOfOthers',
  names: readonly string[],
): Promise<void> {
  await db.query(
    `UPDATE intake.erasure_jobs SET counts = counts || jsonb_build_object($4::text, ARRAY(
       SELECT jsonb_array_elements_text(coalesce(counts->$4, '[]')) UNION SELECT unnest($3::text[]) ORDER BY 1))
     WHERE advertiser_id = $1 AND job_id = $2 AND step <> 'closed'`,
    [job.advertiserId, job.jobId, names, what],
  );
}

export async function noteErasureTrouble(db: Queryable, job: ErasureJob, trouble: string): Promise<void> {
  await db.query(
    `UPDATE intake.erasure_jobs SET trouble = $3 WHERE advertiser_id = $1 AND job_id = $2 AND step <> 'closed'`,
    [job.advertiserId, job.jobId, trouble],
  );
}

/** The receipt no longer names applications and files. Of two processes that finish a job, the second gets the receipt of the first. */
export async function closeErasure(db: Queryable, job: ErasureJob, kept: Record<'shared' | 'keptVersions', number>) {
  const key = [job.advertiserId, job.jobId];
  await db.query(
    `UPDATE intake.erasure_jobs SET step = 'closed', closed_at = now(), application_ids = NULL, hashes = NULL, trouble = NULL,
       counts = counts || jsonb_build_object('shared', $3::int, 'keptVersions', $4::int)
     WHERE advertiser_id = $1 AND job_id = $2 AND step <> 'closed'`,
    [...key, kept.shared, kept.keptVersions],
  );
  const [receipt] = await db.query<ErasureJob>(
    `SELECT ${jobColumns} FROM intake.erasure_jobs j WHERE advertiser_id = $1 AND job_id = $2`,
    key,
  );
  if (!receipt) throw new Error('The row of an erasure vanished.');
  return receipt;
}

/** How many applications, quarantined elements and redeemed prefills are older than that (`due`), and how many there are (`stored`). */
export async function countAged(db: Queryable, advertiserId: bigint, before: Date) {
  const count = (table: string, condition: string, stored: string) =>
    `SELECT count(*) AS stored, count(*) FILTER (WHERE ${condition}) AS due FROM intake.${table} WHERE advertiser_id = $1 AND ${stored}`;
  const [row] = await db.query<{ due: number; stored: number }>(
    `SELECT sum(due)::int AS due, sum(stored)::int AS stored FROM (
       ${count('applications', isAged.applications, 'erased_at IS NULL')}
       UNION ALL ${count('quarantine', isAged.quarantine, 'true')}
       UNION ALL ${count('prefills', isAged.prefills, `outcome = 'redeemed'`)}) AS counted`,
    [advertiserId, before],
  );
  return row ?? { due: 0, stored: 0 };
}

/** Records how many rows the brake of retention (docs/protect-people.md) holds back, for the status; null when none. */
export async function noteRetention(db: Queryable, advertiserId: bigint, due: number | null): Promise<void> {
  await db.query(
    `UPDATE intake.advertisers SET retention_due = $2 WHERE advertiser_id = $1 AND retention_due IS DISTINCT FROM $2`,
    [advertiserId, due],
  );
}

const jobColumns = `j.advertiser_id AS "advertiserId", j.job_id AS "jobId", j.sought_by AS "soughtBy", j.requested_at AS "requestedAt",
  j.requested_by AS "requestedBy", j.application_ids AS "applicationIds", j.hashes, j.counts, j.closed_at AS "closedAt"`;

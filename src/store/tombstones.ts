// Tombstones: keyed hashes of erased data that must not return. A writer looks them up inside its transaction. The lane lock keeps an
// erasure and a page's commit from running at the same time.
import { createHmac, type KeyObject } from 'node:crypto';
import { toEarlierPersonKey, toPersonKey } from './person-key.ts';
import type { Queryable } from './postgres/database.ts';
import type { Columns, NotNull } from './schema/rows.ts';

/** What a tombstone stands for: an application by its id, a quarantined element by its fingerprint, an erasure request by its text. */
export type Remembered = 'application' | 'quarantine' | 'request';

/** The keyed hash of an erased id; without the key it does not reveal the id. */
export function toTombstone(key: KeyObject, advertiserId: bigint, what: Remembered, id: string): Buffer {
  return createHmac('sha256', key).update(`erased ${what}:${advertiserId}:${id}`).digest();
}

/** Which of these applications were erased. Ids above all erased ones, such as new arrivals, cost one index lookup and no hash. */
export async function findErasedIds(
  tx: Queryable,
  key: KeyObject,
  advertiserId: bigint,
  ids: readonly bigint[],
): Promise<ReadonlySet<bigint>> {
  const [row] = await tx.query<Columns<'advertisers', 'erased_through'>>(
    `SELECT erased_through FROM intake.advertisers WHERE advertiser_id = $1`,
    [advertiserId],
  );
  const through = row?.erased_through ?? null;
  const doubtful = through === null ? [] : ids.filter((id) => id <= through);
  const erased = await findErased(tx, key, advertiserId, 'application', doubtful.map(String));
  return new Set(doubtful.filter((_, at) => erased.has(at)));
}

/** Which of these were erased, as indexes into the list. */
export async function findErased(
  tx: Queryable,
  key: KeyObject,
  advertiserId: bigint,
  what: Remembered,
  ids: readonly string[],
): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set();
  const rows = await tx.query<{ at: number }>(
    `SELECT t.at::int FROM unnest($2::bytea[]) WITH ORDINALITY AS t (tombstone, at)
     JOIN intake.erasures e ON e.advertiser_id = $1 AND e.tombstone = t.tombstone`,
    [advertiserId, ids.map((id) => toTombstone(key, advertiserId, what, id))],
  );
  return new Set(rows.map((row) => row.at - 1));
}

/** Adds tombstones; existing ones keep their time. */
export async function setTombstones(
  tx: Queryable,
  advertiserId: bigint,
  jobId: string,
  tombstones: readonly Buffer[],
): Promise<void> {
  if (tombstones.length === 0) return;
  await tx.query(
    `INSERT INTO intake.erasures (advertiser_id, tombstone, job_id)
     SELECT $1, t, $2 FROM unnest($3::bytea[]) AS t ON CONFLICT (advertiser_id, tombstone) DO NOTHING`,
    [advertiserId, jobId, tombstones],
  );
}

/** Adds or renews tombstones whose time matters: a prefill that began before it is kept out. */
export async function renewTombstones(
  tx: Queryable,
  advertiserId: bigint,
  jobId: string,
  tombstones: readonly Buffer[],
): Promise<void> {
  if (tombstones.length === 0) return;
  await tx.query(
    `INSERT INTO intake.erasures (advertiser_id, tombstone, job_id)
     SELECT DISTINCT $1::bigint, t, $2::uuid FROM unnest($3::bytea[]) AS t
     ON CONFLICT (advertiser_id, tombstone) DO UPDATE SET job_id = excluded.job_id, erased_at = excluded.erased_at`,
    [advertiserId, jobId, tombstones],
  );
}

/** Renews all tombstones of a job, including those of an account's addresses. */
export async function renewTombstonesOf(tx: Queryable, advertiserId: bigint, jobId: string): Promise<void> {
  await tx.query(`UPDATE intake.erasures SET erased_at = now() WHERE advertiser_id = $1 AND job_id = $2`, [
    advertiserId,
    jobId,
  ]);
}

/** Whether PRIVACY_KEY is the key that produced the stored person keys and tombstones. `untried`: none are stored. */
export type KeyState = 'matches' | 'differs' | 'untried';

/** Applications to search at each end for a person key, so that a start costs the same however many rows retention has emptied. */
const mostLookedThrough = 100;

/** Recomputes person keys of the oldest and newest applications, and the tombstone of the highest erased id, and compares them. */
export async function loadKeyState(db: Queryable, key: KeyObject): Promise<KeyState> {
  const ends = (order: string) => `(SELECT e.job_seeker_id, e.email, e.person_key FROM (
      SELECT * FROM intake.applications a WHERE a.advertiser_id = v.advertiser_id
      ORDER BY a.application_id ${order} LIMIT ${mostLookedThrough}) AS e
    WHERE e.person_key IS NOT NULL LIMIT 5)`;
  const people = await db.query<
    Columns<'applications', 'advertiser_id' | 'job_seeker_id' | 'email'> &
      NotNull<Columns<'applications', 'person_key'>>
  >(
    `SELECT v.advertiser_id, a.* FROM intake.advertisers v
     CROSS JOIN LATERAL (${ends('ASC')} UNION ALL ${ends('DESC')}) AS a LIMIT 500`,
  );
  const isOther = ({ advertiser_id, job_seeker_id, email, person_key }: (typeof people)[number]) =>
    [toPersonKey, toEarlierPersonKey].every(
      (toKey) => toKey(key, advertiser_id, { jobSeekerId: job_seeker_id, email }) !== person_key,
    );
  if (people.some(isOther)) return 'differs';
  const erased = await db.query<NotNull<Columns<'advertisers', 'advertiser_id' | 'erased_through'>>>(
    `SELECT advertiser_id, erased_through FROM intake.advertisers WHERE erased_through IS NOT NULL`,
  );
  if (people.length + erased.length === 0) return 'untried';
  const remembered = await db.query(
    `SELECT 1 FROM unnest($1::bigint[], $2::bytea[]) AS t (advertiser_id, tombstone)
     JOIN intake.erasures e USING (advertiser_id, tombstone)`,
    [
      erased.map((row) => row.advertiser_id),
      erased.map((row) => toTombstone(key, row.advertiser_id, 'application', String(row.erased_through))),
    ],
  );
  return remembered.length === erased.length ? 'matches' : 'differs';
}

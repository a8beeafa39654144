// Ends prefills that were not redeemed, and those of erased persons. Personal data is removed from the row at once, with the reference to
// the resume; the row, or its count, stays for the funnel report.
import { dropUnneeded } from '../files/blobs.ts';
import { isAhead } from '../postgres/clock.ts';
import { type Database, type Queryable, retryOnConflict, type Transaction } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { isOver } from './prefills.ts';

const atOnce = 10_000;

/**
 * True of a redeemed profile without any person key, once the prefill's lifetime (at least an hour) has passed since it was redeemed. The
 * careers site has the profile by then, and no erasure request could find it here.
 */
const isUnfindable = `outcome = 'redeemed' AND cardinality(coalesce(person_keys, '{}')) = 0
  AND (redeemed_at <= now() - greatest(expires_at - prefilled_at, interval '1 hour') OR ${isAhead('redeemed_at')})`;

/**
 * Empties profiles that were not redeemed in time and profiles that no erasure request could find; adds prefills that ended without a
 * profile to the counts of their day and deletes them; deletes old OAuth states. It decides by the rows alone, so any worker can run it.
 * Returns how many profiles lapsed.
 */
export async function lapsePrefills(db: Database): Promise<number> {
  const lapsed = await retryOnConflict(() => db.transaction(lapse));
  while ((await replaceEndedByCounts(db)) === atOnce);
  await db.query(
    `DELETE FROM intake.oauth_states WHERE expires_at < now() - interval '1 day' OR expires_at > now() + interval '1 day'`,
  );
  return lapsed;
}

/**
 * The transaction that empties the rows also drops the resumes that nothing else refers to. The deletion loop deletes the objects.
 */
async function lapse(tx: Transaction): Promise<number> {
  const rows = await tx.query<Columns<'prefills', 'advertiser_id' | 'resume_sha256'>>(
    `WITH ended AS MATERIALIZED (
       SELECT advertiser_id, prefill_id, resume_sha256 FROM intake.prefills
       WHERE (outcome = 'prefilled' AND ${isOver}) OR (${isUnfindable})
       ORDER BY advertiser_id, prefill_id FOR UPDATE SKIP LOCKED)
     UPDATE intake.prefills p SET outcome = 'lapsed', ended_at = now(), ${emptied} FROM ended
     WHERE p.advertiser_id = ended.advertiser_id AND p.prefill_id = ended.prefill_id
     RETURNING ended.advertiser_id, ended.resume_sha256`,
  );
  for (const [advertiserId, some] of Map.groupBy(rows, (row) => row.advertiser_id)) {
    const hashes = new Set(some.flatMap((row) => row.resume_sha256 ?? []));
    await dropUnneeded(tx, advertiserId, [...hashes]);
  }
  return rows.length;
}

/**
 * Anyone can start a prefill and return without a profile. Such a row is kept for an hour, so that a browser that returns again is still
 * redirected to the careers site; then it only counts. Rows are deleted by ctid: with statistics from when the table was empty, a join by
 * key is planned as a nested loop over the whole table.
 */
async function replaceEndedByCounts(db: Queryable): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `WITH gone AS (
       DELETE FROM intake.prefills
       WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM intake.prefills
         WHERE (outcome = 'started' AND (created_at < now() - interval '1 hour' OR ${isAhead('created_at')}))
            OR (outcome IN ('denied', 'expired', 'failed') AND (ended_at < now() - interval '1 hour' OR ${isAhead('ended_at')}))
         LIMIT ${atOnce} FOR UPDATE SKIP LOCKED))
       RETURNING advertiser_id, (created_at AT TIME ZONE interval '10 hours')::date AS day, outcome, authorized_at
     ), counted AS (
       INSERT INTO intake.prefill_days AS d (advertiser_id, day, started, authorized, denied, failed, expired)
       SELECT advertiser_id, day, count(*), count(authorized_at), count(*) FILTER (WHERE outcome = 'denied'),
         count(*) FILTER (WHERE outcome = 'failed'), count(*) FILTER (WHERE outcome IN ('started', 'expired'))
       FROM gone GROUP BY advertiser_id, day
       ON CONFLICT (advertiser_id, day) DO UPDATE SET started = d.started + excluded.started,
         authorized = d.authorized + excluded.authorized, denied = d.denied + excluded.denied,
         failed = d.failed + excluded.failed, expired = d.expired + excluded.expired
     )
     SELECT count(*)::int AS n FROM gone`,
  );
  return row?.n ?? 0;
}

export async function erasePrefills(tx: Queryable, advertiserId: bigint, prefillIds: readonly string[]): Promise<void> {
  await tx.query(
    `UPDATE intake.prefills SET outcome = 'erased', ended_at = now(), ${emptied}
     WHERE advertiser_id = $1 AND prefill_id = ANY ($2::uuid[])`,
    [advertiserId, prefillIds],
  );
}

/** The URLs of the careers site may contain anything, even a name. The columns are NOT NULL, so they keep only the host. */
const toHost = (url: string) => `regexp_replace(${url}, '(//[^/?#]*).*', '\\1/')`;

const emptied = `profile = NULL, profile_text = NULL, notes = NULL, first_name = NULL, last_name = NULL, email = NULL, phone = NULL,
  person_key = NULL, person_keys = NULL, handle_hash = NULL, resume_file_name = NULL, resume_content_type = NULL, resume_sha256 = NULL,
  resume_size_bytes = NULL,
  position_title = NULL, position_uri = NULL, postal_code = NULL, form_url = ${toHost('form_url')}, return_url = ${toHost('return_url')}`;

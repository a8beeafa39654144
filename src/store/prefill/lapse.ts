// How prefills leave: those nobody redeemed, and those of erased persons. The person goes from the row at once; the row, or its count, stays
// for the funnel. Bytes are deleted by the caller, and forgotten here only then: a crash between repeats the delete.
import type { Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { isAhead, isOver, type PrefillKey, putMs } from './prefills.ts';

/** So many rows in one statement. */
const atOnce = 10_000;

/** How long a redeemed profile is kept by which nobody can be found: the careers site has it, and no request to erase would reach it. */
const isUnfindable = `outcome = 'redeemed' AND cardinality(coalesce(person_keys, array_remove(ARRAY[person_key], NULL))) = 0
  AND (redeemed_at <= now() - greatest(expires_at - prefilled_at, interval '1 hour') OR ${isAhead('redeemed_at')})`;

/**
 * Empties what was never redeemed in time and what nobody could ask to erase, counts what came to nothing into its day and deletes it, and
 * drops spent states. Goes by what the rows say, so that any worker can do it. Counts what lapsed.
 */
export async function lapsePrefills(db: Queryable): Promise<number> {
  const lapsed = await db.query(
    `UPDATE intake.prefills SET outcome = 'lapsed', ended_at = now(), ${emptied}, ${cut}
     WHERE (outcome = 'prefilled' AND ${isOver}) OR (${isUnfindable}) RETURNING 1`,
  );
  while ((await countEnded(db)) === atOnce);
  await db.query(
    `DELETE FROM intake.oauth_states WHERE expires_at < now() - interval '1 day' OR expires_at > now() + interval '1 day'`,
  );
  return lapsed.length;
}

/**
 * Anybody can start a prefill and come back without a profile. Such a row is kept for an hour, in which a browser that comes once more is
 * still sent back to where it came from; then it is a number. The rows are deleted by their place: a join by key runs as a nested loop over
 * the whole table where the planner's statistics are from a time when it was empty.
 */
async function countEnded(db: Queryable): Promise<number> {
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

/** Empties the prefills of a person. */
export async function erasePrefills(tx: Queryable, advertiserId: bigint, prefillIds: readonly string[]): Promise<void> {
  await tx.query(
    `UPDATE intake.prefills SET outcome = 'erased', ended_at = now(), ${emptied}, ${cut}
     WHERE advertiser_id = $1 AND prefill_id = ANY ($2::uuid[])`,
    [advertiserId, prefillIds],
  );
}

const emptied = `profile = NULL, profile_text = NULL, notes = NULL, first_name = NULL, last_name = NULL, email = NULL, phone = NULL,
  person_key = NULL, person_keys = NULL, handle_hash = NULL, resume_file_name = NULL, resume_content_type = NULL,
  position_title = NULL, position_uri = NULL, postal_code = NULL`;

/** The careers site may have written anything into its addresses, a name too: of those that must stay the host does. */
const cut = ['form_url', 'return_url']
  .map((url) => `${url} = regexp_replace(${url}, '(//[^/?#]*).*', '\\1/')`)
  .join(', ');

/** Prefills that have left but whose resume may still rest in the blob store. One that is being put is left until that is over. */
export async function loadLeavingResumes(db: Queryable, limit: number): Promise<PrefillKey[]> {
  const rows = await db.query<Columns<'prefills', 'advertiser_id' | 'prefill_id'>>(
    `SELECT advertiser_id, prefill_id FROM intake.prefills
     WHERE outcome IN ('lapsed', 'erased') AND resume_sha256 IS NOT NULL
       AND (resume_put_until IS NULL OR resume_put_until NOT BETWEEN now() AND now() + ${putMs} * interval '1 millisecond')
     ORDER BY created_at LIMIT $1`,
    [limit],
  );
  return rows.map((row) => ({ advertiserId: row.advertiser_id, prefillId: row.prefill_id }));
}

/** The bytes of these are gone. */
export async function forgetResumes(db: Queryable, keys: readonly PrefillKey[]): Promise<void> {
  await db.query(
    `UPDATE intake.prefills p SET resume_sha256 = NULL, resume_size_bytes = NULL
     FROM unnest($1::bigint[], $2::uuid[]) AS gone (advertiser_id, prefill_id)
     WHERE p.advertiser_id = gone.advertiser_id AND p.prefill_id = gone.prefill_id AND p.outcome IN ('lapsed', 'erased')`,
    [keys.map((key) => String(key.advertiserId)), keys.map((key) => key.prefillId)],
  );
}

/** Which of these prefills have no resume by their rows: bytes that lie in the store for them belong to nobody. */
export async function findUnclaimedResumes(db: Queryable, keys: readonly PrefillKey[]): Promise<PrefillKey[]> {
  const rows = await db.query<Columns<'prefills', 'advertiser_id' | 'prefill_id'>>(
    `SELECT k.advertiser_id, k.prefill_id FROM unnest($1::bigint[], $2::uuid[]) AS k (advertiser_id, prefill_id)
     LEFT JOIN intake.prefills p USING (advertiser_id, prefill_id) WHERE p.resume_sha256 IS NULL`,
    [keys.map((key) => key.advertiserId), keys.map((key) => key.prefillId)],
  );
  return rows.map((row) => ({ advertiserId: row.advertiser_id, prefillId: row.prefill_id }));
}

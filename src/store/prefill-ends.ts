// How prefills leave: those nobody redeemed, and those of erased persons. The person goes from the row at once; the row stays
// for the funnel. Bytes are deleted by the caller, and forgotten here only then: a crash between repeats the delete.
import type { KeyObject } from 'node:crypto';
import type { Queryable } from './database.ts';
import { toAddressKey } from './person-key.ts';
import type { PrefillKey } from './prefills.ts';

/** Empties what was never redeemed in time, closes what never came back, and drops spent states. Counts what lapsed. */
export async function lapsePrefills(db: Queryable, ttlMs: number): Promise<number> {
  const lapsed = await db.query(
    `UPDATE intake.prefills SET outcome = 'lapsed', ended_at = now(), ${emptied}, ${cut}
     WHERE outcome = 'prefilled' AND prefilled_at <= now() - $1 * interval '1 millisecond' RETURNING 1`,
    [ttlMs],
  );
  await db.query(
    `UPDATE intake.prefills SET outcome = 'expired', reason = 'never came back', ended_at = now()
     WHERE outcome = 'started' AND created_at < now() - interval '1 day'`,
  );
  // A browser that comes once more by a spent state is still sent back to where it came from; nobody asks for the addresses after that.
  await db.query(
    `UPDATE intake.prefills SET ${cut}
     WHERE outcome IN ('denied', 'failed', 'expired') AND ended_at < now() - interval '1 day' AND concat(form_url, return_url) ~ '[?#]'`,
  );
  await db.query(`DELETE FROM intake.oauth_states WHERE expires_at < now() - interval '1 day'`);
  return lapsed.length;
}

/** Empties the prefills of a person, by their e-mail address. */
export async function erasePrefills(
  tx: Queryable,
  privacyKey: KeyObject,
  advertiserId: bigint,
  email: string,
): Promise<void> {
  await tx.query(
    `UPDATE intake.prefills SET outcome = 'erased', ended_at = now(), ${emptied}, ${cut}
     WHERE advertiser_id = $1 AND person_key = $2`,
    [advertiserId, toAddressKey(privacyKey, advertiserId, email)],
  );
}

const emptied = `profile = NULL, profile_text = NULL, notes = NULL, first_name = NULL, last_name = NULL, email = NULL, phone = NULL,
  person_key = NULL, handle_hash = NULL, resume_file_name = NULL, resume_content_type = NULL`;

/** The careers site may have written anything into the queries of its addresses, a name too. */
const cut = `form_url = regexp_replace(form_url, '[?#].*', ''), return_url = regexp_replace(return_url, '[?#].*', '')`;

/** Prefills that have left but whose resume may still rest in the blob store. */
export async function loadLeavingResumes(db: Queryable, limit: number): Promise<PrefillKey[]> {
  const rows = await db.query<{ advertiser_id: bigint; prefill_id: string }>(
    `SELECT advertiser_id, prefill_id FROM intake.prefills
     WHERE outcome IN ('lapsed', 'erased') AND resume_sha256 IS NOT NULL ORDER BY created_at LIMIT $1`,
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

// Prefills: an OAuth state that can be used once, a profile that can be redeemed once. Secrets (state, cookie, handle) are stored only as
// hashes. At the end the row is emptied of personal data and of its resume; it, or its count, stays for the funnel report.
import type { KeyObject } from 'node:crypto';
import { type BlobFacts, toBlobKey } from '../../domain/blob.ts';
import type { PrefillError, PrefillRequest, Profile, Resume } from '../../domain/prefill.ts';
import { resumeLinkMs, stateLifetimeMs } from '../../domain/prefill.ts';
import { laneLock } from '../accounts/leases.ts';
import { type AnnounceAnswer, announceKnown, dropUnneeded } from '../files/blobs.ts';
import { type KeyState, loadTombstoneState, mayStore, noteKeptOut, toAddressKey, toPersonKeys } from '../gate.ts';
import { type Database, isAhead, isBefore, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

export interface PrefillKey {
  readonly advertiserId: bigint;
  readonly prefillId: string;
}

export interface PrefillStart extends PrefillKey {
  readonly request: PrefillRequest;
  readonly stateHash: Buffer;
  readonly bindingHash: Buffer;
}

export async function insertPrefill(db: Queryable, start: PrefillStart): Promise<void> {
  const { request } = start;
  await db.query(
    `WITH started AS (
       INSERT INTO intake.prefills
         (advertiser_id, prefill_id, form_url, return_url, position_title, position_uri, country_code, postal_code)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING advertiser_id, prefill_id
     )
     INSERT INTO intake.oauth_states (advertiser_id, prefill_id, state_hash, binding_hash, expires_at)
     SELECT advertiser_id, prefill_id, $9, $10, now() + ${stateLifetimeMs} * interval '1 millisecond' FROM started`,
    [
      ...[start.advertiserId, start.prefillId, request.formUrl, request.returnUrl, request.positionTitle],
      ...[request.positionUri, request.countryCode, request.postalCode, start.stateHash, start.bindingHash],
    ],
  );
}

/** A prefill of this browser, whose state was taken by this call, used before, or expired. */
export interface FoundState extends PrefillKey, PrefillRequest {
  readonly condition: 'taken' | 'used' | 'expired';
}

/** Takes a state once, for the browser that began it, and records a consent. Null for an unknown state or another browser's. */
export async function takeState(
  db: Queryable,
  state: Pick<PrefillStart, 'advertiserId' | 'stateHash' | 'bindingHash'> & { readonly isAuthorized: boolean },
): Promise<FoundState | null> {
  const [found] = await db.query<FoundState>(
    `WITH found AS (
       SELECT advertiser_id, state_hash, prefill_id, used_at,
         -- A state that expires later than its lifetime allows was written before the clock was set back: its age is unknown.
         NOT ${isBefore('expires_at', stateLifetimeMs)} AS is_expired
       FROM intake.oauth_states WHERE advertiser_id = $1 AND state_hash = $2 AND binding_hash = $3
     ), taken AS (
       UPDATE intake.oauth_states s SET used_at = now() FROM found f
       WHERE s.advertiser_id = f.advertiser_id AND s.state_hash = f.state_hash AND s.used_at IS NULL AND NOT f.is_expired
       RETURNING s.prefill_id
     ), authorized AS (
       UPDATE intake.prefills p SET authorized_at = now() FROM taken t
       WHERE $4 AND p.advertiser_id = $1 AND p.prefill_id = t.prefill_id
     )
     SELECT p.advertiser_id AS "advertiserId", p.prefill_id AS "prefillId", p.form_url AS "formUrl", p.return_url AS "returnUrl",
       p.position_title AS "positionTitle", p.position_uri AS "positionUri", p.country_code AS "countryCode", p.postal_code AS "postalCode",
       CASE WHEN EXISTS (SELECT FROM taken) THEN 'taken' WHEN f.used_at IS NULL AND f.is_expired THEN 'expired' ELSE 'used' END AS condition
     FROM found f JOIN intake.prefills p USING (advertiser_id, prefill_id)`,
    [state.advertiserId, state.stateHash, state.bindingHash, state.isAuthorized],
  );
  return found ?? null;
}

export async function endPrefill(db: Queryable, key: PrefillKey, outcome: PrefillError, reason: string): Promise<void> {
  await db.query(
    `UPDATE intake.prefills SET outcome = $3, reason = $4, ended_at = now()
     WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'started'`,
    [key.advertiserId, key.prefillId, outcome, reason],
  );
}

export interface KeptProfile extends PrefillKey {
  readonly profile: Profile;
  /** The resume that will be put, or why there is none. */
  readonly resume: Omit<Resume, 'body' | typeof Symbol.asyncDispose> | { readonly reason: string };
  readonly ttlMs: number;
}

/**
 * Stores a profile. The reference to the resume is written before its bytes are announced, so that an erasure knows them. False when the
 * prefill has ended, or began before its person was erased; the lane lock keeps this and an erasure from running at the same time.
 */
export async function keepProfile(db: Database, privacyKey: KeyObject, kept: KeptProfile): Promise<boolean> {
  const { advertiserId, prefillId, profile, ttlMs } = kept;
  const { firstName, lastName, email, phone } = profile;
  const resume: Partial<Omit<Resume, 'body'>> & { readonly reason?: string } = kept.resume;
  const accounts = [...profile.accountIds, ...profile.named.accountIds];
  const addresses = [...profile.emails, ...profile.named.emails];
  const write = async (tx: Transaction) => {
    const [begun] = await tx.query<Columns<'prefills', 'created_at'>>(
      `SELECT created_at FROM intake.prefills WHERE advertiser_id = $1 AND prefill_id = $2`,
      [advertiserId, prefillId],
    );
    if (begun === undefined) return [];
    const account = { db: tx, privacyKey, advertiserId };
    const [may] = await mayStore(account, [{ accounts, addresses, begunAt: begun.created_at }]);
    if (!may) {
      await noteKeptOut(account, 1);
      return [];
    }
    return await tx.query(
      `UPDATE intake.prefills SET outcome = 'prefilled', prefilled_at = now(), profile = $3::jsonb, profile_text = $4,
       notes = nullif($5::jsonb, '[]'), first_name = $6, last_name = $7, email = $8, phone = $9, person_key = $10,
       resume_sha256 = $11, resume_size_bytes = $12, resume_content_type = $13, resume_file_name = $14, resume_reason = $15,
       person_keys = $16, expires_at = now() + $17 * interval '1 millisecond'
     WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'started' RETURNING 1`,
      [
        ...[advertiserId, prefillId, profile.raw, profile.rawText, JSON.stringify(profile.notes)],
        ...[firstName, lastName, email, phone, toAddressKey(account, email)],
        ...[resume.sha256, resume.sizeBytes, resume.contentType, resume.fileName, resume.reason],
        ...[toPersonKeys(account, profile), ttlMs],
      ],
    );
  };
  const rows = await db.transaction(write, laneLock(advertiserId, 'backfill'));
  return rows.length > 0;
}

/**
 * Announces the bytes of a resume before they are put, like `announceBlobs` for a download. `lost`: its prefill has been emptied since, and
 * its bytes are deleted. The lock makes an erasure wait for this statement, or this statement find what the erasure wrote.
 */
export async function announceResume(db: Queryable, key: PrefillKey, { sha256, sizeBytes }: BlobFacts) {
  const [row] = await db.query<{ sha256: string; answer: AnnounceAnswer }>(
    `INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state)
     SELECT advertiser_id, resume_sha256, $4, $5, 'writing' FROM intake.prefills
     WHERE advertiser_id = $1 AND prefill_id = $2 AND resume_sha256 = $3 FOR NO KEY UPDATE
     ${announceKnown}`,
    [key.advertiserId, key.prefillId, sha256, sizeBytes, toBlobKey(key.advertiserId, sha256)],
  );
  return row?.answer ?? 'lost';
}

/**
 * Makes a profile redeemable; returns why it has no resume, or null. A flag or a loss during the put has written its reason already. After
 * a failed put the bytes may be stored all the same, since an answer can be lost: they are deleted with the profile.
 */
export async function offerPrefill(db: Queryable, key: PrefillKey, handleHash: Buffer, failed: string | null) {
  const [offered] = await db.query<Columns<'prefills', 'resume_reason'>>(
    `WITH offered AS (
       UPDATE intake.prefills SET handle_hash = $3, resume_reason = coalesce(resume_reason, $4),
         resume_stored_at = CASE WHEN coalesce(resume_reason, $4) IS NULL THEN now() END
       WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'prefilled' RETURNING resume_reason, resume_sha256, resume_size_bytes
     ), stored AS (
       UPDATE intake.blobs b SET state = 'stored', size_bytes = o.resume_size_bytes, verified_at = now() FROM offered o
       WHERE b.advertiser_id = $1 AND b.sha256 = o.resume_sha256 AND o.resume_reason IS NULL
     )
     SELECT resume_reason FROM offered`,
    [key.advertiserId, key.prefillId, handleHash, failed],
  );
  return offered ? offered.resume_reason : 'the prefill has ended';
}

export interface RedeemedPrefill extends PrefillKey {
  /** JSON text with every digit as the source sent it. */
  readonly profile: string;
  readonly resume: ResumeFacts | null;
}

export type ResumeFacts = Pick<Resume, 'fileName' | 'contentType' | 'sizeBytes'>;

const hasResume = `(resume_sha256 IS NOT NULL AND resume_reason IS NULL)`;

/** True of a profile that has expired, or whose age is unknown because the clock was set back. */
const isOver = `(expires_at <= now() OR ${isAhead('prefilled_at')})`;

/** Redeems a profile, once. Null when the handle is unknown, used or expired. */
export async function takeProfile(db: Queryable, handle: { advertiserId: bigint; handleHash: Buffer }) {
  const [redeemed] = await db.query<RedeemedPrefill>(
    `UPDATE intake.prefills SET outcome = 'redeemed', redeemed_at = now(), ended_at = now()
     WHERE advertiser_id = $1 AND handle_hash = $2 AND outcome = 'prefilled' AND NOT ${isOver}
     RETURNING advertiser_id AS "advertiserId", prefill_id AS "prefillId", coalesce(profile_text, profile::text) AS profile,
       CASE WHEN ${hasResume} THEN json_build_object('fileName', resume_file_name, 'contentType', resume_content_type,
         'sizeBytes', resume_size_bytes) END AS resume`,
    [handle.advertiserId, handle.handleHash],
  );
  return redeemed ?? null;
}

/** The stored resume of a prefill that was redeemed within the lifetime of a link to it. */
export async function loadResume(db: Queryable, key: PrefillKey) {
  const [resume] = await db.query<ResumeFacts & { sha256: string }>(
    `SELECT resume_sha256 AS sha256, resume_file_name AS "fileName", resume_content_type AS "contentType",
       resume_size_bytes::float8 AS "sizeBytes" FROM intake.prefills
     WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'redeemed' AND ${hasResume}
       AND redeemed_at > now() - ${resumeLinkMs} * interval '1 millisecond'`,
    [key.advertiserId, key.prefillId],
  );
  return resume ?? null;
}

/** Like `loadKeyState`, for a role that reads no applications: recomputes the person keys of some profiles, and the tombstones. */
export async function loadPrefillKeyState(db: Queryable, privacyKey: KeyObject): Promise<KeyState> {
  const rows = await db.query<{ advertiserId: bigint; email: string | null; personKey: string | null }>(
    `SELECT advertiser_id AS "advertiserId", email, person_key AS "personKey" FROM intake.prefills WHERE person_key IS NOT NULL LIMIT 5`,
  );
  const state = await loadTombstoneState(db, privacyKey);
  if (rows.length === 0 || state === 'differs') return state;
  const isMade = rows.some((row) => toAddressKey({ privacyKey, ...row }, row.email) === row.personKey);
  return isMade ? 'matches' : 'differs';
}

/** The one of these configured account names that has the advertiser's id; null where none has. */
export async function findAdvertiserName(db: Queryable, advertiserId: bigint, names: readonly string[]) {
  const [row] = await db.query<Columns<'advertisers', 'name'>>(
    `SELECT name FROM intake.advertisers WHERE advertiser_id = $1 AND name = ANY($2)`,
    [advertiserId, names],
  );
  return row?.name ?? null;
}

const atOnce = 10_000;

/** True of a redeemed profile without any person key, after its lifetime: the careers site has it, and no erasure could find it here. */
const isUnfindable = `outcome = 'redeemed' AND cardinality(coalesce(person_keys, '{}')) = 0
  AND (redeemed_at <= now() - greatest(expires_at - prefilled_at, interval '1 hour') OR ${isAhead('redeemed_at')})`;

/**
 * Empties profiles that were not redeemed in time or that no erasure request could find, adds prefills that ended without one to the counts
 * of their day, and deletes old OAuth states. Any worker can run it. Returns how many profiles lapsed.
 */
export async function lapsePrefills(db: Database): Promise<number> {
  // The transaction that empties the rows also drops the resumes that nothing else refers to. The deletion loop deletes the objects.
  const lapsed = await db.repeatTransaction(lapse);
  while ((await replaceEndedByCounts(db)) === atOnce);
  await db.query(
    `DELETE FROM intake.oauth_states WHERE expires_at < now() - interval '1 day' OR expires_at > now() + interval '1 day'`,
  );
  return lapsed;
}

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
    const hashes = some.flatMap((row) => row.resume_sha256 ?? []);
    await dropUnneeded(tx, advertiserId, hashes);
  }
  return rows.length;
}

/**
 * Anyone can start a prefill and return without a profile. For an hour such a row redirects a browser that returns again; then it only
 * counts. By ctid: with statistics from when the table was empty, a join by key is planned as a nested loop over the whole table.
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

/** The URLs of the careers site may contain anything, even a name. The columns are NOT NULL, so they keep only the host. */
const toHost = (url: string) => `regexp_replace(${url}, '(//[^/?#]*).*', '\\1/')`;

/** What ends the personal data of a prefill. */
export const emptied = `profile = NULL, profile_text = NULL, notes = NULL, first_name = NULL, last_name = NULL, email = NULL, phone = NULL,
  person_key = NULL, person_keys = NULL, handle_hash = NULL, resume_file_name = NULL, resume_content_type = NULL, resume_sha256 = NULL,
  resume_size_bytes = NULL,
  position_title = NULL, position_uri = NULL, postal_code = NULL, form_url = ${toHost('form_url')}, return_url = ${toHost('return_url')}`;

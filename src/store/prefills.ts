// Prefills from start to end: a state that is taken once, a profile that is handed out once, and what must go again.
// Secrets (state, cookie, handle) come here as hashes only. Knows no token: none is stored.
import type { KeyObject } from 'node:crypto';
import type { PrefillRequest, Profile, Resume } from '../domain/prefill.ts';
import type { Queryable, Row } from './database.ts';
import { toAddressKey } from './person-key.ts';

/** Names one prefill. */
export interface PrefillKey {
  readonly advertiserId: bigint;
  readonly prefillId: string;
}

export interface PrefillStart extends PrefillKey {
  readonly request: PrefillRequest;
  readonly stateHash: Buffer;
  readonly bindingHash: Buffer;
  readonly lifetimeMs: number;
}

/** Writes a new prefill and the state that leads back to it. */
export async function beginPrefill(db: Queryable, start: PrefillStart): Promise<void> {
  const { request } = start;
  await db.query(
    `WITH started AS (
       INSERT INTO intake.prefills
         (advertiser_id, prefill_id, form_url, return_url, position_title, position_uri, country_code, postal_code)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING advertiser_id, prefill_id
     )
     INSERT INTO intake.oauth_states (advertiser_id, prefill_id, state_hash, binding_hash, expires_at)
     SELECT advertiser_id, prefill_id, $9, $10, now() + $11 * interval '1 millisecond' FROM started`,
    [
      start.advertiserId,
      start.prefillId,
      request.formUrl,
      request.returnUrl,
      request.positionTitle,
      request.positionUri,
      request.countryCode,
      request.postalCode,
      start.stateHash,
      start.bindingHash,
      start.lifetimeMs,
    ],
  );
}

/** A state as it was found: taken by this call, or known to this browser but used or too old. */
export interface FoundState extends PrefillKey {
  readonly condition: 'taken' | 'used' | 'expired';
  readonly request: PrefillRequest;
}

/** Takes a state for the browser that began it. Of several who try, one takes it; null for a stranger's state, or none at all. */
export async function takeState(
  db: Queryable,
  state: { readonly advertiserId: bigint; readonly stateHash: Buffer; readonly bindingHash: Buffer },
): Promise<FoundState | null> {
  const [row] = await db.query<RequestRow & { prefill_id: string; condition: FoundState['condition'] }>(
    `WITH found AS (
       SELECT advertiser_id, state_hash, prefill_id, used_at, expires_at FROM intake.oauth_states
       WHERE advertiser_id = $1 AND state_hash = $2 AND binding_hash = $3
     ), taken AS (
       UPDATE intake.oauth_states s SET used_at = now() FROM found f
       WHERE s.advertiser_id = f.advertiser_id AND s.state_hash = f.state_hash AND s.used_at IS NULL AND s.expires_at > now()
       RETURNING s.prefill_id
     )
     SELECT p.*, CASE WHEN EXISTS (SELECT FROM taken) THEN 'taken' WHEN f.used_at IS NULL AND f.expires_at <= now() THEN 'expired'
       ELSE 'used' END AS condition
     FROM found f JOIN intake.prefills p USING (advertiser_id, prefill_id)`,
    [state.advertiserId, state.stateHash, state.bindingHash],
  );
  if (!row) return null;
  const { prefill_id: prefillId, condition } = row;
  return { advertiserId: row.advertiser_id, prefillId, condition, request: toRequest(row) };
}

/** The candidate said yes. */
export async function noteAuthorized(db: Queryable, key: PrefillKey): Promise<void> {
  await db.query(
    `UPDATE intake.prefills SET authorized_at = now() WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'started'`,
    [key.advertiserId, key.prefillId],
  );
}

/** Ends a prefill that brought nothing. */
export async function endPrefill(
  db: Queryable,
  key: PrefillKey,
  outcome: 'denied' | 'expired' | 'failed',
  reason: string,
): Promise<void> {
  await db.query(
    `UPDATE intake.prefills SET outcome = $3, reason = $4, ended_at = now()
     WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'started'`,
    [key.advertiserId, key.prefillId, outcome, reason],
  );
}

export interface KeptProfile extends PrefillKey {
  readonly profile: Profile;
  /** The resume that is about to be put, or why there is none. */
  readonly resume: Omit<Resume, 'bytes'> | { readonly reason: string };
}

/** Keeps a profile. The resume's facts are written before its bytes, so that bytes without a row cannot be. */
export async function keepProfile(db: Queryable, privacyKey: KeyObject, kept: KeptProfile): Promise<void> {
  const { advertiserId, prefillId, profile, resume } = kept;
  const file = 'reason' in resume ? null : resume;
  await db.query(
    `UPDATE intake.prefills SET outcome = 'prefilled', prefilled_at = now(), profile = $3::jsonb, profile_text = $4,
       notes = nullif($5::jsonb, '[]'), first_name = $6, last_name = $7, email = $8, phone = $9, person_key = $10,
       resume_sha256 = $11, resume_size_bytes = $12, resume_content_type = $13, resume_file_name = $14, resume_reason = $15
     WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'started'`,
    [
      advertiserId,
      prefillId,
      profile.raw,
      profile.rawText,
      JSON.stringify(profile.notes),
      profile.firstName,
      profile.lastName,
      profile.email,
      profile.phone,
      toAddressKey(privacyKey, advertiserId, profile.email),
      file?.sha256 ?? null,
      file?.sizeBytes ?? null,
      file?.contentType ?? null,
      file?.fileName ?? null,
      'reason' in resume ? resume.reason : null,
    ],
  );
}

/** The resume's bytes are where they belong, or (with a reason) will never be. False when the prefill was erased meanwhile. */
export async function settleResume(db: Queryable, key: PrefillKey, reason: string | null): Promise<boolean> {
  const rows = await db.query(
    reason === null
      ? `UPDATE intake.prefills SET resume_stored_at = now(), resume_reason = $3
         WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'prefilled' RETURNING 1`
      : `UPDATE intake.prefills SET resume_sha256 = NULL, resume_size_bytes = NULL, resume_content_type = NULL,
           resume_file_name = NULL, resume_reason = $3
         WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'prefilled' RETURNING 1`,
    [key.advertiserId, key.prefillId, reason],
  );
  return rows.length > 0;
}

/** Makes a finished prefill redeemable by the handle with this hash. */
export async function offerPrefill(db: Queryable, key: PrefillKey, handleHash: Buffer): Promise<void> {
  await db.query(
    `UPDATE intake.prefills SET handle_hash = $3 WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'prefilled'`,
    [key.advertiserId, key.prefillId, handleHash],
  );
}

/** What is handed out for a handle. */
export interface RedeemedPrefill extends PrefillKey {
  /** JSON text with every digit as it came. */
  readonly profile: string;
  readonly resume: ResumeFacts | null;
}

export interface ResumeFacts {
  readonly fileName: string;
  readonly contentType: string;
  readonly sizeBytes: number;
}

/** Hands a profile out, once; null when the handle is unknown, used or older than the time to live. */
export async function redeemPrefill(
  db: Queryable,
  handle: { readonly advertiserId: bigint; readonly handleHash: Buffer; readonly ttlMs: number },
): Promise<RedeemedPrefill | null> {
  const [row] = await db.query<ResumeRow & { prefill_id: string; profile: string }>(
    `UPDATE intake.prefills SET outcome = 'redeemed', redeemed_at = now(), ended_at = now()
     WHERE advertiser_id = $1 AND handle_hash = $2 AND outcome = 'prefilled'
       AND prefilled_at > now() - $3 * interval '1 millisecond'
     RETURNING prefill_id, coalesce(profile_text, profile::text) AS profile, ${resumeColumns}`,
    [handle.advertiserId, handle.handleHash, handle.ttlMs],
  );
  if (!row) return null;
  const { prefill_id: prefillId, profile } = row;
  return { advertiserId: handle.advertiserId, prefillId, profile, resume: toResume(row) };
}

/** The stored resume of a prefill that was handed out. */
export async function loadResume(db: Queryable, key: PrefillKey): Promise<ResumeFacts | null> {
  const [row] = await db.query<ResumeRow>(
    `SELECT ${resumeColumns} FROM intake.prefills WHERE advertiser_id = $1 AND prefill_id = $2 AND outcome = 'redeemed'`,
    [key.advertiserId, key.prefillId],
  );
  return row ? toResume(row) : null;
}

/** The configured accounts' names by which an advertiser's id is known here. */
export async function findAdvertiserName(
  db: Queryable,
  advertiserId: bigint,
  names: readonly string[],
): Promise<string | null> {
  const [row] = await db.query<{ name: string }>(
    `SELECT name FROM intake.advertisers WHERE advertiser_id = $1 AND name = ANY($2)`,
    [advertiserId, names],
  );
  return row?.name ?? null;
}

interface ResumeRow extends Row {
  stored: boolean;
  resume_file_name: string;
  resume_content_type: string;
  resume_size_bytes: bigint;
}
const resumeColumns =
  'resume_stored_at IS NOT NULL AS stored, resume_file_name, resume_content_type, resume_size_bytes';

function toResume(row: ResumeRow): ResumeFacts | null {
  if (!row.stored) return null;
  const { resume_file_name: fileName, resume_content_type: contentType, resume_size_bytes: sizeBytes } = row;
  return { fileName, contentType, sizeBytes: Number(sizeBytes) };
}

interface RequestRow extends Row {
  advertiser_id: bigint;
  form_url: string;
  return_url: string;
  position_title: string | null;
  position_uri: string | null;
  country_code: string | null;
  postal_code: string | null;
}

function toRequest(row: RequestRow): PrefillRequest {
  return {
    advertiserId: row.advertiser_id,
    formUrl: row.form_url,
    returnUrl: row.return_url,
    positionTitle: row.position_title,
    positionUri: row.position_uri,
    countryCode: row.country_code,
    postalCode: row.postal_code,
  };
}

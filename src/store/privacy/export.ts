// Exports what is stored about one person: the rows as one JSON text that keeps every digit, and the list of files. One application
// identifies the person. Others of the same jobseeker account are theirs too, but not those with the same address alone: it can be shared.
// If the applications of an account have several addresses, account and address must both match. Applicants type their address, so a prefill
// is theirs by its account; by address alone only where neither the application nor the prefill names an account.
import type { BlobFacts } from '../../domain/blob.ts';
import { toAccountId, toBareAddress } from '../../domain/person.ts';
import { type Account, mayStore, type PersonFacts, toPerson, toPersonKey, toPersonKeys } from '../gate.ts';
import { accountIn, isAccountInJson, toAccountPattern } from '../person-search.ts';

export interface PersonExport {
  /** JSON text: applications with all their child rows, quarantined elements, prefills. */
  readonly rows: string;
  readonly applicationIds: readonly bigint[];
  /** Applications of the same jobseeker account that may be somebody else's. */
  readonly leftOut: number;
  readonly prefills: number;
  /** Prefills with the same account or address that may be somebody else's. */
  readonly prefillsLeftOut: number;
  readonly files: readonly ExportedFile[];
}

export interface ExportedFile extends BlobFacts {
  /** The id of its application or prefill. */
  readonly of: string;
  readonly kind: string;
  readonly version: number;
  readonly fileName: string | null;
}

/** Loads a person's export; null when there is no such application, or it was erased. */
export async function loadExport(account: Account, applicationId: bigint): Promise<PersonExport | null> {
  const { db, advertiserId } = account;
  const find = async (condition: string, ...values: unknown[]) => {
    const rows = await db.query<PersonFacts>(
      `SELECT application_id AS id, email, job_seeker_id AS "jobSeekerId", coalesce(raw::text, '{}') AS raw FROM intake.applications
       WHERE advertiser_id = $1 AND ${condition} AND erased_at IS NULL ORDER BY application_id`,
      [advertiserId, ...values],
    );
    const may = await mayStore(account, rows.map(toPerson));
    return rows.filter((_, at) => may[at]);
  };
  const [named] = await find('application_id = $2', applicationId);
  if (named === undefined) return null;
  const seeker = toAccountId(named.jobSeekerId);
  // A row keeps its key when the source has removed its account.
  const isSame = `(application_id = $2 OR ${accountIn('job_seeker_id')} = $3::text OR person_key = $4)`;
  const sameAccount =
    seeker === null ? [named] : await find(isSame, applicationId, seeker, toPersonKey(account, named));
  const isShared = new Set(sameAccount.map(toAddress).filter((address) => address !== '')).size > 1;
  const isTheirs = (row: PersonFacts) =>
    row.id === applicationId || (toAddress(row) !== '' && toAddress(row) === toAddress(named));
  const chosen = isShared ? sameAccount.filter(isTheirs) : sameAccount;
  const ids = chosen.map((row) => row.id);
  const accountIds = seeker === null || isShared ? [] : [seeker];
  const patterns = accountIds.map(toAccountPattern);
  const prefills = await findPrefills(account, seeker, isShared, chosen);
  const values = [advertiserId, ids, prefills.theirs];
  const [rows] = await db.query<{ rows: string }>(rowsSql, [...values, patterns]);
  return {
    rows: rows?.rows ?? '{}',
    applicationIds: ids,
    leftOut: sameAccount.length - chosen.length,
    prefills: prefills.theirs.length,
    prefillsLeftOut: prefills.leftOut,
    files: await db.query<ExportedFile>(filesSql, values),
  };
}

async function findPrefills(
  account: Account,
  seeker: string | null,
  isShared: boolean,
  chosen: readonly PersonFacts[],
) {
  const byAccount = new Set(toPersonKeys(account, { emails: [], accountIds: seeker === null ? [] : [seeker] }));
  const byAddress = new Set(
    toPersonKeys(account, { emails: chosen.flatMap(({ email }) => email ?? []), accountIds: [] }),
  );
  const rows = await account.db.query<{ id: string; keys: string[] }>(
    `SELECT prefill_id AS id, person_keys AS keys FROM intake.prefills WHERE advertiser_id = $1 AND person_keys && $2::text[]`,
    [account.advertiserId, [...byAccount, ...byAddress]],
  );
  const theirs = rows.filter(({ keys }) => {
    // Further keys are those of an account, or of another address.
    if (seeker === null) return keys.every((key) => byAddress.has(key));
    return keys.some((key) => byAccount.has(key)) && (!isShared || keys.some((key) => byAddress.has(key)));
  });
  return { theirs: theirs.map(({ id }) => id), leftOut: rows.length - theirs.length };
}

const toAddress = ({ email }: PersonFacts) => toBareAddress(email ?? '').toLowerCase();

const own = 'c.advertiser_id = a.advertiser_id AND c.application_id = a.application_id';
const listOf = (table: string, order: string, row = 'to_jsonb(c)') =>
  `(SELECT coalesce(jsonb_agg(${row} ORDER BY ${order}), '[]') FROM intake.${table} c WHERE ${own})`;

const rowsSql = `
  SELECT jsonb_pretty(jsonb_build_object(
    'applications', (
      SELECT jsonb_agg(jsonb_build_object(
        'application', to_jsonb(a) - '{content_hash,facts_hash,members,observed_seq,person_key}'::text[],
        'primary_job_seeking_info', (SELECT to_jsonb(c) FROM intake.primary_job_seeking_info c WHERE ${own}),
        'attachments', ${listOf('attachments', 'c.kind')},
        'attachment_versions', ${listOf('attachment_versions', 'c.kind, c.version')},
        'downloads', ${listOf('downloads', 'c.kind', `to_jsonb(c) - 'lease_token' - 'leased_until'`)},
        'screens', ${listOf('screens', 'c.screen_no')},
        'screen_questions', ${listOf('screen_questions', 'c.screen_no, c.question_no')},
        'screen_answers', ${listOf('screen_answers', 'c.screen_no, c.question_no, c.answer_no')},
        'events', ${listOf('events', 'c.event_id')}
      ) ORDER BY a.application_id)
      FROM intake.applications a WHERE a.advertiser_id = $1 AND a.application_id = ANY ($2::bigint[])),
    'quarantine', (
      SELECT coalesce(jsonb_agg(to_jsonb(q) - '{fingerprint,members,person,identity}'::text[] ORDER BY q.first_seen_at, q.fingerprint), '[]') FROM intake.quarantine q
      WHERE q.advertiser_id = $1 AND (q.application_id = ANY ($2::bigint[]) OR ${isAccountInJson(`concat(q.raw_text, ' ', q.raw)`, '$4')})),
    'prefills', (
      SELECT coalesce(jsonb_agg(to_jsonb(p) - '{handle_hash,person_key,person_keys}'::text[] ORDER BY p.created_at), '[]')
      FROM intake.prefills p WHERE p.advertiser_id = $1 AND p.prefill_id = ANY ($3::uuid[]))
  )) AS rows`;

const filesSql = `
  SELECT f.application_id::text AS of, f.kind, f.version, b.size_bytes::float8 AS "sizeBytes", f.sha256, f.file_name AS "fileName"
  FROM (
    SELECT advertiser_id, application_id, kind, version, sha256, file_name, state FROM intake.attachments
    UNION ALL SELECT advertiser_id, application_id, kind, version, sha256, file_name, state FROM intake.attachment_versions
  ) AS f JOIN intake.blobs b USING (advertiser_id, sha256)
  WHERE f.advertiser_id = $1 AND f.application_id = ANY ($2::bigint[]) AND f.state = 'stored' AND b.state = 'stored'
  UNION ALL
  SELECT p.prefill_id::text, 'prefill', 1, b.size_bytes::float8, b.sha256, p.resume_file_name FROM intake.prefills p
  JOIN intake.blobs b ON b.advertiser_id = p.advertiser_id AND b.sha256 = p.resume_sha256
  WHERE p.advertiser_id = $1 AND p.prefill_id = ANY ($3::uuid[]) AND p.resume_stored_at IS NOT NULL AND b.state = 'stored'
  ORDER BY 1, 2, 3`;

// Compares a database with the sandbox's truth, application by application and field by field.
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import type { TestDatabase } from './database/test-database.ts';

/** Describes the first few differences; empty when every application is stored once and equal. */
export async function findDifferences(
  database: Pick<TestDatabase, 'query'>,
  board: Pick<BoardAdvertiser, 'advertiserId' | 'truth'>,
  { withoutHash = false } = {},
): Promise<string[]> {
  const stored = new Map(
    (await database.query<StoredRow>(storedSql, [board.advertiserId])).map((row) => [row.application_id, row]),
  );
  const differences: string[] = [];
  for (const truth of board.truth()) {
    const row = stored.get(String(truth.id));
    stored.delete(String(truth.id));
    const wanted = {
      submittedAt: truth.submittedAt,
      email: truth.email,
      firstName: truth.firstName,
      lastName: truth.lastName,
      phone: truth.phone,
      jobSeekerId: truth.jobSeekerId,
      jobReference: truth.jobReference,
      jobSeekingInfo: truth.jobSeekingInfo,
      attachments: truth.attachments
        .map(({ kind, sourceHash, sizeBytes, hasVirus, uploadedAt, href }) => ({
          kind,
          sourceHash,
          sizeBytes,
          hasVirus,
          uploadedAt,
          href,
        }))
        .sort((a, b) => (a.kind < b.kind ? -1 : 1)),
    };
    const held = row === undefined ? undefined : toFacts(row);
    if (withoutHash) for (const one of held?.attachments ?? []) one.sourceHash = null;
    for (const field of Object.keys(wanted) as (keyof typeof wanted)[]) {
      const [want, have] = [JSON.stringify(wanted[field]), JSON.stringify(held?.[field])];
      if (want !== have) differences.push(`${truth.id}.${field}: stored ${have}, truth ${want}`);
    }
    if (differences.length > 5) return differences;
  }
  for (const id of [...stored.keys()].slice(0, 5)) differences.push(`${id} is stored, but the source does not show it`);
  return differences;
}

interface StoredRow {
  application_id: string;
  submitted_at: Date | null;
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  phone: string | null;
  job_seeker_id: string | null;
  job_reference: string | null;
  info: unknown;
  attachments: { sourceHash: string | null }[];
}

const storedSql = `
  SELECT a.application_id, a.submitted_at, a.email, a.first_name, a.last_name, a.phone, a.job_seeker_id, a.job_reference,
    (SELECT json_build_object('jobTitle', i.job_title, 'companyName', i.company_name, 'timeInRoleMonths', i.time_in_role_months,
       'isNewToWorkforce', i.is_new_to_workforce)
     FROM intake.primary_job_seeking_info i
     WHERE i.advertiser_id = a.advertiser_id AND i.application_id = a.application_id AND i.gone_at IS NULL) AS info,
    (SELECT coalesce(json_agg(json_build_object('kind', f.kind, 'sourceHash', f.source_hash, 'sizeBytes', f.size_bytes,
       'hasVirus', f.has_virus, 'uploadedAt', (extract(epoch FROM f.uploaded_at) * 1000)::bigint, 'href', f.href)
       ORDER BY f.kind COLLATE "C"), '[]')
     FROM intake.attachments f
     WHERE f.advertiser_id = a.advertiser_id AND f.application_id = a.application_id AND f.gone_at IS NULL) AS attachments
  FROM intake.applications a WHERE a.advertiser_id = $1 AND a.erased_at IS NULL`;

function toFacts(row: StoredRow) {
  return {
    submittedAt: row.submitted_at?.getTime() ?? null,
    email: row.email,
    firstName: row.first_name,
    lastName: row.last_name,
    phone: row.phone,
    jobSeekerId: row.job_seeker_id,
    jobReference: row.job_reference,
    jobSeekingInfo: row.info,
    attachments: row.attachments,
  };
}

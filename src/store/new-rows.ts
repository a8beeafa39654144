// New applications as rows for COPY: each table's columns beside the values that fill them. Pure mapping; what changes a known application
// travels as JSON (rows.ts), since it has to be joined with what is held.
import type { KeyObject } from 'node:crypto';
import { type Application, toFirstState } from '../domain/application.ts';
import { type Copy, toCopyLine } from './copying.ts';
import { isReady, type Reading, toPersonKey, toPriority, toTime } from './rows.ts';

const columns = {
  applications: `advertiser_id, application_id, submitted_at, source_offset, email, first_name, last_name, phone, job_seeker_id,
    job_reference, raw, raw_text, notes, person_key, content_hash, observed_seq, ready_at`,
  primary_job_seeking_info:
    'advertiser_id, application_id, job_title, company_name, time_in_role_months, is_new_to_workforce',
  attachments:
    'advertiser_id, application_id, kind, state, reason, source_hash, size_bytes, has_virus, uploaded_at, href',
  downloads: 'advertiser_id, application_id, kind, priority',
};

/** What new applications bring into which table, in the order in which keys refer to each other. The rest has defaults. */
export function toCopies(key: KeyObject, { advertiserId, seq, lease }: Reading, fresh: readonly Application[]): Copy[] {
  const applications: string[] = [];
  const infos: string[] = [];
  const attachments: string[] = [];
  const downloads: string[] = [];
  const priority = toPriority(lease);
  for (const a of fresh) {
    const { id, jobSeekingInfo: info } = a;
    const notes = a.notes.length > 0 ? JSON.stringify(a.notes) : null;
    const personKey = toPersonKey(key, advertiserId, a);
    // Postgres reads `now` as the time at which the transaction began.
    const readyAt = isReady(a) ? 'now' : null;
    applications.push(
      // biome-ignore format: as the columns stand above
      toCopyLine(advertiserId, id, toTime(a.submittedAt), a.sourceOffset, a.email, a.firstName, a.lastName, a.phone, a.jobSeekerId,
        a.jobReference, a.raw, a.rawText, notes, personKey, `\\x${a.contentHash}`, seq, readyAt),
    );
    if (info)
      infos.push(
        toCopyLine(advertiserId, id, info.jobTitle, info.companyName, info.timeInRoleMonths, info.isNewToWorkforce),
      );
    for (const f of a.attachments) {
      const { state, reason } = toFirstState(f);
      attachments.push(
        // biome-ignore format: as the columns stand above
        toCopyLine(advertiserId, id, f.kind, state, reason, f.sourceHash, f.sizeBytes, f.hasVirus, toTime(f.uploadedAt), f.href),
      );
      if (state === 'pending') downloads.push(toCopyLine(advertiserId, id, f.kind, priority));
    }
  }
  const into = (table: keyof typeof columns) => `intake.${table} (${columns[table]})`;
  return [
    { into: into('applications'), lines: applications },
    { into: into('primary_job_seeking_info'), lines: infos },
    { into: into('attachments'), lines: attachments },
    { into: into('downloads'), lines: downloads },
  ];
}

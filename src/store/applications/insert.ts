// New applications as rows for COPY: each table's columns beside the values that fill them. Pure mapping; what changes a known application
// travels as JSON (rows.ts), since it has to be joined with what is held.
import type { KeyObject } from 'node:crypto';
import { type Application, toFirstState } from '../../domain/application.ts';
import { toPersonKey } from '../person-key.ts';
import { type Copy, toCopy, toCopyLine } from '../postgres/copy.ts';
import type { WriteContext } from '../sweeps/leases.ts';
import { isReady, toPriority, toTime } from './rows.ts';

const columns = {
  applications: `advertiser_id, application_id, submitted_at, source_offset, email, first_name, last_name, phone, job_seeker_id,
    job_reference, raw, raw_text, notes, person_key, content_hash, facts_hash, observed_seq, ready_at`,
  primary_job_seeking_info:
    'advertiser_id, application_id, job_title, company_name, time_in_role_months, is_new_to_workforce',
  attachments:
    'advertiser_id, application_id, kind, state, reason, source_hash, size_bytes, has_virus, uploaded_at, href',
  downloads: 'advertiser_id, application_id, kind, priority',
};

/** What new applications bring into which table, in the order in which keys refer to each other. The rest has defaults. */
export function toCopies(
  key: KeyObject,
  { advertiserId, seq, lease }: WriteContext,
  fresh: readonly Application[],
): Copy[] {
  const priority = toPriority(lease);
  const infos = fresh.filter((a) => a.jobSeekingInfo !== null);
  const files = fresh.flatMap(({ id, attachments }) =>
    attachments.map((file) => ({ id, file, ...toFirstState(file) })),
  );
  const into = (table: keyof typeof columns) => `intake.${table} (${columns[table]})`;
  return [
    toCopy(into('applications'), fresh, (a) => {
      const notes = a.notes.length > 0 ? JSON.stringify(a.notes) : null;
      const personKey = toPersonKey(key, advertiserId, a);
      // Postgres reads `now` as the time at which the transaction began.
      const readyAt = isReady(a) ? 'now' : null;
      // biome-ignore format: as the columns stand above
      return toCopyLine(advertiserId, a.id, toTime(a.submittedAt), a.sourceOffset, a.email, a.firstName, a.lastName, a.phone, a.jobSeekerId,
        a.jobReference, a.raw, a.rawText, notes, personKey, `\\x${a.contentHash}`, `\\x${a.factsHash}`, seq, readyAt);
    }),
    toCopy(into('primary_job_seeking_info'), infos, ({ id, jobSeekingInfo: info }) =>
      // biome-ignore format: as the columns stand above
      toCopyLine(advertiserId, id, info?.jobTitle ?? null, info?.companyName ?? null, info?.timeInRoleMonths ?? null, info?.isNewToWorkforce ?? null),
    ),
    toCopy(into('attachments'), files, ({ id, file: f, state, reason }) =>
      // biome-ignore format: as the columns stand above
      toCopyLine(advertiserId, id, f.kind, state, reason, f.sourceHash, f.sizeBytes, f.hasVirus, toTime(f.uploadedAt), f.href),
    ),
    toCopy(
      into('downloads'),
      files.filter(({ state }) => state === 'pending'),
      ({ id, file }) => toCopyLine(advertiserId, id, file.kind, priority),
    ),
  ];
}

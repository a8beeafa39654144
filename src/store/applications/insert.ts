// Maps new applications to rows for COPY, column by column. Pure mapping. Changed applications are sent as JSON instead (update.ts), because
// they have to be joined with the stored rows.
import type { KeyObject } from 'node:crypto';
import { type Application, type Attachment, toFirstState } from '../../domain/application.ts';
import type { Lease, WriteContext } from '../accounts/leases.ts';
import { toPersonKey } from '../person-key.ts';
import { type Copy, toCopy } from '../postgres/copy.ts';

/** Rows of new applications for each table, in the order of the foreign keys. All other columns are null or have defaults. */
export function toCopies(
  privacyKey: KeyObject,
  { advertiserId, seq, lease }: WriteContext,
  fresh: readonly Application[],
): Copy[] {
  const priority = toPriority(lease);
  const infos = fresh.flatMap(({ id, jobSeekingInfo: info }) => (info === null ? [] : [{ id, info }]));
  const files = fresh.flatMap(({ id, attachments }) =>
    attachments.map((file) => ({ id, file, ...toFirstState(file) })),
  );
  return [
    toCopy('intake.applications', fresh, {
      advertiser_id: () => advertiserId,
      application_id: (a) => a.id,
      submitted_at: (a) => toTime(a.submittedAt),
      source_offset: (a) => a.sourceOffset,
      email: (a) => a.email,
      first_name: (a) => a.firstName,
      last_name: (a) => a.lastName,
      phone: (a) => a.phone,
      job_seeker_id: (a) => a.jobSeekerId,
      job_reference: (a) => a.jobReference,
      raw: (a) => a.raw,
      raw_text: (a) => a.rawText,
      notes: (a) => (a.notes.length > 0 ? JSON.stringify(a.notes) : null),
      person_key: (a) => toPersonKey(privacyKey, advertiserId, a),
      content_hash: (a) => `\\x${a.contentHash}`,
      facts_hash: (a) => `\\x${a.factsHash}`,
      members: (a) => toMembersColumn(a),
      observed_seq: () => seq,
      // Postgres reads `now` as the time at which the transaction began.
      ready_at: (a) => (isReady(a) ? 'now' : null),
    }),
    toCopy('intake.primary_job_seeking_info', infos, {
      advertiser_id: () => advertiserId,
      application_id: ({ id }) => id,
      job_title: ({ info }) => info.jobTitle,
      company_name: ({ info }) => info.companyName,
      time_in_role_months: ({ info }) => info.timeInRoleMonths,
      is_new_to_workforce: ({ info }) => info.isNewToWorkforce,
    }),
    toCopy('intake.attachments', files, {
      advertiser_id: () => advertiserId,
      application_id: ({ id }) => id,
      kind: ({ file }) => file.kind,
      state: ({ state }) => state,
      reason: ({ reason }) => reason,
      source_hash: ({ file }) => file.sourceHash,
      size_bytes: ({ file }) => file.sizeBytes,
      has_virus: ({ file }) => toFlagColumn(file),
      uploaded_at: ({ file }) => toTime(file.uploadedAt),
      uploaded_offset: ({ file }) => file.uploadedOffset,
      href: ({ file }) => file.href,
    }),
    toCopy(
      'intake.downloads',
      files.filter(({ state }) => state === 'pending'),
      {
        advertiser_id: () => advertiserId,
        application_id: ({ id }) => id,
        kind: ({ file }) => file.kind,
        priority: () => priority,
      },
    ),
  ];
}

/** An unreadable flag has no value; the state of its file tells. */
export function toFlagColumn({ hasVirus }: Attachment): boolean | null {
  return hasVirus === 'unreadable' ? null : hasVirus;
}

/** Null for most applications: they have no members but those of the spec. */
export function toMembersColumn({ members }: Application): string | null {
  const json = JSON.stringify(members);
  return json === '{}' ? null : json;
}

/** Files of live arrivals are downloaded before those of a backfill. */
export function toPriority(lease: Lease): number {
  return lease.lane === 'live' ? 0 : 1;
}

/** An application without a file to download is ready when it arrives. */
export function isReady(application: Application): boolean {
  return application.attachments.every((attachment) => toFirstState(attachment).state !== 'pending');
}

/** A time as text for Postgres. */
export function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

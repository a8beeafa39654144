// Maps applications to rows, column by column: new ones are inserted by COPY, changed ones are sent as JSON (update.ts), because they have to
// be joined with the stored rows. Pure mapping.
import type { KeyObject } from 'node:crypto';
import { type Application, toFirstState } from '../../domain/application.ts';
import type { Lease, WriteContext } from '../accounts/leases.ts';
import { toPersonKey } from '../person-key.ts';
import { type ColumnValues, type Copy, toCopy } from '../postgres/copy.ts';

/** Rows of new applications for each table, in the order of the foreign keys. All other columns are null or have defaults. */
export function toCopies(privacyKey: KeyObject, context: WriteContext, fresh: readonly Application[]): Copy[] {
  const { applications, infos, files } = toColumns(privacyKey, context);
  const priority = toPriority(context.lease);
  const { advertiser_id, application_id, kind } = files;
  const fileRows = toFileRows(fresh);
  const pending = fileRows.filter(({ state }) => state === 'pending');
  return [
    // Postgres reads `now` as the time at which the transaction began.
    toCopy('intake.applications', fresh, { ...applications, ready_at: (a) => (isReady(a) ? 'now' : null) }),
    toCopy('intake.primary_job_seeking_info', toInfoRows(fresh), infos),
    toCopy('intake.attachments', fileRows, files),
    toCopy('intake.downloads', pending, { advertiser_id, application_id, kind, priority: () => priority }),
  ];
}

/** Rows of changed applications as one JSON object. A column of type jsonb has JSON already, which is inserted unchanged. */
export function toJson(privacyKey: KeyObject, context: WriteContext, changed: readonly Application[]): string {
  const { applications, infos, files } = toColumns(privacyKey, context);
  return `{"applications":[${changed.map((one) => toJsonRow(applications, one)).join()}],
    "infos":[${toInfoRows(changed)
      .map((one) => toJsonRow(infos, one))
      .join()}],
    "files":[${toFileRows(changed)
      .map((one) => toJsonRow(files, one))
      .join()}]}`;
}

const isJson = new Set(['raw', 'notes', 'members']);

function toJsonRow<Row>(columns: ColumnValues<Row>, row: Row): string {
  const members = Object.entries(columns).map(([name, get]) => {
    const value = get(row);
    return `"${name}":${typeof value === 'string' && !isJson.has(name) ? JSON.stringify(value) : value}`;
  });
  return `{${members.join()}}`;
}

const toInfoRows = (applications: readonly Application[]) =>
  applications.flatMap(({ id, jobSeekingInfo: info }) => (info === null ? [] : [{ id, info }]));
const toFileRows = (applications: readonly Application[]) =>
  applications.flatMap(({ id, attachments }) => attachments.map((file) => ({ id, file, ...toFirstState(file) })));

function toColumns(privacyKey: KeyObject, { advertiserId, seq }: WriteContext) {
  const applications = {
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
  } satisfies ColumnValues<Application>;
  const infos = {
    advertiser_id: () => advertiserId,
    application_id: ({ id }) => id,
    job_title: ({ info }) => info.jobTitle,
    company_name: ({ info }) => info.companyName,
    time_in_role_months: ({ info }) => info.timeInRoleMonths,
    is_new_to_workforce: ({ info }) => info.isNewToWorkforce,
  } satisfies ColumnValues<ReturnType<typeof toInfoRows>[number]>;
  const files = {
    advertiser_id: () => advertiserId,
    application_id: ({ id }) => id,
    kind: ({ file }) => file.kind,
    state: ({ state }) => state,
    reason: ({ reason }) => reason,
    source_hash: ({ file }) => file.sourceHash,
    size_bytes: ({ file }) => file.sizeBytes,
    // An unreadable flag has no value; the state of its file tells.
    has_virus: ({ file }) => (file.hasVirus === 'unreadable' ? null : file.hasVirus),
    uploaded_at: ({ file }) => toTime(file.uploadedAt),
    uploaded_offset: ({ file }) => file.uploadedOffset,
    href: ({ file }) => file.href,
  } satisfies ColumnValues<ReturnType<typeof toFileRows>[number]>;
  return { applications, infos, files };
}

/** Null for most applications: they have no members but those of the spec. */
export function toMembersColumn({ members }: Application): string | null {
  return Object.keys(members).length === 0 ? null : JSON.stringify(members);
}

/** Files of live arrivals are downloaded before those of a backfill. */
export function toPriority(lease: Lease): number {
  return lease.lane === 'live' ? 0 : 1;
}

/** An application without a file to download is ready when it arrives. */
export function isReady(application: Application): boolean {
  return application.attachments.every((attachment) => toFirstState(attachment).state !== 'pending');
}

const dayMs = 86_400_000;
let lastDay = { startsAt: Number.NaN, text: '' };

/** A time as text. The times of a page share their days, whose texts are kept: toISOString takes 1.1 us, this 0.2 (measured). */
function toTime(ms: number | null): string | null {
  if (ms === null) return null;
  const startsAt = Math.floor(ms / dayMs) * dayMs;
  if (startsAt !== lastDay.startsAt) lastDay = { startsAt, text: new Date(startsAt).toISOString().slice(0, 11) };
  const since = ms - startsAt;
  const pad = (number: number) => (number < 10 ? `0${number}` : number);
  const minutes = Math.floor(since / 60_000);
  return `${lastDay.text}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}:${pad((since % 60_000) / 1000)}Z`;
}

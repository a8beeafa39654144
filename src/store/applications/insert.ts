// Maps applications to rows: new ones are inserted by COPY, changed ones are sent as JSON (update.ts), to be joined with the stored rows.
import { type Application, toFirstState } from '../../domain/application.ts';
import type { Lease, WriteContext } from '../accounts/leases.ts';
import { type Keyed, toPersonKey } from '../gate.ts';
import { type ColumnValues, type Copy, toCopy } from '../postgres/copy.ts';

/** Rows of new applications for each table, in the order of the foreign keys. All other columns are null or have defaults. */
export function toCopies(account: Keyed, context: WriteContext, fresh: readonly Application[]): Copy[] {
  const { applications, infos, files } = toColumns(account, context);
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
export function toJson(account: Keyed, context: WriteContext, changed: readonly Application[]): string {
  const { applications, infos, files } = toColumns(account, context);
  return `{"applications":${toJsonRows(applications, changed)},"infos":${toJsonRows(infos, toInfoRows(changed))},
    "files":${toJsonRows(files, toFileRows(changed))}}`;
}

const isJson = new Set(['raw', 'notes', 'members']);

function toJsonRows<Row>(columns: ColumnValues<Row>, rows: readonly Row[]): string {
  const toMember = (name: string, value: unknown) =>
    `"${name}":${typeof value === 'string' && !isJson.has(name) ? JSON.stringify(value) : value}`;
  const toRow = (row: Row) => Object.entries(columns).map(([name, get]) => toMember(name, get(row)));
  return `[${rows.map((row) => `{${toRow(row).join()}}`).join()}]`;
}

const toInfoRows = (applications: readonly Application[]) =>
  applications.flatMap(({ id, jobSeekingInfo: info }) => (info === null ? [] : [{ id, info }]));
const toFileRows = (applications: readonly Application[]) =>
  applications.flatMap(({ id, attachments }) => attachments.map((file) => ({ id, file, ...toFirstState(file) })));

function toColumns(account: Keyed, { advertiserId, seq }: WriteContext) {
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
    person_key: (a) => toPersonKey(account, a),
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

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

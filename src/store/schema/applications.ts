// The tables of applications and their parts. drizzle-kit reads these files to generate migrations. Nothing here runs in the product:
// queries are plain SQL (docs/architecture.md says why) and take their row types from rows.ts. Every key starts with advertiser_id, so
// that the tables can be distributed by it one day.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, primaryKey, text } from 'drizzle-orm/pg-core';
import { at, bytea, id64, intake, isOneOf, refersTo } from './columns.ts';

export const applications = intake.table(
  'applications',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    submittedAt: at('submitted_at'),
    sourceOffset: text('source_offset'),
    email: text(),
    firstName: text('first_name'),
    lastName: text('last_name'),
    phone: text(),
    jobSeekerId: text('job_seeker_id'),
    jobReference: text('job_reference'),
    raw: jsonb(),
    rawText: text('raw_text'),
    notes: jsonb(),
    personKey: text('person_key'),
    contentHash: bytea('content_hash').notNull(),
    factsHash: bytea('facts_hash'),
    members: jsonb(),
    observedSeq: id64('observed_seq').notNull(),
    firstSeenAt: at('first_seen_at').notNull().defaultNow(),
    changedAt: at('changed_at').notNull().defaultNow(),
    readyAt: at('ready_at'),
    absentSince: at('absent_since'),
    missingSince: at('missing_since'),
    erasedAt: at('erased_at'),
  },
  (t) => [
    primaryKey({ name: 'applications_pkey', columns: [t.advertiserId, t.applicationId] }),
    index('applications_submitted').on(t.advertiserId, t.submittedAt),
    index('applications_job_seeker').on(t.advertiserId, t.jobSeekerId),
    index('applications_first_seen').on(t.advertiserId, t.firstSeenAt),
    index('applications_no_day').on(t.advertiserId).where(sql`${t.submittedAt} IS NULL`),
  ],
);

export const volatileMembers = intake.table(
  'volatile_members',
  {
    advertiserId: id64('advertiser_id').notNull(),
    member: text().notNull(),
    seen: text().array().notNull(),
  },
  (t) => [primaryKey({ name: 'volatile_members_pkey', columns: [t.advertiserId, t.member] })],
);

export const primaryJobSeekingInfo = intake.table(
  'primary_job_seeking_info',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    jobTitle: text('job_title'),
    companyName: text('company_name'),
    timeInRoleMonths: integer('time_in_role_months'),
    isNewToWorkforce: boolean('is_new_to_workforce'),
    goneAt: at('gone_at'),
  },
  (t) => [
    primaryKey({ name: 'primary_job_seeking_info_pkey', columns: [t.advertiserId, t.applicationId] }),
    refersTo('primary_job_seeking_info_application', t, applications, 'advertiserId', 'applicationId'),
  ],
);

const attachmentStates = ['pending', 'stored', 'infected', 'missing', 'rejected', 'given_up', 'erased'] as const;

/** What is kept of a file, of the newest version and of earlier ones. */
const fileColumns = {
  advertiserId: id64('advertiser_id').notNull(),
  applicationId: id64('application_id').notNull(),
  kind: text().notNull(),
  state: text({ enum: attachmentStates }).notNull(),
  reason: text(),
  sourceHash: text('source_hash'),
  sizeBytes: id64('size_bytes'),
  hasVirus: boolean('has_virus'),
  uploadedAt: at('uploaded_at'),
  sha256: text(),
  contentType: text('content_type'),
  detectedType: text('detected_type'),
  fileName: text('file_name'),
  storedAt: at('stored_at'),
};

export const attachments = intake.table(
  'attachments',
  {
    ...fileColumns,
    version: integer().notNull().default(1),
    uploadedOffset: text('uploaded_offset'),
    href: text(),
    goneAt: at('gone_at'),
    notes: jsonb(),
    linked: boolean().notNull().default(false),
    parserVersion: integer('parser_version'),
  },
  (t) => [
    primaryKey({ name: 'attachments_pkey', columns: [t.advertiserId, t.applicationId, t.kind] }),
    refersTo('attachments_application', t, applications, 'advertiserId', 'applicationId'),
    // Partial indexes: inserting a page of new attachments, which have no bytes yet, does not touch them.
    index('attachments_blob').on(t.advertiserId, t.sha256).where(sql`${t.sha256} IS NOT NULL`),
    // Only the first 100 characters: a Hash may be longer than an index entry can be.
    index('attachments_hash')
      .on(t.advertiserId, sql`left(${t.sourceHash}, 100)`)
      .where(sql`${t.state} = 'stored' AND ${t.sourceHash} IS NOT NULL`),
    check('attachments_state', isOneOf(t.state, attachmentStates)),
    check('attachments_stored', sql`${t.state} <> 'stored' OR (${t.sha256} IS NOT NULL AND ${t.storedAt} IS NOT NULL)`),
    check('attachments_reason', sql`${t.state} NOT IN ('missing', 'rejected', 'given_up') OR ${t.reason} IS NOT NULL`),
  ],
);

export const attachmentVersions = intake.table(
  'attachment_versions',
  {
    ...fileColumns,
    version: integer().notNull(),
    replacedAt: at('replaced_at').notNull().defaultNow(),
  },
  (t) => [
    index('attachment_versions_blob').on(t.advertiserId, t.sha256).where(sql`${t.sha256} IS NOT NULL`),
    primaryKey({ name: 'attachment_versions_pkey', columns: [t.advertiserId, t.applicationId, t.kind, t.version] }),
    refersTo('attachment_versions_attachment', t, attachments, 'advertiserId', 'applicationId', 'kind'),
    check('attachment_versions_state', isOneOf(t.state, attachmentStates)),
  ],
);

// The tables of applications and their parts. drizzle-kit reads these files to generate migrations. Nothing here runs in the product:
// queries are plain SQL (docs/architecture.md says why) and take their row types from rows.ts. Every key starts with advertiser_id, so
// that the tables can be distributed by it one day.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, text } from 'drizzle-orm/pg-core';
import { at, bytea, id64, intake, key, oneOf, refersTo } from './columns.ts';

export const applications = intake.table(
  'applications',
  {
    advertiser_id: id64().notNull(),
    application_id: id64().notNull(),
    submitted_at: at(),
    source_offset: text(),
    email: text(),
    first_name: text(),
    last_name: text(),
    phone: text(),
    job_seeker_id: text(),
    job_reference: text(),
    raw: jsonb(),
    raw_text: text(),
    notes: jsonb(),
    person_key: text(),
    content_hash: bytea().notNull(),
    facts_hash: bytea(),
    members: jsonb(),
    observed_seq: id64().notNull(),
    first_seen_at: at().notNull().defaultNow(),
    changed_at: at().notNull().defaultNow(),
    ready_at: at(),
    absent_since: at(),
    missing_since: at(),
    erased_at: at(),
  },
  (t) => [
    key(t.advertiser_id, t.application_id),
    index('applications_submitted').on(t.advertiser_id, t.submitted_at),
    index('applications_job_seeker').on(t.advertiser_id, t.job_seeker_id),
    index('applications_first_seen').on(t.advertiser_id, t.first_seen_at),
    index('applications_no_day').on(t.advertiser_id).where(sql`${t.submitted_at} IS NULL`),
  ],
);

export const volatileMembers = intake.table(
  'volatile_members',
  {
    advertiser_id: id64().notNull(),
    member: text().notNull(),
    seen: text().array().notNull(),
  },
  (t) => [key(t.advertiser_id, t.member)],
);

export const primaryJobSeekingInfo = intake.table(
  'primary_job_seeking_info',
  {
    advertiser_id: id64().notNull(),
    application_id: id64().notNull(),
    job_title: text(),
    company_name: text(),
    time_in_role_months: integer(),
    is_new_to_workforce: boolean(),
    gone_at: at(),
  },
  (t) => [
    key(t.advertiser_id, t.application_id),
    refersTo('primary_job_seeking_info_application', t, applications, 'advertiser_id', 'application_id'),
  ],
);

/** What is kept of a file, of the newest version and of earlier ones. */
const fileColumns = {
  advertiser_id: id64().notNull(),
  application_id: id64().notNull(),
  kind: text().notNull(),
  state: text({ enum: ['pending', 'stored', 'infected', 'missing', 'rejected', 'given_up', 'erased'] }).notNull(),
  reason: text(),
  source_hash: text(),
  size_bytes: id64(),
  has_virus: boolean(),
  uploaded_at: at(),
  sha256: text(),
  content_type: text(),
  detected_type: text(),
  file_name: text(),
  stored_at: at(),
};

export const attachments = intake.table(
  'attachments',
  {
    ...fileColumns,
    version: integer().notNull().default(1),
    uploaded_offset: text(),
    href: text(),
    gone_at: at(),
    notes: jsonb(),
    linked: boolean().notNull().default(false),
    parser_version: integer(),
  },
  (t) => [
    key(t.advertiser_id, t.application_id, t.kind),
    refersTo('attachments_application', t, applications, 'advertiser_id', 'application_id'),
    // Partial indexes: inserting a page of new attachments, which have no bytes yet, does not touch them.
    index('attachments_blob').on(t.advertiser_id, t.sha256).where(sql`${t.sha256} IS NOT NULL`),
    // Only the first 100 characters: a Hash may be longer than an index entry can be.
    index('attachments_hash')
      .on(t.advertiser_id, sql`left(${t.source_hash}, 100)`)
      .where(sql`${t.state} = 'stored' AND ${t.source_hash} IS NOT NULL`),
    ...oneOf(t.state),
    check(
      'attachments_stored',
      sql`${t.state} <> 'stored' OR (${t.sha256} IS NOT NULL AND ${t.stored_at} IS NOT NULL)`,
    ),
    check('attachments_reason', sql`${t.state} NOT IN ('missing', 'rejected', 'given_up') OR ${t.reason} IS NOT NULL`),
  ],
);

export const attachmentVersions = intake.table(
  'attachment_versions',
  {
    ...fileColumns,
    version: integer().notNull(),
    replaced_at: at().notNull().defaultNow(),
  },
  (t) => [
    index('attachment_versions_blob').on(t.advertiser_id, t.sha256).where(sql`${t.sha256} IS NOT NULL`),
    key(t.advertiser_id, t.application_id, t.kind, t.version),
    refersTo('attachment_versions_attachment', t, attachments, 'advertiser_id', 'application_id', 'kind'),
    ...oneOf(t.state),
  ],
);

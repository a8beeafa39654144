// The tables of applications and their parts. drizzle-kit reads these files to generate migrations. Nothing here runs in the product:
// queries are plain SQL (docs/architecture.md says why) and take their row types from rows.ts.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, text } from 'drizzle-orm/pg-core';
import { at, bytea, dataTable, id64, refersTo } from './columns.ts';

export const applications = dataTable(
  'applications',
  ['application_id'],
  {
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
    index('applications_submitted').on(t.advertiser_id, t.submitted_at),
    index('applications_job_seeker').on(t.advertiser_id, t.job_seeker_id),
    index('applications_first_seen').on(t.advertiser_id, t.first_seen_at),
    index('applications_no_day').on(t.advertiser_id).where(sql`${t.submitted_at} IS NULL`),
  ],
);

export const volatileMembers = dataTable('volatile_members', ['member'], {
  member: text().notNull(),
  seen: text().array().notNull(),
});

export const primaryJobSeekingInfo = dataTable('primary_job_seeking_info', [applications], {
  application_id: id64().notNull(),
  job_title: text(),
  company_name: text(),
  time_in_role_months: integer(),
  is_new_to_workforce: boolean(),
  gone_at: at(),
});

/** What is kept of a file, of the newest version and of earlier ones. */
const fileColumns = {
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

export const attachments = dataTable(
  'attachments',
  [applications, 'kind'],
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
    // Partial indexes: inserting a page of new attachments, which have no bytes yet, does not touch them.
    index('attachments_blob').on(t.advertiser_id, t.sha256).where(sql`${t.sha256} IS NOT NULL`),
    // Only the first 100 characters: a Hash may be longer than an index entry can be.
    index('attachments_hash')
      .on(t.advertiser_id, sql`left(${t.source_hash}, 100)`)
      .where(sql`${t.state} = 'stored' AND ${t.source_hash} IS NOT NULL`),
    check(
      'attachments_stored',
      sql`${t.state} <> 'stored' OR (${t.sha256} IS NOT NULL AND ${t.stored_at} IS NOT NULL)`,
    ),
    check('attachments_reason', sql`${t.state} NOT IN ('missing', 'rejected', 'given_up') OR ${t.reason} IS NOT NULL`),
  ],
);

export const attachmentVersions = dataTable(
  'attachment_versions',
  [attachments, 'version'],
  {
    ...fileColumns,
    version: integer().notNull(),
    replaced_at: at().notNull().defaultNow(),
  },
  (t) => [index('attachment_versions_blob').on(t.advertiser_id, t.sha256).where(sql`${t.sha256} IS NOT NULL`)],
);

export const screens = dataTable('screens', [applications, 'screen_no'], {
  application_id: id64().notNull(),
  screen_no: integer().notNull(),
  screen_id: text(),
  name: text(),
  outcome: text({ enum: ['pass', 'fail', 'unknown'] }).notNull(),
  notes: jsonb(),
  sha256: text().notNull(),
  parser_version: integer().notNull(),
});

export const screenQuestions = dataTable(
  'screen_questions',
  ['application_id', 'screen_no', 'question_no'],
  {
    application_id: id64().notNull(),
    screen_no: integer().notNull(),
    question_no: integer().notNull(),
    question_id: text(),
    type: text(),
    text: text(),
  },
  (t) => [
    // Questions and answers are deleted with their screen, which is only ever replaced or erased as a whole.
    refersTo(t, screens).onDelete('cascade'),
  ],
);

export const screenAnswers = dataTable(
  'screen_answers',
  ['application_id', 'screen_no', 'question_no', 'answer_no'],
  {
    application_id: id64().notNull(),
    screen_no: integer().notNull(),
    question_no: integer().notNull(),
    answer_no: integer().notNull(),
    answer_id: text(),
    text: text().notNull(),
    selected: boolean().notNull(),
  },
  (t) => [refersTo(t, screenQuestions).onDelete('cascade')],
);

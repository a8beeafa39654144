// The tables, as drizzle-kit reads them to write migrations. Nothing here runs in the product: queries are plain SQL (see database.ts),
// because loading drizzle costs 0.7 s and its statements a third of the throughput; the row types below are free.
// Every key of a data table starts with advertiser_id, so that the tables can be distributed by it one day.
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  foreignKey,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  smallint,
  text,
  timestamp,
  unique,
  uuid,
} from 'drizzle-orm/pg-core';

export const intake = pgSchema('intake');

/** Given to every request before it starts, so that answers can be put in the order of their questions. */
export const requestSeq = intake.sequence('request_seq');
/** Numbers events in commit order; taken under a lock per advertiser. */
export const eventSeq = intake.sequence('event_seq');
export const sweepSeq = intake.sequence('sweep_seq');

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
const id64 = (name: string) => bigint(name, { mode: 'bigint' });
const at = (name: string) => timestamp(name, { withTimezone: true });

export const advertisers = intake.table(
  'advertisers',
  {
    name: text().primaryKey(),
    advertiserId: id64('advertiser_id'),
    state: text().notNull().default('active'),
    haltKind: text('halt_kind'),
    reason: text(),
    agentId: text('agent_id'),
    learned: jsonb().notNull().default({}),
    createdAt: at('created_at').notNull().defaultNow(),
    haltedAt: at('halted_at'),
  },
  (t) => [
    unique('advertisers_advertiser_id').on(t.advertiserId),
    check('advertisers_state', sql`${t.state} IN ('active', 'halted')`),
    check('advertisers_halt_kind', sql`${t.haltKind} IN ('refused', 'mismatch')`),
    check('advertisers_halted', sql`(${t.state} = 'halted') = (${t.haltKind} IS NOT NULL)`),
  ],
);

export const leases = intake.table(
  'leases',
  {
    name: text().notNull(),
    lane: text().notNull(),
    owner: text().notNull(),
    epoch: id64('epoch').notNull(),
    expiresAt: at('expires_at').notNull(),
  },
  (t) => [
    primaryKey({ name: 'leases_pkey', columns: [t.name, t.lane] }),
    check('leases_lane', sql`${t.lane} IN ('live', 'backfill')`),
  ],
);

export const cursors = intake.table('cursors', {
  advertiserId: id64('advertiser_id').primaryKey(),
  afterId: id64('after_id').notNull(),
  afterDate: at('after_date'),
  asOf: at('as_of').notNull(),
});

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
    index('applications_job').on(t.advertiserId, t.jobReference, t.submittedAt),
    index('applications_job_seeker').on(t.advertiserId, t.jobSeekerId),
    index('applications_first_seen').on(t.advertiserId, t.firstSeenAt),
  ],
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
    foreignKey({
      name: 'primary_job_seeking_info_application',
      columns: [t.advertiserId, t.applicationId],
      foreignColumns: [applications.advertiserId, applications.applicationId],
    }),
  ],
);

const attachmentState = (state: unknown) =>
  sql`${state} IN ('pending', 'stored', 'infected', 'missing', 'rejected', 'given_up', 'erased')`;

export const attachments = intake.table(
  'attachments',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    kind: text().notNull(),
    version: integer().notNull().default(1),
    state: text().notNull(),
    reason: text(),
    sourceHash: text('source_hash'),
    sizeBytes: id64('size_bytes'),
    hasVirus: boolean('has_virus'),
    uploadedAt: at('uploaded_at'),
    href: text(),
    sha256: text(),
    contentType: text('content_type'),
    detectedType: text('detected_type'),
    fileName: text('file_name'),
    storedAt: at('stored_at'),
    goneAt: at('gone_at'),
  },
  (t) => [
    primaryKey({ name: 'attachments_pkey', columns: [t.advertiserId, t.applicationId, t.kind] }),
    foreignKey({
      name: 'attachments_application',
      columns: [t.advertiserId, t.applicationId],
      foreignColumns: [applications.advertiserId, applications.applicationId],
    }),
    check('attachments_state', attachmentState(t.state)),
    check('attachments_stored', sql`${t.state} <> 'stored' OR (${t.sha256} IS NOT NULL AND ${t.storedAt} IS NOT NULL)`),
    check('attachments_reason', sql`${t.state} NOT IN ('missing', 'rejected', 'given_up') OR ${t.reason} IS NOT NULL`),
  ],
);

export const attachmentVersions = intake.table(
  'attachment_versions',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    kind: text().notNull(),
    version: integer().notNull(),
    state: text().notNull(),
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
    replacedAt: at('replaced_at').notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ name: 'attachment_versions_pkey', columns: [t.advertiserId, t.applicationId, t.kind, t.version] }),
    foreignKey({
      name: 'attachment_versions_attachment',
      columns: [t.advertiserId, t.applicationId, t.kind],
      foreignColumns: [attachments.advertiserId, attachments.applicationId, attachments.kind],
    }),
    check('attachment_versions_state', attachmentState(t.state)),
  ],
);

export const downloads = intake.table(
  'downloads',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    kind: text().notNull(),
    priority: smallint().notNull(),
    dueAt: at('due_at').notNull().defaultNow(),
    attempts: smallint().notNull().default(0),
    leaseToken: uuid('lease_token'),
    leasedUntil: at('leased_until'),
    trouble: text(),
  },
  (t) => [
    primaryKey({ name: 'downloads_pkey', columns: [t.advertiserId, t.applicationId, t.kind] }),
    foreignKey({
      name: 'downloads_attachment',
      columns: [t.advertiserId, t.applicationId, t.kind],
      foreignColumns: [attachments.advertiserId, attachments.applicationId, attachments.kind],
    }),
    index('downloads_due').on(t.advertiserId, t.priority, t.dueAt),
  ],
);

export const quarantine = intake.table(
  'quarantine',
  {
    advertiserId: id64('advertiser_id').notNull(),
    fingerprint: bytea().notNull(),
    applicationId: id64('application_id'),
    reason: text().notNull(),
    raw: jsonb(),
    rawText: text('raw_text'),
    firstSeenAt: at('first_seen_at').notNull().defaultNow(),
    lastSeenAt: at('last_seen_at').notNull().defaultNow(),
    seen: integer().notNull().default(1),
    sweepId: id64('sweep_id').notNull(),
    resolvedAt: at('resolved_at'),
  },
  (t) => [primaryKey({ name: 'quarantine_pkey', columns: [t.advertiserId, t.fingerprint] })],
);

export const events = intake.table(
  'events',
  {
    advertiserId: id64('advertiser_id').notNull(),
    eventId: id64('event_id').notNull(),
    applicationId: id64('application_id').notNull(),
    type: text().notNull(),
    at: at('at').notNull(),
  },
  (t) => [
    primaryKey({ name: 'events_pkey', columns: [t.advertiserId, t.eventId] }),
    check(
      'events_type',
      sql`${t.type} IN ('application.received', 'application.changed', 'application.ready', 'application.missing', 'application.erased')`,
    ),
  ],
);

export const sweeps = intake.table(
  'sweeps',
  {
    advertiserId: id64('advertiser_id').notNull(),
    sweepId: id64('sweep_id').notNull(),
    lane: text().notNull(),
    purpose: text().notNull(),
    axis: text().notNull(),
    low: id64('low').notNull(),
    high: id64('high'),
    state: text().notNull(),
    certificate: text(),
    reason: text(),
    facts: jsonb().notNull().default({}),
    startedAt: at('started_at').notNull(),
    movedAt: at('moved_at').notNull(),
    endedAt: at('ended_at'),
    requests: integer().notNull().default(0),
    received: id64('received').notNull().default(sql`0`),
    added: id64('added').notNull().default(sql`0`),
    changed: id64('changed').notNull().default(sql`0`),
    bytes: id64('bytes').notNull().default(sql`0`),
  },
  (t) => [
    primaryKey({ name: 'sweeps_pkey', columns: [t.advertiserId, t.sweepId] }),
    index('sweeps_started').on(t.advertiserId, t.startedAt),
    check('sweeps_lane', sql`${t.lane} IN ('live', 'backfill')`),
    check('sweeps_purpose', sql`${t.purpose} IN ('live', 'recheck', 'backfill', 'witness')`),
    check('sweeps_axis', sql`${t.axis} IN ('id', 'date')`),
    check('sweeps_state', sql`${t.state} IN ('running', 'closed', 'open', 'dropped')`),
    check('sweeps_certificate', sql`${t.certificate} IN ('proven', 'assumed', 'unproven')`),
  ],
);

export const ranges = intake.table(
  'ranges',
  {
    advertiserId: id64('advertiser_id').notNull(),
    sweepId: id64('sweep_id').notNull(),
    low: id64('low').notNull(),
    high: id64('high'),
    state: text().notNull(),
    evidence: jsonb().notNull(),
    openedAt: at('opened_at').notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ name: 'ranges_pkey', columns: [t.advertiserId, t.sweepId, t.low] }),
    foreignKey({
      name: 'ranges_sweep',
      columns: [t.advertiserId, t.sweepId],
      foreignColumns: [sweeps.advertiserId, sweeps.sweepId],
    }),
    check('ranges_state', sql`${t.state} IN ('open', 'closed', 'stuck')`),
  ],
);

export const coverage = intake.table(
  'coverage',
  {
    advertiserId: id64('advertiser_id').notNull(),
    axis: text().notNull(),
    low: id64('low').notNull(),
    high: id64('high'),
    certificate: text().notNull(),
    reason: text().notNull(),
    asOf: at('as_of').notNull(),
    sweepId: id64('sweep_id').notNull(),
  },
  (t) => [
    primaryKey({ name: 'coverage_pkey', columns: [t.advertiserId, t.axis, t.low] }),
    check('coverage_axis', sql`${t.axis} IN ('id', 'date')`),
    check('coverage_certificate', sql`${t.certificate} IN ('proven', 'assumed', 'unproven')`),
  ],
);

export const readings = intake.table(
  'readings',
  {
    advertiserId: id64('advertiser_id').notNull(),
    seq: id64('seq').notNull(),
    lane: text().notNull(),
    lowestId: id64('lowest_id').notNull(),
    highestId: id64('highest_id').notNull(),
    finishedAt: at('finished_at').notNull().defaultNow(),
  },
  (t) => [primaryKey({ name: 'readings_pkey', columns: [t.advertiserId, t.seq] })],
);

// The privacy tables: tombstones of erased data, which must not return, the erasure jobs, and the audit log. None of them names a person.
// See applications.ts for how these files are used.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { at, bytea, id64, intake, isOneOf } from './columns.ts';

// The values that CHECKs allow, which are also the types of the columns.
const soughtKinds = ['application', 'jobseeker', 'address', 'retention'] as const;
const steps = ['bytes', 'waiting', 'closed'] as const;

export const erasures = intake.table(
  'erasures',
  {
    advertiserId: id64('advertiser_id').notNull(),
    tombstone: bytea().notNull(),
    jobId: uuid('job_id').notNull(),
    erasedAt: at('erased_at').notNull().defaultNow(),
    future: boolean().notNull().default(false),
  },
  (t) => [
    primaryKey({ name: 'erasures_pkey', columns: [t.advertiserId, t.tombstone] }),
    index('erasures_future').on(t.advertiserId).where(sql`${t.future}`),
  ],
);

export const erasureJobs = intake.table(
  'erasure_jobs',
  {
    advertiserId: id64('advertiser_id').notNull(),
    jobId: uuid('job_id').notNull(),
    soughtBy: text('sought_by', { enum: soughtKinds }).notNull(),
    sought: bytea().notNull(),
    requestedAt: at('requested_at').notNull().defaultNow(),
    requestedBy: text('requested_by').notNull(),
    step: text({ enum: steps }).notNull(),
    checkAgainAt: at('check_again_at').notNull(),
    applicationIds: id64('application_ids').array(),
    hashes: text().array(),
    counts: jsonb().notNull(),
    checks: integer().notNull().default(0),
    trouble: text(),
    closedAt: at('closed_at'),
  },
  (t) => [
    primaryKey({ name: 'erasure_jobs_pkey', columns: [t.advertiserId, t.jobId] }),
    index('erasure_jobs_open').on(t.advertiserId, t.requestedAt).where(sql`${t.closedAt} IS NULL`),
    check('erasure_jobs_sought_by', isOneOf(t.soughtBy, soughtKinds)),
    check('erasure_jobs_step', isOneOf(t.step, steps)),
    check('erasure_jobs_closed', sql`(${t.step} = 'closed') = (${t.closedAt} IS NOT NULL)`),
    check(
      'erasure_jobs_forgotten',
      sql`${t.step} <> 'closed' OR (${t.applicationIds} IS NULL AND ${t.hashes} IS NULL)`,
    ),
  ],
);

export const auditLog = intake.table(
  'audit_log',
  {
    advertiserId: id64('advertiser_id').notNull(),
    auditId: id64('audit_id').generatedAlwaysAsIdentity(),
    at: at('at').notNull().defaultNow(),
    action: text().notNull(),
    applicationId: id64('application_id'),
    by: text().notNull(),
    facts: jsonb().notNull().default({}),
  },
  (t) => [
    primaryKey({ name: 'audit_log_pkey', columns: [t.advertiserId, t.auditId] }),
    index('audit_log_application').on(t.advertiserId, t.applicationId).where(sql`${t.applicationId} IS NOT NULL`),
  ],
);

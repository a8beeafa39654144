// The privacy tables: tombstones of erased data, which must not return, the erasure jobs, and the audit log. None of them names a person.
// See applications.ts for how these files are used.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, text, uuid } from 'drizzle-orm/pg-core';
import { at, bytea, id64, intake, key, oneOf } from './columns.ts';

export const erasures = intake.table(
  'erasures',
  {
    advertiser_id: id64().notNull(),
    tombstone: bytea().notNull(),
    job_id: uuid().notNull(),
    erased_at: at().notNull().defaultNow(),
    future: boolean().notNull().default(false),
  },
  (t) => [key(t.advertiser_id, t.tombstone), index('erasures_future').on(t.advertiser_id).where(sql`${t.future}`)],
);

export const erasureJobs = intake.table(
  'erasure_jobs',
  {
    advertiser_id: id64().notNull(),
    job_id: uuid().notNull(),
    sought_by: text({ enum: ['application', 'jobseeker', 'address', 'retention'] }).notNull(),
    sought: bytea().notNull(),
    requested_at: at().notNull().defaultNow(),
    requested_by: text().notNull(),
    step: text({ enum: ['bytes', 'waiting', 'closed'] }).notNull(),
    check_again_at: at().notNull(),
    application_ids: id64().array(),
    hashes: text().array(),
    counts: jsonb().notNull(),
    checks: integer().notNull().default(0),
    trouble: text(),
    closed_at: at(),
  },
  (t) => [
    key(t.advertiser_id, t.job_id),
    index('erasure_jobs_open').on(t.advertiser_id, t.requested_at).where(sql`${t.closed_at} IS NULL`),
    ...oneOf(t.sought_by, t.step),
    check('erasure_jobs_closed', sql`(${t.step} = 'closed') = (${t.closed_at} IS NOT NULL)`),
    check(
      'erasure_jobs_forgotten',
      sql`${t.step} <> 'closed' OR (${t.application_ids} IS NULL AND ${t.hashes} IS NULL)`,
    ),
  ],
);

export const auditLog = intake.table(
  'audit_log',
  {
    advertiser_id: id64().notNull(),
    audit_id: id64().generatedAlwaysAsIdentity(),
    at: at().notNull().defaultNow(),
    action: text().notNull(),
    application_id: id64(),
    by: text().notNull(),
    facts: jsonb().notNull().default({}),
  },
  (t) => [
    key(t.advertiser_id, t.audit_id),
    index('audit_log_application').on(t.advertiser_id, t.application_id).where(sql`${t.application_id} IS NOT NULL`),
  ],
);

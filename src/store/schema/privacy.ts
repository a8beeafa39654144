// The privacy tables: tombstones of erased data, which must not return, the erasure jobs, the audit log, and where
// copies of people's columns are. None of them names a person.
//
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, jsonb, text, uuid } from 'drizzle-orm/pg-core';
import { at, bytea, dataTable, id64, key, table } from './columns.ts';

export const erasures = dataTable(
  'erasures',
  ['tombstone'],
  {
    tombstone: bytea().notNull(),
    job_id: uuid().notNull(),
    erased_at: at().notNull().defaultNow(),
    future: boolean().notNull().default(false),
  },
  (t) => [index('erasures_future').on(t.advertiser_id).where(sql`${t.future}`)],
);

export const erasureJobs = dataTable(
  'erasure_jobs',
  ['job_id'],
  {
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
    index('erasure_jobs_open').on(t.advertiser_id, t.requested_at).where(sql`${t.closed_at} IS NULL`),
    check('erasure_jobs_closed', sql`(${t.step} = 'closed') = (${t.closed_at} IS NOT NULL)`),
    check(
      'erasure_jobs_forgotten',
      sql`${t.step} <> 'closed' OR (${t.application_ids} IS NULL AND ${t.hashes} IS NULL)`,
    ),
  ],
);

export const auditLog = dataTable(
  'audit_log',
  ['audit_id'],
  {
    audit_id: id64().generatedAlwaysAsIdentity(),
    at: at().notNull().defaultNow(),
    action: text().notNull(),
    application_id: id64(),
    by: text().notNull(),
    facts: jsonb().notNull().default({}),
  },
  (t) => [
    index('audit_log_application').on(t.advertiser_id, t.application_id).where(sql`${t.application_id} IS NOT NULL`),
  ],
);

/** The places that extracts were written to. An erasure looks here for the copies that it must reach. */
export const extracts = table(
  'extracts',
  {
    location: text().notNull(),
    with_people: boolean().notNull(),
    snapshot_id: text().notNull(),
    published_at: at(),
  },
  (t) => [key(t.location)],
);

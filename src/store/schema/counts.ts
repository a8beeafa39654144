// The counts that reports and analysts' views read, so that both cost the same however much is stored. Triggers keep them in the
// transaction that changes the counted rows.
import { date, index, numeric, primaryKey, text } from 'drizzle-orm/pg-core';
import { at, id64, intake } from './columns.ts';

/**
 * The counts of reports: a row for each statement that changes a count; the sum of the rows is the count. Rows are added rather than updated,
 * so that no transaction waits for another one. From time to time a trigger replaces the rows of an account by their sums.
 */
export const tallies = intake.table(
  'tallies',
  {
    advertiserId: id64('advertiser_id').notNull(),
    tallyId: id64('tally_id').notNull().generatedAlwaysAsIdentity(),
    what: text().notNull(),
    n: id64('n').notNull(),
  },
  (t) => [primaryKey({ name: 'tallies_pkey', columns: [t.advertiserId, t.tallyId] })],
);

/**
 * The counts of a day. A row is right unless its day is stale. The views count stale days from the applications, and a task of the worker
 * counts them again (reports/counts.ts).
 */
export const jobDays = intake.table(
  'job_days',
  {
    advertiserId: id64('advertiser_id').notNull(),
    rowId: id64('row_id').notNull().generatedAlwaysAsIdentity(),
    day: date().notNull(),
    jobReference: text('job_reference'),
    applications: id64('applications').notNull(),
    people: id64('people').notNull(),
    screens: id64('screens').notNull(),
    screensPassed: id64('screens_passed').notNull(),
    screensFailed: id64('screens_failed').notNull(),
    firstAt: at('first_at').notNull(),
    lastAt: at('last_at').notNull(),
  },
  (t) => [
    primaryKey({ name: 'job_days_pkey', columns: [t.advertiserId, t.rowId] }),
    index('job_days_day').on(t.advertiserId, t.day),
  ],
);

export const delayDays = intake.table(
  'delay_days',
  {
    advertiserId: id64('advertiser_id').notNull(),
    day: date().notNull(),
    applications: id64('applications').notNull(),
    medianSeconds: numeric('median_seconds').notNull(),
    p95Seconds: numeric('p95_seconds').notNull(),
    maxSeconds: numeric('max_seconds').notNull(),
    ready: id64('ready').notNull(),
    medianSecondsToReady: numeric('median_seconds_to_ready'),
  },
  (t) => [primaryKey({ name: 'delay_days_pkey', columns: [t.advertiserId, t.day] })],
);

/** A mark is a row of its own, so that a transaction that counts a day again removes only the marks that it has seen. */
export const staleDays = intake.table(
  'stale_days',
  {
    advertiserId: id64('advertiser_id').notNull(),
    markId: id64('mark_id').notNull().generatedAlwaysAsIdentity(),
    day: date().notNull(),
  },
  (t) => [primaryKey({ name: 'stale_days_pkey', columns: [t.advertiserId, t.markId] })],
);

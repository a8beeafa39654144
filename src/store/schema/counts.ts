// The counts that reports and analysts' views read, so that both cost the same however much is stored. Triggers keep them in the
// transaction that changes the counted rows.
import { date, index, numeric, text, unique } from 'drizzle-orm/pg-core';
import { at, dataTable, id64 } from './columns.ts';

/**
 * The counts of reports: a row for each statement that changes a count; the sum of the rows is the count. Rows are added rather than updated,
 * so that no transaction waits for another one. From time to time a trigger replaces the rows of an account by their sums.
 */
export const tallies = dataTable('tallies', ['tally_id'], {
  tally_id: id64().notNull().generatedAlwaysAsIdentity(),
  what: text().notNull(),
  n: id64().notNull(),
});

/**
 * The counts of a day. A row is right unless its day is stale. The views count stale days from the applications, and a task of the worker
 * counts them again (reports/counts.ts).
 */
export const jobDays = dataTable(
  'job_days',
  ['row_id'],
  {
    row_id: id64().notNull().generatedAlwaysAsIdentity(),
    day: date().notNull(),
    job_reference: text(),
    applications: id64().notNull(),
    people: id64().notNull(),
    screens: id64().notNull(),
    screens_passed: id64().notNull(),
    screens_failed: id64().notNull(),
    first_at: at().notNull(),
    last_at: at().notNull(),
  },
  (t) => [index('job_days_day').on(t.advertiser_id, t.day)],
);

/** The days of a month, summed: the totals of a job would otherwise be read from all its days. Right unless a day of the month is stale. */
export const jobMonths = dataTable(
  'job_months',
  ['row_id'],
  {
    row_id: id64().notNull().generatedAlwaysAsIdentity(),
    month: date().notNull(),
    job_reference: text(),
    applications: id64().notNull(),
    screens: id64().notNull(),
    screens_passed: id64().notNull(),
    screens_failed: id64().notNull(),
    first_at: at().notNull(),
    last_at: at().notNull(),
  },
  (t) => [unique('job_months_once').on(t.advertiser_id, t.month, t.job_reference).nullsNotDistinct()],
);

export const delayDays = dataTable('delay_days', ['day'], {
  day: date().notNull(),
  applications: id64().notNull(),
  median_seconds: numeric().notNull(),
  p95_seconds: numeric().notNull(),
  max_seconds: numeric().notNull(),
  ready: id64().notNull(),
  median_seconds_to_ready: numeric(),
});

/** A mark is a row of its own, so that a transaction that counts a day again removes only the marks that it has seen. */
export const staleDays = dataTable('stale_days', ['mark_id'], {
  mark_id: id64().notNull().generatedAlwaysAsIdentity(),
  day: date().notNull(),
});

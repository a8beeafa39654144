// The table of counts that reports show. Triggers of the counted tables write a row for each statement that changes a count, in the same
// transaction; the sum of the rows is the count. Rows are added rather than updated, so that no transaction waits for another one.
// From time to time a trigger replaces the rows of an account by their sums.
import { primaryKey, text } from 'drizzle-orm/pg-core';
import { id64, intake } from './columns.ts';

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

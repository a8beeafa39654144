// The places that extracts were written to. An erasure looks here for the copies of people's columns that it must reach.
// See applications.ts for how these files are used.
import { boolean, primaryKey, text } from 'drizzle-orm/pg-core';
import { at, intake } from './columns.ts';

export const extracts = intake.table(
  'extracts',
  {
    location: text().notNull(),
    withPeople: boolean('with_people').notNull(),
    snapshotId: text('snapshot_id').notNull(),
    publishedAt: at('published_at'),
  },
  (t) => [primaryKey({ name: 'extracts_pkey', columns: [t.location] })],
);

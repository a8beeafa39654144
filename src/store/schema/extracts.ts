// The places that extracts were written to. An erasure looks here for the copies of people's columns that it must reach.
// See applications.ts for how these files are used.
import { boolean, text } from 'drizzle-orm/pg-core';
import { at, intake, key } from './columns.ts';

export const extracts = intake.table(
  'extracts',
  {
    location: text().notNull(),
    with_people: boolean().notNull(),
    snapshot_id: text().notNull(),
    published_at: at(),
  },
  (t) => [key(t.location)],
);

// The tables of file contents: the download queue, the stored blobs, and how far the source's Hash is trusted.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, smallint, text, uuid } from 'drizzle-orm/pg-core';
import { blobStates } from '../../domain/file-life.ts';
import { attachments } from './applications.ts';
import { at, dataTable, id64, intake, table } from './columns.ts';

export const downloads = dataTable(
  'downloads',
  [attachments],
  {
    application_id: id64().notNull(),
    kind: text().notNull(),
    priority: smallint().notNull(),
    due_at: at().notNull().defaultNow(),
    attempts: smallint().notNull().default(0),
    lapses: smallint().notNull().default(0),
    lease_token: uuid(),
    leased_until: at(),
    sha256: text(),
    trouble: text(),
    trouble_kind: text(),
    failed_at: at(),
  },
  (t) => [
    index('downloads_due').on(t.advertiser_id, t.priority, t.due_at),
    // Only downloads whose bytes are announced: few at any moment.
    index('downloads_blob').on(t.advertiser_id, t.sha256).where(sql`${t.sha256} IS NOT NULL`),
    check('downloads_priority', sql`${t.priority} IN (0, 1, 2)`),
  ],
);

export const blobs = dataTable(
  'blobs',
  ['sha256'],
  {
    sha256: text().notNull(),
    size_bytes: id64().notNull(),
    key: text().notNull(),
    state: text({ enum: blobStates }).notNull(),
    intended_at: at().notNull().defaultNow(),
    verified_at: at(),
    infected_at: at(),
    deleted_at: at(),
    kept_versions: integer().notNull().default(0),
    delete_token: uuid(),
    delete_until: at(),
  },
  (t) => [
    // The condition matches the queries of store/files/blobs.ts.
    index('blobs_to_delete')
      .on(t.advertiser_id)
      .where(
        sql`${t.state} = 'infected' AND (${t.deleted_at} IS NULL OR ${t.deleted_at} - ${t.intended_at} < interval '1 day') OR ${t.state} = 'deleting'`,
      ),
    // For verify, which reads the blobs with the oldest verified_at first.
    index('blobs_unread').on(t.advertiser_id, t.verified_at).where(sql`${t.state} = 'stored'`),
    index('blobs_kept').on(t.advertiser_id).where(sql`${t.kept_versions} > 0`),
    index('blobs_damaged').on(t.advertiser_id).where(sql`${t.state} = 'damaged'`),
    check('blobs_deleting', sql`${t.state} <> 'deleting' OR ${t.delete_token} IS NOT NULL`),
    check('blobs_verified', sql`${t.state} <> 'stored' OR ${t.verified_at} IS NOT NULL`),
    check('blobs_infected', sql`(${t.state} = 'infected') = (${t.infected_at} IS NOT NULL)`),
  ],
);

export const hashTrust = intake.table('hash_trust', {
  advertiser_id: id64().primaryKey(),
  agreed: integer().notNull().default(0),
  contradicted_at: at(),
  unchanged: integer().notNull().default(0),
});

export const blobStore = table(
  'blob_store',
  {
    only: boolean().primaryKey().default(true),
    database_id: uuid().notNull().defaultRandom(),
    identity: text(),
    next_identity: text(),
    location: text(),
    pinned_at: at().notNull().defaultNow(),
  },
  (t) => [check('blob_store_only', sql`${t.only}`)],
);

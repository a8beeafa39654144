// The tables of file contents: the download queue, the stored blobs, and how far the source's Hash is trusted. See applications.ts for
// how these files are used.
import { sql } from 'drizzle-orm';
import { boolean, check, index, integer, primaryKey, smallint, text, uuid } from 'drizzle-orm/pg-core';
import { blobStates } from '../../domain/file-life.ts';
import { attachments } from './applications.ts';
import { at, id64, intake, isOneOf, refersTo } from './columns.ts';

export const downloads = intake.table(
  'downloads',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    kind: text().notNull(),
    priority: smallint().notNull(),
    dueAt: at('due_at').notNull().defaultNow(),
    attempts: smallint().notNull().default(0),
    lapses: smallint().notNull().default(0),
    leaseToken: uuid('lease_token'),
    leasedUntil: at('leased_until'),
    sha256: text(),
    trouble: text(),
    troubleKind: text('trouble_kind'),
    failedAt: at('failed_at'),
  },
  (t) => [
    primaryKey({ name: 'downloads_pkey', columns: [t.advertiserId, t.applicationId, t.kind] }),
    refersTo('downloads_attachment', t, attachments, 'advertiserId', 'applicationId', 'kind'),
    index('downloads_due').on(t.advertiserId, t.priority, t.dueAt),
    // Only downloads whose bytes are announced: few at any moment.
    index('downloads_blob').on(t.advertiserId, t.sha256).where(sql`${t.sha256} IS NOT NULL`),
    check('downloads_priority', sql`${t.priority} IN (0, 1, 2)`),
  ],
);

export const blobs = intake.table(
  'blobs',
  {
    advertiserId: id64('advertiser_id').notNull(),
    sha256: text().notNull(),
    sizeBytes: id64('size_bytes').notNull(),
    key: text().notNull(),
    state: text({ enum: blobStates }).notNull(),
    intendedAt: at('intended_at').notNull().defaultNow(),
    verifiedAt: at('verified_at'),
    infectedAt: at('infected_at'),
    deletedAt: at('deleted_at'),
    keptVersions: integer('kept_versions').notNull().default(0),
    deleteToken: uuid('delete_token'),
    deleteUntil: at('delete_until'),
  },
  (t) => [
    primaryKey({ name: 'blobs_pkey', columns: [t.advertiserId, t.sha256] }),
    // The condition matches the queries of store/files/delete-blobs.ts.
    index('blobs_to_delete')
      .on(t.advertiserId)
      .where(
        sql`${t.state} = 'infected' AND (${t.deletedAt} IS NULL OR ${t.deletedAt} - ${t.intendedAt} < interval '1 day') OR ${t.state} = 'deleting'`,
      ),
    // For verify, which reads the blobs with the oldest verified_at first.
    index('blobs_unread').on(t.advertiserId, t.verifiedAt).where(sql`${t.state} = 'stored'`),
    index('blobs_kept').on(t.advertiserId).where(sql`${t.keptVersions} > 0`),
    index('blobs_damaged').on(t.advertiserId).where(sql`${t.state} = 'damaged'`),
    check('blobs_state', isOneOf(t.state, blobStates)),
    check('blobs_deleting', sql`${t.state} <> 'deleting' OR ${t.deleteToken} IS NOT NULL`),
    check('blobs_verified', sql`${t.state} <> 'stored' OR ${t.verifiedAt} IS NOT NULL`),
    check('blobs_infected', sql`(${t.state} = 'infected') = (${t.infectedAt} IS NOT NULL)`),
  ],
);

export const hashTrust = intake.table('hash_trust', {
  advertiserId: id64('advertiser_id').primaryKey(),
  agreed: integer().notNull().default(0),
  contradictedAt: at('contradicted_at'),
  unchanged: integer().notNull().default(0),
});

export const blobStore = intake.table(
  'blob_store',
  {
    only: boolean().primaryKey().default(true),
    databaseId: uuid('database_id').notNull().defaultRandom(),
    identity: text(),
    nextIdentity: text('next_identity'),
    location: text(),
    pinnedAt: at('pinned_at').notNull().defaultNow(),
  },
  (t) => [check('blob_store_only', sql`${t.only}`)],
);

// The usual way to store a list in Postgres with drizzle: a loop of upserts, row by row, in one transaction per page with its cursor. It
// writes the same rows to the same tables with the same keys and statistics, without a comparison, events or sweep progress.

import { createRequire } from 'node:module';
import pg from 'pg';
import type { Source } from '../../src/source/client.ts';
import { applications, attachments, primaryJobSeekingInfo } from '../../src/store/schema/applications.ts';
import { downloads } from '../../src/store/schema/files.ts';
import { cursors } from '../../src/store/schema/sweeps.ts';
import { pageCap } from './board.ts';

// drizzle's ESM entry takes most of a second to load.
const { drizzle } = createRequire(import.meta.url)(
  'drizzle-orm/node-postgres',
) as typeof import('drizzle-orm/node-postgres');

/** Loads ids 1 to `count`. */
export async function loadRowByRow(url: string, source: Source, count: number): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 1, application_name: 'bench' });
  // The database is dropped right after this, sometimes before the connection is closed.
  pool.on('error', () => undefined);
  try {
    const db = drizzle(pool);
    for (let after = 0; after < count; after += pageCap) {
      const answer = await source.list({ afterId: BigInt(after) }, AbortSignal.timeout(60_000));
      if (answer.kind !== 'page' || answer.page.advertiserId === null) throw new Error('The board gave no page.');
      const { page } = answer;
      const { advertiserId } = answer.page as { advertiserId: bigint };
      await db.transaction(async (tx) => {
        for (const one of page.applications) {
          const facts = {
            submitted_at: one.submittedAt === null ? null : new Date(one.submittedAt),
            source_offset: one.sourceOffset,
            email: one.email,
            first_name: one.firstName,
            last_name: one.lastName,
            phone: one.phone,
            job_seeker_id: one.jobSeekerId,
            job_reference: one.jobReference,
            raw: JSON.parse(one.raw) as unknown,
            content_hash: Buffer.from(one.contentHash, 'hex'),
            observed_seq: 1n,
          };
          const key = { advertiser_id: advertiserId, application_id: one.id };
          await tx
            .insert(applications)
            .values({ ...key, ...facts })
            .onConflictDoUpdate({ target: [applications.advertiser_id, applications.application_id], set: facts });
          if (one.jobSeekingInfo) {
            const info = {
              job_title: one.jobSeekingInfo.jobTitle,
              company_name: one.jobSeekingInfo.companyName,
              time_in_role_months: one.jobSeekingInfo.timeInRoleMonths,
              is_new_to_workforce: one.jobSeekingInfo.isNewToWorkforce,
            };
            await tx
              .insert(primaryJobSeekingInfo)
              .values({ ...key, ...info })
              .onConflictDoUpdate({
                target: [primaryJobSeekingInfo.advertiser_id, primaryJobSeekingInfo.application_id],
                set: info,
              });
          }
          for (const file of one.attachments) {
            const described = {
              state: 'pending' as const,
              source_hash: file.sourceHash,
              size_bytes: file.sizeBytes === null ? null : BigInt(file.sizeBytes),
              has_virus: file.hasVirus === true,
              uploaded_at: file.uploadedAt === null ? null : new Date(file.uploadedAt),
              href: file.href,
            };
            await tx
              .insert(attachments)
              .values({ ...key, kind: file.kind, ...described })
              .onConflictDoUpdate({
                target: [attachments.advertiser_id, attachments.application_id, attachments.kind],
                set: described,
              });
            await tx
              .insert(downloads)
              .values({ ...key, kind: file.kind, priority: 1 })
              .onConflictDoNothing();
          }
        }
        const cursor = { after_id: BigInt(after + pageCap), as_of: new Date() };
        await tx
          .insert(cursors)
          .values({ advertiser_id: advertiserId, ...cursor })
          .onConflictDoUpdate({ target: cursors.advertiser_id, set: cursor });
      });
      // Intake's store does the same. Without it, each foreign key check reads all rows of the advertiser: the loop takes a third longer.
      if (after === 0) await pool.query('ANALYZE intake.applications, intake.attachments, intake.downloads');
    }
  } finally {
    await pool.end();
  }
}

// The usual way to store a list in Postgres with drizzle: a loop of upserts, row by row, in one transaction per page with its cursor. It
// writes the same rows to the same tables with the same keys and statistics, without a comparison, events or sweep progress.

import { createRequire } from 'node:module';
import pg from 'pg';
import type { Source } from '../src/source/client.ts';
import { applications, attachments, primaryJobSeekingInfo } from '../src/store/schema/applications.ts';
import { downloads } from '../src/store/schema/files.ts';
import { cursors } from '../src/store/schema/sweeps.ts';
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
            submittedAt: one.submittedAt === null ? null : new Date(one.submittedAt),
            sourceOffset: one.sourceOffset,
            email: one.email,
            firstName: one.firstName,
            lastName: one.lastName,
            phone: one.phone,
            jobSeekerId: one.jobSeekerId,
            jobReference: one.jobReference,
            raw: JSON.parse(one.raw) as unknown,
            contentHash: Buffer.from(one.contentHash, 'hex'),
            observedSeq: 1n,
          };
          const key = { advertiserId, applicationId: one.id };
          await tx
            .insert(applications)
            .values({ ...key, ...facts })
            .onConflictDoUpdate({ target: [applications.advertiserId, applications.applicationId], set: facts });
          if (one.jobSeekingInfo) {
            const info = one.jobSeekingInfo;
            await tx
              .insert(primaryJobSeekingInfo)
              .values({ ...key, ...info })
              .onConflictDoUpdate({
                target: [primaryJobSeekingInfo.advertiserId, primaryJobSeekingInfo.applicationId],
                set: info,
              });
          }
          for (const file of one.attachments) {
            const described = {
              state: 'pending' as const,
              sourceHash: file.sourceHash,
              sizeBytes: file.sizeBytes === null ? null : BigInt(file.sizeBytes),
              hasVirus: file.hasVirus === true,
              uploadedAt: file.uploadedAt === null ? null : new Date(file.uploadedAt),
              href: file.href,
            };
            await tx
              .insert(attachments)
              .values({ ...key, kind: file.kind, ...described })
              .onConflictDoUpdate({
                target: [attachments.advertiserId, attachments.applicationId, attachments.kind],
                set: described,
              });
            await tx
              .insert(downloads)
              .values({ ...key, kind: file.kind, priority: 1 })
              .onConflictDoNothing();
          }
        }
        const cursor = { afterId: BigInt(after + pageCap), asOf: new Date() };
        await tx
          .insert(cursors)
          .values({ advertiserId, ...cursor })
          .onConflictDoUpdate({ target: cursors.advertiserId, set: cursor });
      });
      // Intake's store does the same. Without it, each foreign key check reads all rows of the advertiser: the loop takes a third longer.
      if (after === 0) await pool.query('ANALYZE intake.applications, intake.attachments, intake.downloads');
    }
  } finally {
    await pool.end();
  }
}

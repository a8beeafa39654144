// Cursors: how far an advertiser's list has been read, and when that was last confirmed. Where a poll begins also depends on when ids were
// first seen (continue-sweep.ts).
import { newestIds, toCursor } from '../../domain/cursor.ts';
import type { Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

/** Raises the cursor to the newest stored id up to `through` (toCursor). It never moves back, and is not written when nothing changed. */
export async function raiseCursor(tx: Queryable, advertiserId: bigint, through: bigint): Promise<void> {
  const newest = await tx.query<Columns<'applications', 'application_id'> & { after_id: bigint | null }>(
    `SELECT a.application_id, (SELECT after_id FROM intake.cursors WHERE advertiser_id = $1) AS after_id
     FROM intake.applications a WHERE advertiser_id = $1 AND application_id <= $2 ORDER BY application_id DESC LIMIT ${newestIds}`,
    [advertiserId, through],
  );
  const cursor = toCursor(newest[0]?.after_id ?? null, newest.map((row) => row.application_id).reverse());
  if (cursor === null) return;
  await tx.query(
    `INSERT INTO intake.cursors AS c (advertiser_id, after_id, after_date, as_of)
     VALUES ($1, $2, (SELECT submitted_at FROM intake.applications
       WHERE advertiser_id = $1 AND submitted_at <= now() ORDER BY submitted_at DESC LIMIT 1), now())
     ON CONFLICT (advertiser_id) DO UPDATE
       SET after_id = excluded.after_id, after_date = excluded.after_date, as_of = excluded.as_of
       WHERE c.after_id < excluded.after_id OR c.after_date IS DISTINCT FROM excluded.after_date`,
    [advertiserId, cursor],
  );
}

/**
 * Confirms that these cursors are still current after polls that found nothing to move them. One statement for any number of advertisers.
 * An account that has no cursor yet, because it has no application or only one with a high id (toCursor), gets a cursor before the first
 * id, so that its polls are visible as well. With one application this needs a sweep by ids: a poll would otherwise read what SYNC_START
 * leaves out.
 */
export async function confirmCursors(db: Queryable, advertiserIds: readonly bigint[]): Promise<void> {
  await db.query(
    `WITH confirmed AS (
       UPDATE intake.cursors SET as_of = now() WHERE advertiser_id = ANY ($1::bigint[]) RETURNING advertiser_id
     )
     INSERT INTO intake.cursors (advertiser_id, after_id, as_of)
     SELECT id, 0, now() FROM (SELECT unnest($1::bigint[]) EXCEPT SELECT advertiser_id FROM confirmed) AS unread (id)
     WHERE (SELECT count(*) FROM (SELECT 1 FROM intake.applications a WHERE a.advertiser_id = id ORDER BY a.application_id LIMIT 2) AS few)
       < CASE WHEN EXISTS (SELECT 1 FROM intake.coverage k WHERE k.advertiser_id = id AND k.axis = 'id') THEN 2 ELSE 1 END
     ON CONFLICT (advertiser_id) DO NOTHING`,
    [advertiserIds],
  );
}

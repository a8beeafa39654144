// The table of ids for which the source fails while it serves others. Each is an open range of one id, and is requested again after a pause
// that doubles. An operator can accept that one cannot be read.
import type { Covered } from '../../domain/coverage/position.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';

/** The pause before the next try: a minute, twice as long after each failure, a day at most. */
const nextAt = (tries: string) => `now() + least(power(2, least(${tries}, 20)), 1440) * interval '1 minute'`;

export async function saveUnreadable(
  tx: Queryable,
  advertiserId: bigint,
  ids: readonly { readonly id: bigint; readonly reason: string }[],
): Promise<void> {
  if (ids.length === 0) return;
  await tx.query(
    `INSERT INTO intake.unreadable AS u (advertiser_id, application_id, reason, next_at)
     SELECT $1, f.id, f.reason, ${nextAt('0')} FROM unnest($2::bigint[], $3::text[]) AS f (id, reason)
     ON CONFLICT (advertiser_id, application_id) DO UPDATE
       SET reason = excluded.reason, tries = u.tries + 1, next_at = ${nextAt('u.tries')}`,
    [advertiserId, ...columnsOf(ids, 'id', 'reason')],
  );
}

/** Records that the source serves an id again. Whether it has an application with this id, its answer has shown. */
export async function resolveUnreadable(db: Queryable, advertiserId: bigint, id: bigint): Promise<void> {
  await db.query(`DELETE FROM intake.unreadable WHERE advertiser_id = $1 AND application_id = $2`, [advertiserId, id]);
}

/** Forgets ids that were known before a sweep and that it has read. Those that it could not read are among its open ranges. */
export async function healUnreadable(
  tx: Queryable,
  advertiserId: bigint,
  { sweepId, low, high, startedAt }: Covered & { readonly sweepId: bigint; readonly startedAt: Date },
): Promise<void> {
  await tx.query(
    `DELETE FROM intake.unreadable u WHERE advertiser_id = $1 AND application_id >= $3 AND ($4::bigint IS NULL OR application_id <= $4)
       AND u.since < $5
       AND NOT EXISTS (SELECT 1 FROM intake.ranges r WHERE r.advertiser_id = $1 AND r.sweep_id = $2
         AND r.low <= u.application_id AND (r.high IS NULL OR r.high >= u.application_id))`,
    [advertiserId, sweepId, low, high, startedAt],
  );
}

// Old books go, a batch at a time: sweeps that left nothing open, and what was resolved in quarantine. What an analyst or the status
// still looks at stays: every gap, what coverage rests on, and the newest sweep of an advertiser.
import type { Queryable } from './database.ts';

/** Longer than any chart looks back. */
const keptMs = 90 * 86_400_000;
const batch = 5_000;

/** Deletes what is old enough; gives how many rows went, at most two batches. */
export async function pruneBooks(db: Queryable, { olderThanMs = keptMs, limit = batch } = {}): Promise<number> {
  const sweeps = await db.query(
    `WITH old AS (
       SELECT s.advertiser_id, s.sweep_id FROM intake.sweeps s
       WHERE s.ended_at < now() - $1 * interval '1 millisecond' AND s.state IN ('closed', 'dropped')
         AND NOT EXISTS (SELECT 1 FROM intake.ranges r WHERE r.advertiser_id = s.advertiser_id AND r.sweep_id = s.sweep_id)
         AND NOT EXISTS (SELECT 1 FROM intake.coverage k WHERE k.advertiser_id = s.advertiser_id AND k.sweep_id = s.sweep_id)
         AND EXISTS (SELECT 1 FROM intake.sweeps newer WHERE newer.advertiser_id = s.advertiser_id AND newer.sweep_id > s.sweep_id)
       LIMIT $2
     )
     DELETE FROM intake.sweeps s USING old WHERE s.advertiser_id = old.advertiser_id AND s.sweep_id = old.sweep_id RETURNING 1`,
    [olderThanMs, limit],
  );
  const resolved = await db.query(
    `WITH old AS (
       SELECT advertiser_id, fingerprint FROM intake.quarantine WHERE resolved_at < now() - $1 * interval '1 millisecond' LIMIT $2
     )
     DELETE FROM intake.quarantine q USING old
     WHERE q.advertiser_id = old.advertiser_id AND q.fingerprint = old.fingerprint RETURNING 1`,
    [olderThanMs, limit],
  );
  return sweeps.length + resolved.length;
}

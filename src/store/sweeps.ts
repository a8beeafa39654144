// The books of sweeps: what was asked of which range, what is still open (gaps), what was closed with which certificate (coverage),
// and how far the live sweep has come (cursor). All of it is written in the transaction of the page it follows from.
import type { Queryable } from './database.ts';
import type { Reading } from './rows.ts';

export type Purpose = 'live' | 'recheck' | 'backfill' | 'witness';
export type Certificate = 'proven' | 'assumed' | 'unproven';

/** An open interval of ids (or, on the date axis, of seconds): both ends lie outside; null is no end. */
export interface Range {
  readonly low: bigint;
  readonly high: bigint | null;
}

/** One reading of a range, as it was begun. */
export interface Sweep extends Range {
  readonly sweepId: bigint;
  readonly purpose: Purpose;
  readonly axis: 'id' | 'date';
  readonly startedAt: Date;
}

/** What one answer moved. */
export interface Progress {
  readonly sweep: Sweep;
  /** True when there is nothing to book: the first answer closed the sweep and brought nothing new. */
  readonly quiet: boolean;
  /** The sweep's reasoning apart from its gaps, as JSON. */
  readonly facts: unknown;
  /** Gaps that are no more, by their low end, and gaps that are new. */
  readonly closed: readonly bigint[];
  readonly opened: readonly Range[];
  readonly bytes: number;
  readonly requests: number;
  /** The live cursor may rise to this id: everything at or below it was read. */
  readonly cursor: bigint | null;
  readonly ended: { readonly certificate: Certificate; readonly reason: string } | null;
}

/** Books the progress of a page. The sweep's row appears with the first page that is worth a row. */
export async function saveProgress(
  tx: Queryable,
  page: Reading & { readonly progress: Progress; readonly applications: readonly unknown[] },
  counts: { added: number; changed: number },
): Promise<void> {
  const { sweep, ended, ...progress } = page.progress;
  await tx.query(
    `INSERT INTO intake.sweeps AS s (advertiser_id, sweep_id, lane, purpose, axis, low, high, started_at, state, certificate, reason,
       facts, ended_at, requests, received, added, changed, bytes)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, CASE WHEN $9 = 'running' THEN NULL ELSE now() END, $13, $14, $15, $16, $17)
     ON CONFLICT (advertiser_id, sweep_id) DO UPDATE SET
       state = excluded.state, certificate = excluded.certificate, reason = excluded.reason, facts = excluded.facts,
       ended_at = excluded.ended_at, requests = s.requests + excluded.requests, received = s.received + excluded.received,
       added = s.added + excluded.added, changed = s.changed + excluded.changed, bytes = s.bytes + excluded.bytes`,
    [
      page.advertiserId,
      sweep.sweepId,
      page.lease.lane,
      sweep.purpose,
      sweep.axis,
      sweep.low,
      sweep.high,
      sweep.startedAt,
      ended ? 'closed' : 'running',
      ended?.certificate ?? null,
      ended?.reason ?? null,
      JSON.stringify(progress.facts),
      progress.requests,
      page.applications.length,
      counts.added,
      counts.changed,
      progress.bytes,
    ],
  );
  if (progress.closed.length > 0) {
    await tx.query(`DELETE FROM intake.gaps WHERE advertiser_id = $1 AND sweep_id = $2 AND low = ANY ($3::bigint[])`, [
      page.advertiserId,
      sweep.sweepId,
      progress.closed,
    ]);
  }
  if (progress.opened.length > 0) {
    await tx.query(
      `INSERT INTO intake.gaps (advertiser_id, sweep_id, low, high)
       SELECT $1, $2, g.low, g.high FROM unnest($3::bigint[], $4::bigint[]) AS g (low, high)`,
      [page.advertiserId, sweep.sweepId, progress.opened.map((g) => g.low), progress.opened.map((g) => g.high)],
    );
  }
  if (progress.cursor !== null) await raiseCursor(tx, page.advertiserId, progress.cursor);
}

/** Never beyond what is stored, never backwards, and no write when nothing moved: the cursor is derived from committed rows. */
async function raiseCursor(tx: Queryable, advertiserId: bigint, through: bigint): Promise<void> {
  await tx.query(
    `INSERT INTO intake.cursors AS c (advertiser_id, after_id, after_date, as_of)
     SELECT $1, newest.application_id, latest.submitted_at, now()
     FROM (SELECT application_id FROM intake.applications
           WHERE advertiser_id = $1 AND application_id <= $2 ORDER BY application_id DESC LIMIT 1) AS newest
     LEFT JOIN (SELECT submitted_at FROM intake.applications
           WHERE advertiser_id = $1 AND submitted_at <= now() ORDER BY submitted_at DESC LIMIT 1) AS latest ON true
     ON CONFLICT (advertiser_id) DO UPDATE
       SET after_id = greatest(c.after_id, excluded.after_id), after_date = excluded.after_date, as_of = excluded.as_of
       WHERE c.after_id < excluded.after_id OR c.after_date IS DISTINCT FROM excluded.after_date`,
    [advertiserId, through],
  );
}

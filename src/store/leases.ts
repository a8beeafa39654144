// Leases: who sweeps an advertiser, per lane. A lease lapses by the database's clock; its epoch rises with every change of hands.
// The lease alone proves nothing: a paused holder wakes up believing in it. `fence` inside each write transaction is what protects the rows.
import { LeaseLost } from '../domain/trouble.ts';
import type { Lock, Queryable } from './database.ts';

export type Lane = 'live' | 'backfill';

/** A claim on one advertiser's lane. */
export interface Lease {
  readonly name: string;
  readonly lane: Lane;
  readonly owner: string;
  readonly epoch: bigint;
}

export interface LeaseClaim {
  readonly name: string;
  readonly lane: Lane;
  readonly owner: string;
  readonly leaseMs: number;
  /** Leave it when work under the lane came to its end within this time: another worker has just done it. */
  readonly notWithinMs?: number;
}

/** Takes the lane if it is free or its holder's lease has lapsed; null while another holds it. The owner's own lease is prolonged. */
export async function claimLease(db: Queryable, request: LeaseClaim): Promise<Lease | null> {
  const rows = await db.query<{ epoch: bigint }>(
    `INSERT INTO intake.leases AS l (name, lane, owner, epoch, expires_at)
     VALUES ($1, $2, $3, 1, now() + $4 * interval '1 millisecond')
     ON CONFLICT (name, lane) DO UPDATE
       SET owner = excluded.owner, epoch = l.epoch + 1, expires_at = excluded.expires_at
       WHERE (l.expires_at < now() OR l.owner = excluded.owner)
         AND (l.done_at IS NULL OR l.done_at <= now() - $5 * interval '1 millisecond')
     RETURNING epoch`,
    [request.name, request.lane, request.owner, request.leaseMs, request.notWithinMs ?? 0],
  );
  const epoch = rows[0]?.epoch;
  return epoch === undefined ? null : { name: request.name, lane: request.lane, owner: request.owner, epoch };
}

/** Prolongs a lease; false when it has changed hands. */
export async function renewLease(db: Queryable, lease: Lease, leaseMs: number): Promise<boolean> {
  const rows = await db.query(
    `UPDATE intake.leases SET expires_at = now() + $4 * interval '1 millisecond'
     WHERE name = $1 AND lane = $2 AND epoch = $3 RETURNING 1`,
    [lease.name, lease.lane, lease.epoch, leaseMs],
  );
  return rows.length > 0;
}

/** Gives the lane back at once. The row stays: its epoch must never start over. `done` says that the work came to its end. */
export async function releaseLease(db: Queryable, lease: Lease, done = false): Promise<void> {
  await db.query(
    `UPDATE intake.leases SET expires_at = '-infinity', done_at = CASE WHEN $4 THEN now() ELSE done_at END
     WHERE name = $1 AND lane = $2 AND epoch = $3`,
    [lease.name, lease.lane, lease.epoch, done],
  );
}

/** Who holds a lane now, and for how much longer. */
export async function loadHolder(
  db: Queryable,
  name: string,
  lane: Lane,
): Promise<{ owner: string; remainingMs: number } | null> {
  const rows = await db.query<{ owner: string; remaining_ms: number }>(
    `SELECT owner, extract(epoch FROM expires_at - now())::float8 * 1000 AS remaining_ms
     FROM intake.leases WHERE name = $1 AND lane = $2 AND expires_at > now()`,
    [name, lane],
  );
  const row = rows[0];
  return row ? { owner: row.owner, remainingMs: row.remaining_ms } : null;
}

/**
 * The first statement of every write transaction: holds the lease row until COMMIT, or ends the transaction.
 * Measured with paused workers: without it half of the takeovers let a stale page through, checked outside the transaction 1 in 20.
 */
export async function fence(tx: Queryable, lease: Lease): Promise<void> {
  const rows = await tx.query(`SELECT 1 FROM intake.leases WHERE name = $1 AND lane = $2 AND epoch = $3 FOR SHARE`, [
    lease.name,
    lease.lane,
    lease.epoch,
  ]);
  if (rows.length === 0) throw new LeaseLost(lease.name, lease.lane);
}

/**
 * Keeps the two lanes of an advertiser apart while one writes; the parallel readers of a backfill share their side of it. Whoever takes
 * the live side is alone with the advertiser's applications.
 */
export function laneLock(advertiserId: bigint, lane: Lane): Lock {
  return { class: 1, key: advertiserId, shared: lane === 'backfill' };
}

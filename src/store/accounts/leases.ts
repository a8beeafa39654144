// Which worker sweeps a lane of an advertiser. A lease expires by the database's clock, and every claim raises its epoch. A paused worker
// still believes in its lease: the `fence` in the transaction that commits a page protects the rows. Other writes of a read have none: they
// only take claims back (endCertificates, saveUnreadable) or note how it ended (confirmCursors, resolveUnreadable, noteStop).
import { LeaseLost } from '../../domain/trouble.ts';
import { columnsOf, isAhead, longestLease, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

export type Lane = 'live' | 'backfill';

export interface Lease {
  readonly name: string;
  readonly lane: Lane;
  readonly owner: string;
  readonly epoch: bigint;
}

/** The advertiser of an answer, the lease it is written under, and its place in the order of requests. */
export interface WriteContext {
  readonly lease: Lease;
  readonly advertiserId: bigint;
  /** Taken before the request was sent: orders answers by when they were requested (P5). */
  readonly seq: bigint;
}

export interface LeaseClaim extends Omit<Lease, 'epoch'> {
  readonly leaseMs: number;
  /** Do not claim the lane when its work was completed within this time: another worker has just done it. */
  readonly skipIfDoneWithinMs?: number;
}

/** Claims free lanes; null where another owner holds one. A row that a fenced transaction locks is skipped, to block no other lane. */
export async function claimLeases(db: Queryable, claims: readonly LeaseClaim[]): Promise<(Lease | null)[]> {
  const rows = await db.query<Columns<'leases', 'name' | 'lane' | 'owner' | 'epoch'>>(
    `WITH wanted AS (
       SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::float8[]) AS w (name, lane, owner, lease_ms, rest_ms)
     ), free AS MATERIALIZED (
       SELECT l.name, l.lane FROM intake.leases l JOIN wanted w USING (name, lane)
       WHERE (l.expires_at < now() OR l.expires_at > now() + ${longestLease} OR l.owner = w.owner)
         AND (l.done_at IS NULL OR l.done_at <= now() - coalesce(w.rest_ms, 0) * interval '1 millisecond' OR ${isAhead('l.done_at')})
       FOR UPDATE OF l SKIP LOCKED
     ), taken AS (
       UPDATE intake.leases l SET owner = w.owner, epoch = l.epoch + 1, expires_at = now() + w.lease_ms * interval '1 millisecond'
       FROM free JOIN wanted w USING (name, lane) WHERE l.name = free.name AND l.lane = free.lane
       RETURNING l.name, l.lane, l.owner, l.epoch
     ), added AS (
       INSERT INTO intake.leases (name, lane, owner, epoch, expires_at)
       SELECT w.name, w.lane, w.owner, 1, now() + w.lease_ms * interval '1 millisecond' FROM wanted w
       WHERE NOT EXISTS (SELECT 1 FROM intake.leases l WHERE l.name = w.name AND l.lane = w.lane)
       ON CONFLICT DO NOTHING RETURNING name, lane, owner, epoch
     )
     SELECT * FROM taken UNION ALL SELECT * FROM added`,
    columnsOf(claims, 'name', 'lane', 'owner', 'leaseMs', 'skipIfDoneWithinMs'),
  );
  return claims.map(
    ({ name, lane, owner }) =>
      rows.find((one) => one.name === name && one.lane === lane && one.owner === owner) ?? null,
  );
}

/** Extends a lease; false when it was claimed again. A row that a fenced transaction locks is skipped: waiting would block other lanes. */
export async function renewLease(db: Queryable, lease: Lease, leaseMs: number): Promise<boolean> {
  const [row] = await db.query<{ held: boolean }>(
    `WITH free AS (
       SELECT name, lane FROM intake.leases WHERE name = $1 AND lane = $2 AND epoch = $3 AND owner = $5 FOR UPDATE SKIP LOCKED
     ), renewed AS (
       UPDATE intake.leases l SET expires_at = now() + $4 * interval '1 millisecond' FROM free WHERE l.name = free.name AND l.lane = free.lane
     )
     SELECT EXISTS (SELECT 1 FROM intake.leases WHERE name = $1 AND lane = $2 AND epoch = $3 AND owner = $5) AS held`,
    [lease.name, lease.lane, lease.epoch, leaseMs, lease.owner],
  );
  return row?.held ?? false;
}

export interface Release extends Lease {
  /** The work was completed. */
  readonly done: boolean;
}

/** Releases lanes at once. The rows stay, because an epoch must never start over. */
export async function releaseLeases(db: Queryable, given: readonly Release[]): Promise<void> {
  await db.query(
    `UPDATE intake.leases l SET expires_at = '-infinity', done_at = CASE WHEN g.done THEN now() ELSE l.done_at END
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::boolean[]) AS g (name, lane, epoch, owner, done)
     WHERE l.name = g.name AND l.lane = g.lane AND l.epoch = g.epoch AND l.owner = g.owner`,
    columnsOf(given, 'name', 'lane', 'epoch', 'owner', 'done'),
  );
}

/** The current owner of a lane, and until when. */
export async function loadHolder(db: Queryable, name: string, lane: Lane) {
  const [row] = await db.query<Columns<'leases', 'owner'> & { expiresAt: Date; remainingMs: number }>(
    `SELECT owner, expires_at AS "expiresAt", extract(epoch FROM expires_at - now())::float8 * 1000 AS "remainingMs"
     FROM intake.leases WHERE name = $1 AND lane = $2 AND expires_at > now() AND expires_at <= now() + ${longestLease}`,
    [name, lane],
  );
  return row ?? null;
}

/**
 * Part of the transaction that commits a page: locks the lease row until COMMIT, or throws. Without it, half of the takeovers let a stale
 * page through, with a check outside of the transaction 1 in 20 (measured). A failover may give an epoch twice, but not an owner.
 */
export async function fence(tx: Transaction, lease: Lease): Promise<void> {
  const rows = await tx.query(
    `SELECT 1 FROM intake.leases WHERE name = $1 AND lane = $2 AND epoch = $3 AND owner = $4 FOR SHARE`,
    [lease.name, lease.lane, lease.epoch, lease.owner],
  );
  if (rows.length === 0) throw new LeaseLost(lease.name, lease.lane);
}

/** Keeps the lanes of an advertiser from writing at the same time. The parallel readers of a backfill share it; a live one is alone. */
export function laneLock(advertiserId: bigint, lane: Lane): string {
  return `SELECT pg_advisory_xact_lock${lane === 'backfill' ? '_shared' : ''}(1, hashint8(${advertiserId}))`;
}

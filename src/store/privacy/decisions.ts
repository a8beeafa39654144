// Decisions of an operator about what the source no longer shows or cannot show. A decision is recorded in the audit log and in the evidence
// of the current proof. Nothing is erased by it; the next recheck no longer expects these ids. The audit log also tells of erasures, exports
// and other actions. It holds ids, kinds and counts only, so that a reader of a row needs no access to personal data.
import { type Decision, toDecisionBody, toIdList } from '../../domain/evidence/record.ts';
import { laneLock } from '../accounts/leases.ts';
import { appendEvents } from '../events.ts';
import type { Database, Queryable, Transaction } from '../postgres/database.ts';
import { appendEvidence, loadAuditedProof } from '../sweeps/evidence.ts';

/** What an operator may decide about: ids, and since when they are gone or cannot be read. */
export interface Undecided {
  readonly ids: readonly bigint[];
  readonly since: Date | null;
  /** Why an id cannot be read; null for deletions. */
  readonly reason: string | null;
}

/** Applications that sweeps no longer saw and that are not marked as missing yet. */
export async function loadDeletions(db: Queryable, advertiserId: bigint): Promise<Undecided> {
  const rows = await db.query<{ id: bigint; since: Date }>(
    `SELECT application_id AS id, absent_since AS since FROM intake.applications
     WHERE advertiser_id = $1 AND absent_since IS NOT NULL AND missing_since IS NULL AND erased_at IS NULL ORDER BY application_id`,
    [advertiserId],
  );
  const [since = null] = rows.map((row) => row.since).sort((a, b) => a.getTime() - b.getTime());
  return { ids: rows.map(({ id }) => id), since, reason: null };
}

/** The id if the source fails for it and nobody has accepted that yet. */
export async function loadUnreadable(db: Queryable, advertiserId: bigint, id: bigint): Promise<Undecided> {
  const [row] = await db.query<{ since: Date; reason: string }>(
    `SELECT since, reason FROM intake.unreadable WHERE advertiser_id = $1 AND application_id = $2 AND accepted_at IS NULL`,
    [advertiserId, id],
  );
  return { ids: row ? [id] : [], since: row?.since ?? null, reason: row?.reason ?? null };
}

/** Marks applications as missing that the source no longer shows. Returns how many. */
export async function acceptDeletions(db: Database, advertiserId: bigint, ids: readonly bigint[], by: string) {
  return await decide(db, advertiserId, { what: 'deletions', by }, async (tx) => {
    const rows = await tx.query<{ id: bigint }>(
      `UPDATE intake.applications SET missing_since = now() WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[])
         AND absent_since IS NOT NULL AND missing_since IS NULL AND erased_at IS NULL RETURNING application_id AS id`,
      [advertiserId, ids],
    );
    const missing = rows.map(({ id: applicationId }) => ({ applicationId, type: 'application.missing' }) as const);
    await appendEvents(tx, advertiserId, missing);
    return rows.map(({ id }) => id);
  });
}

/** Accepts that the source cannot show this id. Returns 1, or 0 if it shows it by now. */
export async function acceptUnreadable(db: Database, advertiserId: bigint, id: bigint, by: string): Promise<number> {
  return await decide(db, advertiserId, { what: 'unreadable', by }, async (tx) => {
    const rows = await tx.query(
      `UPDATE intake.unreadable SET accepted_at = now(), accepted_by = $3
       WHERE advertiser_id = $1 AND application_id = $2 AND accepted_at IS NULL RETURNING 1`,
      [advertiserId, id, by],
    );
    return rows.length === 0 ? [] : [id];
  });
}

/** Runs a decision and records it. The lane lock keeps a sweep from ending at the same time. */
async function decide(
  db: Database,
  advertiserId: bigint,
  { what, by }: Decision,
  write: (tx: Transaction) => Promise<readonly bigint[]>,
): Promise<number> {
  return await db.transaction(
    async (tx) => {
      const ids = [...(await write(tx))].sort((a, b) => (a < b ? -1 : 1));
      if (ids.length === 0) return 0;
      const [applicationId = null] = ids.length === 1 ? ids : [];
      const facts = { what, count: ids.length, ids: toIdList(ids) };
      await recordAudit(tx, { advertiserId, action: 'accept', applicationId, by, facts });
      const proof = await loadAuditedProof(tx, advertiserId, null);
      const body = toDecisionBody(new Date(), { what, by }, ids);
      if (proof !== null) await appendEvidence(tx, advertiserId, proof.sweepId, [body]);
      return ids.length;
    },
    laneLock(advertiserId, 'live'),
  );
}

export interface AuditEntry {
  readonly advertiserId: bigint;
  readonly action: 'erase' | 'export' | 'url' | 'retry' | 'quarantine' | 'accept';
  /** Null where the action was about several applications, or none. */
  readonly applicationId: bigint | null;
  /** User and machine, or the maintenance task. */
  readonly by: string;
  /** No personal data: ids, kinds, states, counts. */
  readonly facts: Readonly<Record<string, string | number | boolean | null>>;
}

/** Records an action, in the transaction of that action where it has one. */
export async function recordAudit(db: Queryable, entry: AuditEntry): Promise<void> {
  await db.query(
    `INSERT INTO intake.audit_log (advertiser_id, action, application_id, by, facts) VALUES ($1, $2, $3, $4, $5::jsonb)`,
    [entry.advertiserId, entry.action, entry.applicationId, entry.by, JSON.stringify(entry.facts)],
  );
}

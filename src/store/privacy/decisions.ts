// Decisions of an operator about what the source no longer shows or cannot show, on record in the audit log and in the evidence of the
// current proof. Nothing is erased; the next recheck no longer expects these ids. The audit log tells of other actions too.
import { type Decision, toDecisionBody, toIdList } from '../../domain/evidence/record.ts';
import { laneLock } from '../accounts/leases.ts';
import { appendEvents } from '../events.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import { appendEvidence, loadAuditedProof } from '../sweeps/evidence.ts';

/** What an operator may decide about: ids, and since when they are gone or cannot be read. */
export interface Undecided {
  readonly ids: readonly bigint[];
  readonly since: Date | null;
  /** Why an id cannot be read; null for deletions. */
  readonly reason: string | null;
}

const isGone = `absent_since IS NOT NULL AND missing_since IS NULL AND erased_at IS NULL`;

/** Applications that sweeps no longer saw and that are not missing yet; or this id, if the source fails for it and nobody accepted that. */
export async function loadUndecided(db: Queryable, advertiserId: bigint, id: bigint | null): Promise<Undecided> {
  const rows = await db.query<{ id: bigint; since: Date; reason: string | null }>(
    id === null
      ? `SELECT application_id AS id, min(absent_since) OVER () AS since, NULL AS reason FROM intake.applications
         WHERE advertiser_id = $1 AND ${isGone} ORDER BY application_id`
      : `SELECT application_id AS id, since, reason FROM intake.unreadable
         WHERE advertiser_id = $1 AND application_id = $2 AND accepted_at IS NULL`,
    id === null ? [advertiserId] : [advertiserId, id],
  );
  const { since = null, reason = null } = rows[0] ?? {};
  return { ids: rows.map((row) => row.id), since, reason };
}

/** Returns how many were accepted: not those that the source shows by now. The lane lock keeps a sweep from ending at the same time. */
export async function decide(db: Database, advertiserId: bigint, { what, by }: Decision, chosen: readonly bigint[]) {
  return await db.transaction(
    async (tx) => {
      const rows = await tx.query<{ id: bigint }>(
        what === 'deletions'
          ? `UPDATE intake.applications SET missing_since = now()
             WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) AND ${isGone} RETURNING application_id AS id`
          : `UPDATE intake.unreadable SET accepted_at = now(), accepted_by = $3
             WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) AND accepted_at IS NULL RETURNING application_id AS id`,
        [advertiserId, chosen, ...(what === 'deletions' ? [] : [by])],
      );
      const ids = rows.map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
      if (ids.length === 0) return 0;
      const [applicationId = null] = ids.length === 1 ? ids : [];
      const facts = { what, count: ids.length, ids: toIdList(ids) };
      await recordAudit(tx, { advertiserId, action: 'accept', applicationId, by, facts });
      const proof = await loadAuditedProof(tx, advertiserId, null);
      const body = toDecisionBody(new Date(), { what, by }, ids);
      if (proof !== null) await appendEvidence(tx, advertiserId, proof.sweepId, [body]);
      const toEvent = (applicationId: bigint) => ({ applicationId, type: 'application.missing' }) as const;
      await appendEvents(tx, advertiserId, what === 'deletions' ? ids.map(toEvent) : []);
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

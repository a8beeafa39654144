// The audit log of erasures, exports and other actions on applications, by users and by the maintenance task. It holds ids, kinds and
// counts only, so that a reader of a row needs no access to personal data.
import type { Queryable } from '../postgres/database.ts';

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

// Who did what by hand. Ids, kinds and counts only: a row must be readable by anyone who may see that Intake exists.
import type { Queryable } from '../postgres/database.ts';

/** One deed. */
export interface Deed {
  readonly advertiserId: bigint;
  readonly action: 'erase' | 'export' | 'url' | 'retry' | 'quarantine';
  /** Null where it was about several applications, or none. */
  readonly applicationId: bigint | null;
  /** User and machine, or the maintenance task. */
  readonly by: string;
  /** No personal data: ids, kinds, states, counts. */
  readonly facts: Readonly<Record<string, string | number | boolean | null>>;
}

/** Writes it down; inside the transaction of the deed where there is one. */
export async function recordDeed(db: Queryable, deed: Deed): Promise<void> {
  await db.query(
    `INSERT INTO intake.audit_log (advertiser_id, action, application_id, by, facts) VALUES ($1, $2, $3, $4, $5::jsonb)`,
    [deed.advertiserId, deed.action, deed.applicationId, deed.by, JSON.stringify(deed.facts)],
  );
}

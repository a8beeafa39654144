// The data of the page about one advertiser's proof: its certificates and the answers behind them. Ids and counts, no personal data.
import type { CurrentProof } from '../../domain/evidence/explain.ts';
import type { Database } from '../postgres/database.ts';
import { loadCurrentProof } from '../sweeps/export-evidence.ts';

export interface ProofReport extends CurrentProof {
  readonly at: Date;
  readonly advertiser: string;
}

/** Loads the report in one snapshot. Null for an unknown name, or where no answer has shown the advertiser's id yet. */
export async function loadProofReport(db: Database, name: string): Promise<ProofReport | null> {
  return await db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const [known] = await tx.query<{ id: bigint; at: Date }>(
      `SELECT advertiser_id AS id, now() AS at FROM intake.advertisers WHERE name = $1 AND advertiser_id IS NOT NULL`,
      [name],
    );
    if (known === undefined) return null;
    const proof = await loadCurrentProof(tx, known.id);
    return { ...proof, at: known.at, advertiser: name };
  });
}

// The data of the page about one advertiser's proof: its certificates, the answers behind them, and how its application ids are distributed.
// Ids and counts, no personal data.
import type { CurrentProof } from '../../domain/evidence/explain.ts';
import type { Density } from '../../domain/evidence/picture.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import { loadCurrentProof } from '../sweeps/export-evidence.ts';

export interface ProofReport extends CurrentProof {
  readonly at: Date;
  readonly advertiser: string;
  /** Null where nothing is stored. */
  readonly density: Density | null;
}

/** The most columns of the picture, between the lowest id and the highest. */
const mostColumns = 96;

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
    return { ...proof, at: known.at, advertiser: name, density: await loadDensity(tx, known.id) };
  });
}

async function loadDensity(tx: Queryable, advertiserId: bigint): Promise<Density | null> {
  // One id far from all others would squeeze those into one column. The picture therefore shows the middle 80 % of the ids, extended on
  // each side by at most the length of that range.
  const rows = await tx.query<{ lowest: bigint; highest: bigint; columns: number; column: number; n: number }>(
    `WITH ids AS (
       SELECT application_id AS id FROM intake.applications WHERE advertiser_id = $1 AND application_id > 0
     ), middle AS (
       SELECT percentile_disc(0.1) WITHIN GROUP (ORDER BY id)::numeric AS low,
         percentile_disc(0.9) WITHIN GROUP (ORDER BY id)::numeric AS high FROM ids
     ), ends AS (
       SELECT min(id) AS lowest, max(id) AS highest FROM ids, middle WHERE id BETWEEN 2 * low - high AND 2 * high - low
     ), sized AS (
       SELECT lowest, highest, least(${mostColumns}, highest - lowest + 1)::int AS columns FROM ends
     )
     SELECT lowest, highest, columns, width_bucket(id::numeric, lowest::numeric, highest::numeric + 1, columns) AS "column", count(*)::int AS n
     FROM ids, sized GROUP BY 1, 2, 3, 4`,
    [advertiserId],
  );
  const [first] = rows;
  if (first === undefined) return null;
  const { lowest, highest, columns } = first;
  // width_bucket counts ids outside of the range in column 0 and in column `columns + 1`.
  const counts = Array.from({ length: columns + 2 }, () => 0);
  for (const { column, n } of rows) counts[column] = n;
  return { lowest, highest, counts };
}

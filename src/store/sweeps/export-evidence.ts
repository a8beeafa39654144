// Loads the proof of an advertiser in one snapshot: its certificates and what was asked for them, or everything that an export contains.
import type { Asked, CurrentProof } from '../../domain/evidence/explain.ts';
import { toProofLine, toRowsLine } from '../../domain/evidence/record.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { loadCertificates, loadVerdict } from './sweeps.ts';

export async function loadCurrentProof(db: Database, advertiserId: bigint | null): Promise<CurrentProof> {
  return await db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const verdict = await loadVerdict(tx, advertiserId);
    const certificates = await loadCertificates(tx, advertiserId);
    // Line 0 opens a chain, one line per question follows, the witnesses last; then the line of the end, and what came afterwards. A chain of
    // a large account has hundreds of thousands of lines, so only its last ones are looked at.
    const asked = await tx.query<Asked & { readonly sweepId: bigint }>(
      `SELECT sweep_id AS "sweepId", requests AS questions, received::float8 AS shown,
         requests - coalesce((
           SELECT n FROM intake.evidence e
           WHERE e.advertiser_id = $1 AND e.sweep_id = s.sweep_id AND n <= requests AND line NOT LIKE '%"purpose":"witness"%'
           ORDER BY n DESC LIMIT 1), requests) AS witnesses,
         (SELECT count(*)::int FROM intake.evidence e
          WHERE e.advertiser_id = $1 AND e.sweep_id = s.sweep_id AND n > requests + 1 AND line LIKE '%"type":"audit"%') AS audits
       FROM intake.sweeps s WHERE advertiser_id = $1 AND sweep_id = ANY ($2::bigint[])`,
      [advertiserId, certificates.map(({ sweepId }) => sweepId)],
    );
    return { verdict, certificates, asked: new Map(asked.map(({ sweepId, ...one }) => [sweepId, one])) };
  });
}

export interface StoredProofs {
  /** Its lines (docs/proof-format.md). There may be hundreds of thousands. */
  readonly lines: AsyncIterable<string>;
  /** The last hash of each sweep, as SWEEP:HASH. */
  readonly evidence: readonly string[];
  /** How many applications are stored, without erased ones. */
  readonly applications: number;
}

export const rowsAtATime = 1_000;

/** Runs `work` on one snapshot: a sweep that ends meanwhile, or an erasure, shows in all parts of it or in none. */
export async function withProofs<T>(db: Database, advertiserId: bigint, work: (proofs: StoredProofs) => Promise<T>) {
  return await db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const [row] = await tx.query<{ at: Date; applications: number; evidence: string[] }>(
      `SELECT now() AS at, count(*)::int AS applications,
         ARRAY(SELECT DISTINCT ON (sweep_id) sweep_id || ':' || encode(sha256(convert_to(line, 'UTF8')), 'hex')
           FROM intake.evidence WHERE advertiser_id = $1 ORDER BY sweep_id, n DESC) AS evidence
       FROM intake.applications WHERE advertiser_id = $1 AND erased_at IS NULL`,
      [advertiserId],
    );
    const { at = new Date(), applications = 0, evidence = [] } = row ?? {};
    return await work({ lines: loadLines(tx, advertiserId, at), applications, evidence });
  });
}

async function* loadLines(tx: Queryable, advertiserId: bigint, at: Date): AsyncGenerator<string> {
  yield toProofLine(advertiserId, at, await loadCertificates(tx, advertiserId));
  const evidence = inParts<Columns<'evidence', 'sweep_id' | 'n' | 'line'>>((last) =>
    tx.query(
      `SELECT sweep_id, n, line FROM intake.evidence
       WHERE advertiser_id = $1 AND (sweep_id, n) > ($2, $3) ORDER BY sweep_id, n LIMIT ${rowsAtATime}`,
      [advertiserId, last?.sweep_id ?? 0n, last?.n ?? -1],
    ),
  );
  for await (const rows of evidence) yield* rows.map(({ line }) => line);
  const applications = inParts<{ id: bigint; row: string[] }>((last) =>
    tx.query(
      `SELECT application_id AS id, ARRAY[application_id::text] || CASE WHEN erased_at IS NULL THEN ARRAY[
         floor(extract(epoch FROM first_seen_at))::text, floor(extract(epoch FROM missing_since))::text] END AS row
       FROM intake.applications WHERE advertiser_id = $1 AND ($2::bigint IS NULL OR application_id > $2)
       ORDER BY application_id LIMIT ${rowsAtATime}`,
      [advertiserId, last?.id ?? null],
    ),
  );
  for await (const rows of applications) yield toRowsLine(rows.map(({ row }) => row));
}

/** Loads rows part by part, each after the last row of the part before. */
async function* inParts<Row>(load: (last: Row | undefined) => Promise<Row[]>): AsyncGenerator<Row[]> {
  for (let rows = await load(undefined); rows.length > 0; rows = await load(rows.at(-1))) yield rows;
}

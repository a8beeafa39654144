// The table of evidence: the lines of a proof, committed in the transaction of their page. domain/evidence decides what a line contains; this
// file stores, loads and prunes lines.
import { findKept } from '../../domain/evidence/kept.ts';
import type { ChainEnd, LastHash, Line } from '../../domain/evidence/record.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

/** Appends lines to the chain of a sweep. */
export async function saveEvidence(
  tx: Queryable,
  advertiserId: bigint,
  sweepId: bigint,
  lines: readonly Line[],
): Promise<void> {
  await tx.query(
    `INSERT INTO intake.evidence (advertiser_id, sweep_id, n, line) SELECT $1, $2, l.* FROM unnest($3::int[], $4::text[]) AS l`,
    [advertiserId, sweepId, ...columnsOf(lines, 'n', 'text')],
  );
}

/** The last hashes of the sweeps behind the current certificates, in the order of the sweeps. */
export async function loadLastHashes(db: Queryable, advertiserId: bigint): Promise<LastHash[]> {
  return await db.query<{ sweepId: bigint; hash: Buffer }>(
    `SELECT DISTINCT sweep_id AS "sweepId", evidence_hash AS hash FROM intake.coverage
     WHERE advertiser_id = $1 AND axis = 'id' AND evidence_hash IS NOT NULL ORDER BY sweep_id`,
    [advertiserId],
  );
}

/** The end of a sweep's chain; null where it has none. */
export async function loadChainEnd(db: Queryable, advertiserId: bigint, sweepId: bigint): Promise<ChainEnd | null> {
  const [end] = await db.query<ChainEnd>(
    `SELECT n, sha256(convert_to(line, 'UTF8')) AS hash FROM intake.evidence
     WHERE advertiser_id = $1 AND sweep_id = $2 ORDER BY n DESC LIMIT 1`,
    [advertiserId, sweepId],
  );
  return end ?? null;
}

/** The proof of an ended sweep. */
export interface AuditedProof {
  readonly sweepId: bigint;
  readonly end: ChainEnd;
  /** How many lines follow the end of the sweep: audits and decisions. */
  readonly audits: number;
  /** Applications submitted from this second on are not covered. */
  readonly recentFrom: bigint;
}

/** The proof that an audit at this id extends; null where the id is not covered or its evidence was not kept. */
export async function loadAuditedProof(
  db: Queryable,
  advertiserId: bigint,
  id: bigint | null,
): Promise<AuditedProof | null> {
  const [row] = await db.query<Columns<'coverage', 'sweep_id'> & Columns<'sweeps', 'requests'> & { recent: bigint }>(
    `SELECT k.sweep_id, s.requests, floor(extract(epoch FROM k.complete_through))::bigint AS recent
     FROM intake.coverage k JOIN intake.sweeps s USING (advertiser_id, sweep_id)
     WHERE k.advertiser_id = $1 AND k.axis = 'id' AND k.evidence_hash IS NOT NULL
       AND ($2::bigint IS NULL OR k.low <= $2) AND (k.high IS NULL OR k.high >= $2) ORDER BY k.low DESC LIMIT 1`,
    [advertiserId, id],
  );
  const end = row && (await loadChainEnd(db, advertiserId, row.sweep_id));
  // Line 0 opens the chain, one line per request of the sweep follows, then the line of its end; the rest came afterwards.
  return end ? { sweepId: row.sweep_id, end, audits: end.n - row.requests - 1, recentFrom: row.recent } : null;
}

/**
 * False where the proof that a line extends was pruned since its end was loaded, because two later sweeps have ended. The line alone would
 * be a chain without a beginning.
 */
export async function isChainKept(
  tx: Queryable,
  advertiserId: bigint,
  { sweepId, line }: { readonly sweepId: bigint; readonly line: Line },
): Promise<boolean> {
  const rows = await tx.query(`SELECT 1 FROM intake.evidence WHERE advertiser_id = $1 AND sweep_id = $2 AND n = $3`, [
    advertiserId,
    sweepId,
    line.n - 1,
  ]);
  return rows.length > 0;
}

/** Records the last hash of a sweep on its certificates. */
export async function noteLastHash(
  tx: Queryable,
  advertiserId: bigint,
  sweepId: bigint,
  { hash: last }: Pick<ChainEnd, 'hash'>,
): Promise<void> {
  await tx.query(`UPDATE intake.coverage SET evidence_hash = $3 WHERE advertiser_id = $1 AND sweep_id = $2`, [
    advertiserId,
    sweepId,
    Buffer.from(last),
  ]);
}

/** Deletes the evidence of ended sweeps that no id needs any more; findKept (domain/evidence/kept.ts) selects the sweeps to keep. */
export async function pruneEvidence(tx: Queryable, advertiserId: bigint): Promise<void> {
  const sweeps = await tx.query<Columns<'sweeps', 'sweep_id' | 'low' | 'high'>>(
    `SELECT sweep_id, low, high FROM intake.sweeps s WHERE advertiser_id = $1 AND axis = 'id' AND ended_at IS NOT NULL
       AND EXISTS (SELECT 1 FROM intake.evidence e WHERE e.advertiser_id = $1 AND e.sweep_id = s.sweep_id AND e.n = 0)
     ORDER BY ended_at, sweep_id`,
    [advertiserId],
  );
  const kept = findKept(sweeps);
  const rest = sweeps.filter((sweep) => !kept.has(sweep)).map((sweep) => sweep.sweep_id);
  if (rest.length === 0) return;
  // A sweep that began later but ended earlier can still own a doubt (recordCoverage). Its evidence stays.
  await tx.query(
    `DELETE FROM intake.evidence e WHERE advertiser_id = $1 AND sweep_id = ANY ($2::bigint[])
       AND NOT EXISTS (SELECT 1 FROM intake.coverage k WHERE k.advertiser_id = $1 AND k.sweep_id = e.sweep_id)`,
    [advertiserId, rest],
  );
}

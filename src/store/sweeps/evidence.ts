// The table of evidence: the lines of a proof, committed in the transaction of their page. domain/evidence decides what a line contains.

import type { LineBody } from '../../domain/evidence/record.ts';
import { findKept } from '../../domain/evidence/record.ts';
import type { Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

/** Each line names the hash of the one before; certificates get the last. The sweep's line begins a chain; false where there is none. */
export async function appendEvidence(
  tx: Queryable,
  advertiserId: bigint,
  sweepId: bigint,
  bodies: readonly LineBody[],
): Promise<boolean> {
  const rows = await tx.query(
    `WITH RECURSIVE bodies AS (
       SELECT nth, body FROM unnest($3::text[]) WITH ORDINALITY AS b (body, nth)
     ), ended AS (
       SELECT n, line FROM intake.evidence WHERE advertiser_id = $1 AND sweep_id = $2 ORDER BY n DESC LIMIT 1
     ), lines (nth, n, line) AS (
       SELECT 0::bigint, coalesce(e.n, -1), e.line FROM (SELECT) AS one LEFT JOIN ended e ON true WHERE e.n IS NOT NULL OR $4
       UNION ALL
       SELECT b.nth, l.n + 1, format('{"n":%s,"before":"%s",%s', l.n + 1,
         coalesce(encode(sha256(convert_to(l.line, 'UTF8')), 'hex'), repeat('0', 64)), substr(b.body, 2))
       FROM lines l JOIN bodies b ON b.nth = l.nth + 1
     ), noted AS (
       UPDATE intake.coverage SET evidence_hash = sha256(convert_to(last.line, 'UTF8'))
       FROM (SELECT line FROM lines WHERE nth > 0 ORDER BY nth DESC LIMIT 1) AS last WHERE advertiser_id = $1 AND sweep_id = $2
     )
     INSERT INTO intake.evidence (advertiser_id, sweep_id, n, line) SELECT $1, $2, n, line FROM lines WHERE nth > 0 RETURNING 1`,
    [advertiserId, sweepId, bodies.map((body) => JSON.stringify(body)), bodies[0]?.type === 'sweep'],
  );
  return rows.length > 0;
}

export interface AuditedProof {
  readonly sweepId: bigint;
  /** How many lines follow the end of the sweep: audits and decisions. */
  readonly audits: number;
  /** Applications submitted from this second on are not covered. */
  readonly recentFrom: bigint;
}

/** The proof that an audit at this id extends; null where the id is not covered or its evidence was not kept. */
export async function loadAuditedProof(db: Queryable, advertiserId: bigint, id: bigint | null) {
  // Line 0 opens the chain, one line per request of the sweep follows, then the line of its end; the rest came afterwards.
  const [proof] = await db.query<AuditedProof>(
    `SELECT k.sweep_id AS "sweepId", floor(extract(epoch FROM k.complete_through))::bigint AS "recentFrom",
       (SELECT max(n) FROM intake.evidence e WHERE e.advertiser_id = $1 AND e.sweep_id = k.sweep_id) - s.requests - 1 AS audits
     FROM intake.coverage k JOIN intake.sweeps s USING (advertiser_id, sweep_id)
     WHERE k.advertiser_id = $1 AND k.axis = 'id' AND k.evidence_hash IS NOT NULL
       AND ($2::bigint IS NULL OR k.low <= $2) AND (k.high IS NULL OR k.high >= $2) ORDER BY k.low DESC LIMIT 1`,
    [advertiserId, id],
  );
  return proof ?? null;
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

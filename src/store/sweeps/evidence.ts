// The lines of proofs, committed with their page, and what is read of proofs. domain/evidence decides what a line contains.
import {
  type Asked,
  type CurrentProof,
  type ExportedCertificate,
  findKept,
  type LineBody,
  toProofLine,
  toRowsLine,
  type Verdict,
} from '../../domain/evidence/record.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

/** Each line names the hash of the one before; certificates get the last. The sweep's line begins a chain; false where there is none. */
export async function appendEvidence(tx: Queryable, advertiserId: bigint, sweepId: bigint, lines: readonly LineBody[]) {
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
    [advertiserId, sweepId, lines.map((body) => JSON.stringify(body)), lines[0]?.type === 'sweep'],
  );
  return rows.length > 0;
}

/**
 * The proof that an audit at this id extends; null where the id is not covered or its evidence was not kept. `audits` counts the lines behind
 * the end of the sweep, decisions too. Applications submitted from the second `recentFrom` on are not covered.
 */
export async function loadAuditedProof(db: Queryable, advertiserId: bigint, id: bigint | null) {
  // Line 0 opens the chain, one line per request of the sweep follows, then the line of its end; the rest came afterwards.
  const [proof] = await db.query<{ sweepId: bigint; audits: number; recentFrom: bigint }>(
    `SELECT k.sweep_id AS "sweepId", floor(extract(epoch FROM k.complete_through))::bigint AS "recentFrom",
       (SELECT max(n) FROM intake.evidence e WHERE e.advertiser_id = $1 AND e.sweep_id = k.sweep_id) - s.requests - 1 AS audits
     FROM intake.coverage k JOIN intake.sweeps s USING (advertiser_id, sweep_id)
     WHERE k.advertiser_id = $1 AND k.axis = 'id' AND k.evidence_hash IS NOT NULL
       AND ($2::bigint IS NULL OR k.low <= $2) AND (k.high IS NULL OR k.high >= $2) ORDER BY k.low DESC LIMIT 1`,
    [advertiserId, id],
  );
  return proof ?? null;
}

/** Deletes the evidence of ended sweeps that no id needs any more; findKept (domain/evidence/record.ts) selects the sweeps to keep. */
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

/** The verdict of all sweeps of an account; null stands for one whose id is not known yet. */
export async function loadVerdict(db: Queryable, advertiserId: bigint | null): Promise<Verdict> {
  const [verdict] = await db.query<Verdict>(
    `SELECT certificate, risk, reason, open_ranges AS "openRanges", coalesce(evidence, '{}') AS evidence
     FROM intake_analytics.completeness WHERE advertiser_id = $1`,
    [advertiserId],
  );
  const reason = 'nothing was read to its end yet';
  return verdict ?? { certificate: 'unproven', risk: 'doubt', reason, openRanges: 1, evidence: [] };
}

export async function loadCertificates(db: Queryable, advertiserId: bigint | null): Promise<ExportedCertificate[]> {
  return await db.query<ExportedCertificate>(
    `SELECT low, high, certificate, risk, reason, sweep_id AS "sweepId", as_of AS "startedAt",
       complete_through AS "completeThrough", encode(evidence_hash, 'hex') AS last
     FROM intake.coverage WHERE advertiser_id = $1 AND axis = 'id' ORDER BY low`,
    [advertiserId],
  );
}

/** In one snapshot: the certificates, and what was asked for them. */
export async function loadCurrentProof(db: Database, advertiserId: bigint | null): Promise<CurrentProof> {
  return await db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const verdict = await loadVerdict(tx, advertiserId);
    const certificates = await loadCertificates(tx, advertiserId);
    // Line 0 opens a chain, one line per question follows, the witnesses last; then the line of the end, and what came afterwards. A chain of
    // a large account has hundreds of thousands of lines, so only its last ones are looked at.
    const asked = await tx.query<Asked & { readonly sweepId: bigint }>(
      `SELECT sweep_id AS "sweepId", requests AS questions,
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

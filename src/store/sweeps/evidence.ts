// The table of evidence: the records of a proof, committed in the transaction of their page. Erasing a person removes their leaves.
// domain/evidence decides what a record contains; this file stores, loads and prunes records.
import { hash } from 'node:crypto';
import type { ChainEnd, ChainedRecord } from '../../domain/evidence/chain.ts';
import { decodeLeaves, encodeLeaves, encodeRecord } from '../../domain/evidence/codec.ts';
import { findKept } from '../../domain/evidence/kept.ts';
import type { LastHash } from '../../domain/evidence/record.ts';
import { eraseLeaves, type Hash, isErased, type Leaves } from '../../domain/evidence/tree.ts';
import type { Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';

const sha256: Hash = (bytes) => hash('sha256', bytes, 'buffer');

/** The proof of a sweep so far: the end of its chain, and the key of its body digests unless an erasure has deleted it. */
export interface StoredProof {
  readonly end: ChainEnd;
  readonly bodyKey: Uint8Array | null;
}

/** Appends records to the chain of a sweep. The leaves of erased applications are written as erased. */
export async function saveEvidence(
  tx: Queryable,
  advertiserId: bigint,
  sweepId: bigint,
  records: readonly ChainedRecord[],
  erased: ReadonlySet<bigint>,
): Promise<void> {
  const stored = records.map(({ leaves }) => toStored(eraseLeaves(sha256, leaves, erased) ?? leaves));
  await tx.query(
    `INSERT INTO intake.evidence (advertiser_id, sweep_id, n, record, leaves, lowest_id, highest_id, hash)
     SELECT $1, $2, r.* FROM unnest($3::int[], $4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[], $8::bytea[]) AS r`,
    [
      advertiserId,
      sweepId,
      records.map(({ n }) => n),
      records.map(({ record }) => Buffer.from(encodeRecord(record))),
      stored.map((one) => one.leaves),
      stored.map((one) => one.lowest),
      stored.map((one) => one.highest),
      records.map((one) => Buffer.from(one.hash)),
    ],
  );
}

/** Leaves as columns of a row. */
function toStored(leaves: Leaves) {
  const encoded = encodeLeaves(leaves);
  const ids = leaves.entries.flatMap((entry) => (isErased(entry) ? [] : [entry.id]));
  return {
    leaves: encoded && Buffer.from(encoded),
    lowest: ids.length === 0 ? null : ids.reduce((low, id) => (id < low ? id : low)),
    highest: ids.length === 0 ? null : ids.reduce((high, id) => (id > high ? id : high)),
  };
}

/** Which of these applications are erased. The caller holds the lane lock, so no erasure runs at the same time. */
export async function findErasedRows(tx: Queryable, advertiserId: bigint, ids: readonly bigint[]): Promise<bigint[]> {
  const rows = await tx.query<Columns<'applications', 'application_id'>>(
    `SELECT application_id FROM intake.applications
     WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) AND erased_at IS NOT NULL`,
    [advertiserId, ids],
  );
  return rows.map((row) => row.application_id);
}

/**
 * Removes applications from the evidence and deletes the body digest keys of the affected sweeps: with such a key, a guess at the erased
 * part of a page could be tested. The roots and the chain stay as they are. The caller holds the live side of the lane lock, and every
 * writer of evidence holds one of its sides, so the rows need no lock of their own.
 */
export async function eraseEvidence(tx: Queryable, advertiserId: bigint, ids: readonly bigint[]): Promise<void> {
  if (ids.length === 0) return;
  const erased = new Set(ids);
  const rows = await tx.query<Columns<'evidence', 'sweep_id' | 'n' | 'leaves'>>(
    `SELECT sweep_id, n, leaves FROM intake.evidence e WHERE advertiser_id = $1
       AND EXISTS (SELECT 1 FROM unnest($2::bigint[]) AS id WHERE id BETWEEN e.lowest_id AND e.highest_id)`,
    [advertiserId, ids],
  );
  const changed = rows.flatMap(({ sweep_id, n, leaves }) => {
    const left = eraseLeaves(sha256, decodeLeaves(leaves), erased);
    return left === null ? [] : [{ sweepId: sweep_id, n, ...toStored(left) }];
  });
  if (changed.length === 0) return;
  await tx.query(
    `UPDATE intake.evidence e SET leaves = c.leaves, lowest_id = c.lowest, highest_id = c.highest
     FROM unnest($2::bigint[], $3::int[], $4::bytea[], $5::bigint[], $6::bigint[]) AS c (sweep_id, n, leaves, lowest, highest)
     WHERE e.advertiser_id = $1 AND e.sweep_id = c.sweep_id AND e.n = c.n`,
    [
      advertiserId,
      changed.map((one) => one.sweepId),
      changed.map((one) => one.n),
      changed.map((one) => one.leaves),
      changed.map((one) => one.lowest),
      changed.map((one) => one.highest),
    ],
  );
  await deleteBodyKeys(tx, advertiserId, [...new Set(changed.map((one) => one.sweepId))]);
}

export async function deleteBodyKeys(tx: Queryable, advertiserId: bigint, sweepIds: readonly bigint[]): Promise<void> {
  await tx.query(
    `UPDATE intake.sweeps SET body_key = NULL
     WHERE advertiser_id = $1 AND sweep_id = ANY ($2::bigint[]) AND body_key IS NOT NULL`,
    [advertiserId, sweepIds],
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

/** The proof of a sweep so far; null where it has none. */
export async function loadProof(db: Queryable, advertiserId: bigint, sweepId: bigint): Promise<StoredProof | null> {
  const [row] = await db.query<Columns<'evidence', 'n' | 'hash'> & Columns<'sweeps', 'body_key'>>(
    `SELECT e.n, e.hash, s.body_key FROM intake.evidence e JOIN intake.sweeps s USING (advertiser_id, sweep_id)
     WHERE e.advertiser_id = $1 AND e.sweep_id = $2 ORDER BY e.n DESC LIMIT 1`,
    [advertiserId, sweepId],
  );
  return row ? { end: { n: row.n, hash: row.hash }, bodyKey: row.body_key } : null;
}

/** The proof of an ended sweep, with the number of audits since. */
export interface AuditedProof extends StoredProof {
  readonly sweepId: bigint;
  readonly audits: number;
}

/** The proof that an audit at this id extends; null where the id is not covered or its evidence was not kept. */
export async function loadAuditedProof(
  db: Queryable,
  advertiserId: bigint,
  id: bigint | null,
): Promise<AuditedProof | null> {
  const [row] = await db.query<Columns<'coverage', 'sweep_id'> & Columns<'sweeps', 'requests'>>(
    `SELECT k.sweep_id, s.requests FROM intake.coverage k JOIN intake.sweeps s USING (advertiser_id, sweep_id)
     WHERE k.advertiser_id = $1 AND k.axis = 'id' AND k.evidence_hash IS NOT NULL
       AND ($2::bigint IS NULL OR k.low <= $2) AND (k.high IS NULL OR k.high >= $2) ORDER BY k.low DESC LIMIT 1`,
    [advertiserId, id],
  );
  const proof = row && (await loadProof(db, advertiserId, row.sweep_id));
  // Record 0 opens the chain, one record per request of the sweep follows, then the record of its end; the rest are audits.
  return proof ? { ...proof, sweepId: row.sweep_id, audits: proof.end.n - row.requests - 1 } : null;
}

/**
 * False where the proof that an audit extends was pruned since it was loaded, because two later sweeps have ended. The audit's record alone
 * would be a chain without a beginning.
 */
export async function isChainKept(
  tx: Queryable,
  advertiserId: bigint,
  { sweepId, record }: { readonly sweepId: bigint; readonly record: ChainedRecord },
): Promise<boolean> {
  const rows = await tx.query(`SELECT 1 FROM intake.evidence WHERE advertiser_id = $1 AND sweep_id = $2 AND n = $3`, [
    advertiserId,
    sweepId,
    record.n - 1,
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

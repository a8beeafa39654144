// Loads the evidence of an advertiser in one snapshot: certificates, the records behind them, and the stored ids.
import type { ChainedRecord } from '../../domain/evidence/chain.ts';
import { decodeLeaves, decodeRecord } from '../../domain/evidence/codec.ts';
import type { ExportedCertificate, ExportedRow } from '../../domain/evidence/export.ts';
import type { EvidenceRecord } from '../../domain/evidence/record.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { loadCertificates } from './sweeps.ts';

/** The records of one sweep. */
export interface StoredEvidence {
  readonly sweepId: bigint;
  readonly bodyKey: Uint8Array | null;
  readonly records: readonly ChainedRecord[];
}

/** Everything that an exported proof contains. */
export interface StoredProofs {
  readonly at: Date;
  readonly certificates: readonly ExportedCertificate[];
  readonly sweeps: readonly StoredEvidence[];
  /** In the order of ids, in batches: there may be millions. */
  readonly rows: AsyncIterable<readonly ExportedRow[]>;
}

/** Rows in one batch. */
export const rowsAtATime = 1_000;

/** Runs `work` on one snapshot: a sweep that ends meanwhile, or an erasure, shows in all parts of it or in none. */
export async function withProofs<T>(
  db: Database,
  advertiserId: bigint,
  work: (proofs: StoredProofs) => Promise<T>,
): Promise<T> {
  return await db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const [now] = await tx.query<{ at: Date }>('SELECT now() AS at');
    return await work({
      at: now?.at ?? new Date(),
      certificates: await loadCertificates(tx, advertiserId),
      sweeps: await loadSweeps(tx, advertiserId),
      rows: loadRows(tx, advertiserId),
    });
  });
}

async function loadSweeps(tx: Queryable, advertiserId: bigint): Promise<StoredEvidence[]> {
  const rows = await tx.query<
    Columns<'evidence', 'sweep_id' | 'n' | 'record' | 'leaves' | 'hash'> & Columns<'sweeps', 'body_key'>
  >(
    `SELECT e.sweep_id, e.n, e.record, e.leaves, e.hash, s.body_key
     FROM intake.evidence e JOIN intake.sweeps s USING (advertiser_id, sweep_id)
     WHERE e.advertiser_id = $1 ORDER BY e.sweep_id, e.n`,
    [advertiserId],
  );
  return [...Map.groupBy(rows, (row) => row.sweep_id)].map(([sweepId, own]) => ({
    sweepId,
    bodyKey: own[0]?.body_key ?? null,
    records: own.map(({ n, record, leaves, hash }) => ({
      n,
      record: decodeRecord(record),
      leaves: decodeLeaves(leaves),
      hash,
    })),
  }));
}

async function* loadRows(tx: Queryable, advertiserId: bigint): AsyncGenerator<ExportedRow[]> {
  for (let after: bigint | null = null; ; ) {
    const rows: ExportedRow[] = await tx.query<{ id: bigint; firstSeen: bigint | null; missingSince: bigint | null }>(
      `SELECT application_id AS id, CASE WHEN erased_at IS NULL THEN floor(extract(epoch FROM first_seen_at))::bigint END AS "firstSeen",
         floor(extract(epoch FROM missing_since))::bigint AS "missingSince"
       FROM intake.applications WHERE advertiser_id = $1 AND ($2::bigint IS NULL OR application_id > $2)
       ORDER BY application_id LIMIT ${rowsAtATime}`,
      [advertiserId, after],
    );
    if (rows.length > 0) yield rows;
    after = rows.at(-1)?.id ?? null;
    if (rows.length < rowsAtATime) return;
  }
}

/** The records of one sweep, without their leaves. */
export async function loadRecords(db: Queryable, advertiserId: bigint, sweepId: bigint): Promise<EvidenceRecord[]> {
  const rows = await db.query<Columns<'evidence', 'record'>>(
    `SELECT record FROM intake.evidence WHERE advertiser_id = $1 AND sweep_id = $2 ORDER BY n`,
    [advertiserId, sweepId],
  );
  return rows.map(({ record }) => decodeRecord(record));
}

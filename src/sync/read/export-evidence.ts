// Exports the evidence behind certificates as lines of a file that others can check, and explains it to an operator.
import { type Explanation, explain } from '../../domain/evidence/explain.ts';
import { toProofLine, toRecordLine, toRowsLine } from '../../domain/evidence/export.ts';
import type { Store } from '../../store/store.ts';
import type { StoredProofs } from '../../store/sweeps/export-evidence.ts';
import { sha256 } from './record-evidence.ts';

/** The lines of a proof (docs/proof-format.md). */
export async function* toProofLines(advertiserId: bigint, proofs: StoredProofs): AsyncGenerator<string> {
  yield toProofLine(advertiserId, proofs.at, proofs.certificates);
  for (const { records, bodyKey } of proofs.sweeps) {
    for (const record of records) yield toRecordLine(sha256, record, bodyKey);
  }
  for await (const rows of proofs.rows) yield toRowsLine(rows);
}

/** What the certificates of an advertiser state about a moment, and on what they rest. */
export async function explainProof(
  store: Pick<Store, 'coverage' | 'evidence'>,
  advertiserId: bigint,
  at: Date | null,
): Promise<Explanation> {
  const certificates = await store.evidence.loadCertificates(advertiserId);
  const records = new Map<bigint, Awaited<ReturnType<typeof store.evidence.loadRecords>>>();
  for (const { sweepId } of certificates) {
    if (!records.has(sweepId)) records.set(sweepId, await store.evidence.loadRecords(advertiserId, sweepId));
  }
  const { length: openRanges } = await store.coverage.loadOpenRanges(advertiserId);
  return explain(at, certificates, openRanges, (sweepId) => records.get(sweepId) ?? []);
}

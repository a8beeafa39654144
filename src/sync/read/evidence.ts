// The evidence of sweeps: chains its lines, exports them as a file that others can check, and explains them to an operator.
import { hash } from 'node:crypto';
import { type Explanation, explain } from '../../domain/evidence/explain.ts';
import { toProofLine, toRowsLine } from '../../domain/evidence/export.ts';
import { type ChainEnd, chain, type Line, type LineBody, parseAnswers } from '../../domain/evidence/record.ts';
import type { Store } from '../../store/store.ts';
import type { StoredProofs } from '../../store/sweeps/export-evidence.ts';

/** Appends lines to the chain of a sweep; `end` null begins one. The store commits them with the page. */
export function chainLines(end: ChainEnd | null, bodies: readonly LineBody[]): Line[] {
  return chain((text) => hash('sha256', text, 'buffer'), end, bodies);
}

/** The lines of a proof (docs/proof-format.md). */
export async function* toProofLines(advertiserId: bigint, proofs: StoredProofs): AsyncGenerator<string> {
  yield toProofLine(advertiserId, proofs.at, proofs.certificates);
  for await (const lines of proofs.lines) yield* lines;
  for await (const rows of proofs.rows) yield toRowsLine(rows);
}

/** What the certificates of an advertiser state about a moment, and on what they rest. */
export async function explainProof(
  store: Pick<Store, 'coverage' | 'evidence'>,
  advertiserId: bigint,
  at: Date | null,
): Promise<Explanation> {
  const certificates = await store.evidence.loadCertificates(advertiserId);
  const sweepIds = [...new Set(certificates.map(({ sweepId }) => sweepId))];
  const lines = await store.evidence.loadLines(advertiserId, sweepIds);
  const { length: openRanges } = await store.coverage.loadOpenRanges(advertiserId);
  return explain(at, certificates, openRanges, (sweepId) => parseAnswers(lines.get(sweepId) ?? []));
}

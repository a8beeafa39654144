// The evidence of sweeps: chains its lines, and exports them as a file that others can check.
import { hash } from 'node:crypto';
import { toProofLine, toRowsLine } from '../../domain/evidence/export.ts';
import { type ChainEnd, chain, type Line, type LineBody } from '../../domain/evidence/record.ts';
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

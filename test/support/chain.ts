// Chains lines of evidence as docs/proof-format.md says, without the product's statement.
import { hash } from 'node:crypto';
import type { LineBody } from '../../src/domain/evidence/record.ts';

/** A line in its chain. */
export interface Line {
  readonly n: number;
  readonly text: string;
  readonly hash: string;
}

export const sha256 = (text: string) => hash('sha256', text, 'hex');

/** Appends lines to a chain; `end` null begins one. */
export function chain(end: Line | null, bodies: readonly LineBody[]): Line[] {
  const lines: Line[] = [];
  for (const body of bodies) {
    const last = lines.at(-1) ?? end;
    const n = (last?.n ?? -1) + 1;
    const text = JSON.stringify({ n, before: last?.hash ?? '0'.repeat(64), ...body });
    lines.push({ n, text, hash: sha256(text) });
  }
  return lines;
}

// Chains the lines of a proof with SHA-256. domain/evidence decides what a line holds; the store commits them with their page.
import { hash } from 'node:crypto';
import { type ChainEnd, chain, type Line, type LineBody } from '../../domain/evidence/record.ts';

/** Appends lines to a proof; `end` null begins one. */
export function chainLines(end: ChainEnd | null, bodies: readonly LineBody[]): Line[] {
  return chain((text) => hash('sha256', text, 'buffer'), end, bodies);
}

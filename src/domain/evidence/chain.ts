// The chain of a sweep's records: each is hashed together with the hash of the one before, so none can be changed, removed, added or moved
// without every later hash being another.

import { canonical, type EvidenceRecord, type Leaf, seal } from './record.ts';
import { createLeaves, type Hash, join, type Leaves, rootOf } from './tree.ts';

/** The end of a chain so far. */
export interface ChainEnd {
  readonly n: number;
  readonly hash: Uint8Array;
}

/** A record with its place in the chain. */
export interface ChainedRecord extends ChainEnd {
  readonly record: EvidenceRecord;
  readonly leaves: Leaves;
}

const start: ChainEnd = { n: -1, hash: new Uint8Array(32) };
const noLeaves: Leaves = { entries: [], seeds: [] };
const utf8 = new TextEncoder();

/** The record that follows on the end of a chain; null begins one. */
export function chain(
  hash: Hash,
  end: ChainEnd | null,
  record: EvidenceRecord,
  leaves: Leaves = noLeaves,
): ChainedRecord {
  const before = end ?? start;
  const n = before.n + 1;
  return { n, record, leaves, hash: hashRecord(hash, before.hash, record, n, leaves) };
}

function hashRecord(hash: Hash, before: Uint8Array, record: EvidenceRecord, n: number, leaves: Leaves): Uint8Array {
  return hash(join([before, utf8.encode(canonical(seal(record, n, rootOf(hash, leaves))))]));
}

/** The same for an answer, whose leaves get their salts from `seed`. */
export function chainAnswer(
  hash: Hash,
  end: ChainEnd | null,
  { record, leaves }: { readonly record: EvidenceRecord; readonly leaves: readonly Leaf[] },
  seed: Uint8Array,
): ChainedRecord {
  return chain(hash, end, record, createLeaves(leaves, seed));
}

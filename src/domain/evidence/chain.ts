// The hash chain of a sweep's records. Each record is hashed together with the hash of the record before it, so changing, removing, adding
// or moving a record changes every later hash.

import { canonical, type EvidenceRecord, type Leaf, seal } from './record.ts';
import { createLeaves, type Hash, type Leaves, rootOf } from './tree.ts';

/** The last record of a chain so far, by its number and hash. */
export interface ChainEnd {
  readonly n: number;
  readonly hash: Uint8Array;
}

/** A record with its number and hash in the chain. */
export interface ChainedRecord extends ChainEnd {
  readonly record: EvidenceRecord;
  readonly leaves: Leaves;
}

const start: ChainEnd = { n: -1, hash: new Uint8Array(32) };
const noLeaves: Leaves = { entries: [], seeds: [] };
const utf8 = new TextEncoder();

/** Appends a record to a chain; `end` null begins one. */
export function chain(
  hash: Hash,
  end: ChainEnd | null,
  record: EvidenceRecord,
  leaves: Leaves = noLeaves,
): ChainedRecord {
  const before = end ?? start;
  const n = before.n + 1;
  const sealed = utf8.encode(canonical(seal(record, n, rootOf(hash, leaves))));
  return { n, record, leaves, hash: hash(join(before.hash, sealed)) };
}

function join(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

/** Appends an answer to a chain. Its leaves get their salts from `seed`. */
export function chainAnswer(
  hash: Hash,
  end: ChainEnd | null,
  { record, leaves }: { readonly record: EvidenceRecord; readonly leaves: readonly Leaf[] },
  seed: Uint8Array,
): ChainedRecord {
  return chain(hash, end, record, createLeaves(leaves, seed));
}

// The applications of a record as salted leaves of a hash tree. A leaf can be erased: its hash stays, so the root stays the same, and its
// salt can no longer be computed. The salts of a record derive from one seed through a tree of their own. Erasing a leaf replaces that seed
// by the seeds beside the path to the leaf, which takes a few bytes instead of a salt for every row.

import type { Leaf } from './record.ts';

/** SHA-256, passed in because the domain imports no packages. */
export type Hash = (bytes: Uint8Array) => Uint8Array;

/** The seed for the salts of all leaves below a node of a binary tree. Level 0 is the root, `index` counts from the left. */
export interface Seed {
  readonly level: number;
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** The leaves of a record: a leaf, or the hash of one that was erased. */
export interface Leaves {
  readonly entries: readonly (Leaf | Uint8Array)[];
  readonly seeds: readonly Seed[];
}

/** Bytes of a salt and of a seed. */
export const saltBytes = 16;
/** Length of the digest of an answer's body. */
export const digestBytes = 16;

/** Leaves whose salts come from one random seed. */
export function createLeaves(entries: readonly Leaf[], seed: Uint8Array): Leaves {
  return { entries, seeds: entries.length === 0 ? [] : [{ level: 0, index: 0, bytes: seed }] };
}

export function isErased(entry: Leaf | Uint8Array): entry is Uint8Array {
  return entry instanceof Uint8Array;
}

/** The root of the tree; null without leaves. Neighbours are joined from the left; an odd last node moves up unchanged. */
export function rootOf(hash: Hash, leaves: Leaves): Uint8Array | null {
  const salts = saltsOf(hash, leaves);
  let level = leaves.entries.map((entry, index) => (isErased(entry) ? entry : hashLeaf(hash, entry, salts[index])));
  while (level.length > 1) {
    const above: Uint8Array[] = [];
    for (let at = 0; at < level.length; at += 2) {
      const [left, right] = [level[at] as Uint8Array, level[at + 1]];
      above.push(right === undefined ? left : hashParent(hash, left, right));
    }
    level = above;
  }
  return level[0] ?? null;
}

/** The first byte of the hashed bytes, which separates leaves, parents and seeds. */
const kinds = { leaf: 0, parent: 1, seed: 2 } as const;
export const hashBytes = 32;
const utf8 = new TextEncoder();
/** Reused for every hash: allocating a buffer each time took a quarter of the time (13 us per row, now 10, measured on a busy machine). */
const scratch = new Uint8Array(128);
const seedPart = scratch.subarray(0, 1 + saltBytes);
const parentPart = scratch.subarray(0, 1 + 2 * hashBytes);
const textPart = scratch.subarray(1 + saltBytes);

function hashParent(hash: Hash, left: Uint8Array, right: Uint8Array): Uint8Array {
  scratch[0] = kinds.parent;
  scratch.set(left, 1);
  scratch.set(right, 1 + hashBytes);
  return hash(parentPart);
}

function hashLeaf(hash: Hash, { id, at, mark }: Leaf, salt: Uint8Array | undefined): Uint8Array {
  if (salt === undefined) throw new Error('A leaf that was not erased has no salt.');
  scratch[0] = kinds.leaf;
  scratch.set(salt, 1);
  const { written } = utf8.encodeInto(`${id} ${at ?? '-'} ${mark}`, textPart);
  return hash(scratch.subarray(0, 1 + saltBytes + written));
}

/** The salt of each leaf, by its index; undefined where it was erased. */
export function saltsOf(hash: Hash, { entries, seeds }: Leaves): (Uint8Array | undefined)[] {
  const salts: (Uint8Array | undefined)[] = new Array(entries.length).fill(undefined);
  const depth = depthOf(entries.length);
  const descend = (level: number, index: number, bytes: Uint8Array) => {
    if (index * 2 ** (depth - level) >= entries.length) return;
    if (level === depth) {
      salts[index] = bytes;
      return;
    }
    const [left, right] = children(hash, bytes);
    descend(level + 1, index * 2, left);
    descend(level + 1, index * 2 + 1, right);
  };
  for (const { level, index, bytes } of seeds) descend(level, index, bytes);
  return salts;
}

function depthOf(count: number): number {
  return count <= 1 ? 0 : Math.ceil(Math.log2(count));
}

function children(hash: Hash, seed: Uint8Array): [left: Uint8Array, right: Uint8Array] {
  scratch[0] = kinds.seed;
  scratch.set(seed, 1);
  const both = hash(seedPart);
  return [both.subarray(0, saltBytes), both.subarray(saltBytes, 2 * saltBytes)];
}

/** The leaves with these applications erased; null when none of them is among the leaves. */
export function eraseLeaves(hash: Hash, leaves: Leaves, ids: ReadonlySet<bigint>): Leaves | null {
  const places = leaves.entries.flatMap((entry, at) => (!isErased(entry) && ids.has(entry.id) ? [at] : []));
  if (places.length === 0) return null;
  const salts = saltsOf(hash, leaves);
  const entries = [...leaves.entries];
  let { seeds } = leaves;
  for (const at of places) {
    entries[at] = hashLeaf(hash, leaves.entries[at] as Leaf, salts[at]);
    seeds = withoutSalt(hash, seeds, entries.length, at);
  }
  return { entries, seeds };
}

/** Seeds for every salt but one: the seed above that salt is replaced by the seeds beside the path down to it. */
function withoutSalt(hash: Hash, seeds: readonly Seed[], count: number, place: number): Seed[] {
  const depth = depthOf(count);
  return seeds.flatMap((seed) => {
    if (place >> (depth - seed.level) !== seed.index) return [seed];
    const beside: Seed[] = [];
    let { bytes } = seed;
    for (let level = seed.level + 1; level <= depth; level++) {
      const index = place >> (depth - level);
      const [left, right] = children(hash, bytes);
      const isLeft = index % 2 === 0;
      const other = isLeft ? index + 1 : index - 1;
      if (other * 2 ** (depth - level) < count) beside.push({ level, index: other, bytes: isLeft ? right : left });
      bytes = isLeft ? left : right;
    }
    return beside;
  });
}

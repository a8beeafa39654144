// One owner for every blob store: takes a store at its first use, refuses one that belongs to another database, and moves the ownership on
// an operator's word. Every delete is preceded by a look at the store's identity, every put by one that is at most ten seconds old.
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { BlobStore } from '../../domain/blob.ts';
import {
  explainRefusal,
  isOwnStore,
  parseIdentity,
  type RecordedStore,
  renderIdentity,
  toNextOwner,
} from '../../domain/store-owner.ts';
import { Trouble, WrongStore } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';

export interface OwnerDeps {
  readonly store: { readonly blobStore: Store['blobStore'] };
  readonly blobs: BlobStore;
}

/**
 * Checks that this database owns the store. Takes a store that has no owner: at the first use, or if an earlier release, which named no
 * owner, has recorded it here. A database that has a store takes no other one: an unmounted folder must not be taken for a new store.
 */
export async function ensureOwned(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  const { store, blobs } = deps;
  for (;;) {
    signal.throwIfAborted();
    const recorded = await store.blobStore.ensure();
    const identity = await blobs.loadIdentity(signal);
    if (identity !== null && identity === recorded.nextIdentity) {
      return await store.blobStore.confirm(identity, blobs.location);
    }
    if (!isOwnStore(recorded, identity)) {
      // Another process of this database may have taken the store between the two looks.
      if (!isDeepStrictEqual(recorded, await store.blobStore.ensure())) continue;
      throw toRefusal(blobs, recorded, identity);
    }
    if (parseIdentity(identity) !== null || (await take(deps, recorded, identity, recorded.nextIdentity, signal)))
      return;
  }
}

/** Makes this database the owner in place of any other, and raises the epoch: the former owner, also a copy of this database, refuses. */
export async function adoptStore(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const recorded = await deps.store.blobStore.ensure();
    const identity = await deps.blobs.loadIdentity(signal);
    // A copy of this database may have the recorded plan as well.
    if (await take(deps, recorded, identity, null, signal)) return;
  }
}

/** What this database has recorded, and whom the store names. Changes nothing. */
export async function loadOwner({ store, blobs }: OwnerDeps, signal: AbortSignal) {
  const recorded = await store.blobStore.load();
  const identity = await blobs.loadIdentity(signal);
  const owner = parseIdentity(identity);
  return { recorded, identity, owner, isOwn: owner !== null && isOwnStore(recorded, identity) };
}

/** Checks that this database owns the store, and takes none: for a process whose role may not change the record of it. */
export async function requireOwned(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  const { recorded, identity, isOwn } = await loadOwner(deps, signal);
  if (!isOwn) throw toRefusal(deps.blobs, recorded, identity);
}

/** Checks that the store holds the files of this database. A former owner may still read. */
export async function requireOnceOwned(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  const { recorded, identity } = await loadOwner(deps, signal);
  const isFormer = identity !== null && recorded?.location === deps.blobs.location;
  if (!isOwnStore(recorded, identity) && !isFormer) throw toRefusal(deps.blobs, recorded, identity);
}

/** False if another process has written meanwhile; the caller looks again. */
async function take(
  { store, blobs }: OwnerDeps,
  recorded: RecordedStore,
  identity: string | null,
  planned: string | null,
  signal: AbortSignal,
): Promise<boolean> {
  let next = planned;
  // A plan of another process of this database serves as well. An older one, of a process that died, may be behind the store.
  if (next === null || (parseIdentity(next)?.epoch ?? 0) <= (parseIdentity(identity)?.epoch ?? 0)) {
    next = renderIdentity(toNextOwner(recorded, identity), randomUUID());
    if (!(await store.blobStore.plan(recorded.nextIdentity, next))) return false;
  }
  if (!(await blobs.replaceIdentity(identity, next, signal))) return false;
  await store.blobStore.confirm(next, blobs.location);
  return true;
}

/** A store without an owner is not a wrong one: a worker takes it. */
function toRefusal({ location }: BlobStore, recorded: RecordedStore | null, identity: string | null): Trouble {
  const happened = explainRefusal(location, recorded, identity);
  return isOwnStore(recorded, identity) ? new Trouble('local', happened, { at: 'storage' }) : new WrongStore(happened);
}

/** How old the look at the identity may be when a put begins. A former owner may begin puts for this long after an adoption. */
const putAgeMs = 10_000;

/** Wraps the store: a put, a delete, and a look that finds no object run `check`, and fail if the store belongs to another database. */
export function guardStore(
  { store, blobs }: OwnerDeps,
  { check = ensureOwned, now = () => performance.now() } = {},
): BlobStore {
  let freshUntil = Number.NEGATIVE_INFINITY;
  const checkOwner = async (signal: AbortSignal) => {
    const startedAt = now();
    freshUntil = Number.NEGATIVE_INFINITY;
    await check({ store, blobs }, signal);
    freshUntil = startedAt + putAgeMs;
  };
  return {
    ...blobs,
    async put(key, body, facts, signal) {
      if (now() > freshUntil) await checkOwner(signal);
      return await blobs.put(key, body, facts, signal);
    },
    async verify(key, facts, proof, signal) {
      const condition = await blobs.verify(key, facts, proof, signal);
      // Another store, such as the empty folder where a mount was, has no such object either: that is no loss.
      if (condition === 'missing') await checkOwner(signal);
      return condition;
    },
    async *get(key, signal) {
      try {
        yield* blobs.get(key, signal);
      } catch (error) {
        if (error instanceof Trouble && error.kind === 'missing') await checkOwner(signal);
        throw error;
      }
    },
    async delete(keys, signal) {
      await checkOwner(signal);
      return await blobs.delete(keys, signal);
    },
  };
}

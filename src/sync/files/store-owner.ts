// One owner for every blob store: takes a store at its first use, refuses one that belongs to another database, and moves the ownership on
// an operator's word. Every delete is preceded by a look at the store's identity, every put by one that is at most ten seconds old.
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type BlobStore, toSha256 } from '../../domain/blob.ts';
import {
  explainRefusal,
  isConfirmed,
  isOwnStore,
  parseIdentity,
  type RecordedStore,
  renderIdentity,
  toNextOwner,
} from '../../domain/store-owner.ts';
import { isMissing, Trouble, WrongStore } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';

export interface OwnerDeps {
  readonly store: Pick<Store, 'blobStore'>;
  readonly blobs: BlobStore;
}

/**
 * Checks that this database owns the store. Takes a store that has no owner: an empty one at the first use, or one that an earlier release,
 * which named no owner, has recorded here. A database that has a store takes no other one: an unmounted folder is not a new store.
 */
export async function ensureOwned(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  const { store, blobs } = deps;
  for (;;) {
    signal.throwIfAborted();
    const recorded = await store.blobStore.ensureRecordedStore();
    const { identity, refusal } = await look(blobs, recorded, signal);
    if (refusal !== null) {
      // Another process of this database may have taken the store between the two looks.
      if (!isDeepStrictEqual(recorded, await store.blobStore.ensureRecordedStore())) continue;
      throw refusal;
    }
    if (isConfirmed(recorded, identity) || (await take(deps, recorded, identity, signal)) !== null) return;
  }
}

/** Makes this database the owner, in a new epoch. A planned identity is written first; a copy may have it, so a new one follows. */
export async function adoptStore(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const recorded = await deps.store.blobStore.ensureRecordedStore();
    const identity = await deps.blobs.loadIdentity(signal);
    const taken = await take(deps, recorded, identity, signal);
    if (taken !== null && taken !== recorded.nextIdentity) return;
  }
}

/** What this database has recorded, whom the store names, and why it is refused. Changes nothing. */
export async function loadOwner({ store, blobs }: OwnerDeps, signal: AbortSignal) {
  const recorded = await store.blobStore.loadRecordedStore();
  return { recorded, ...(await look(blobs, recorded, signal)) };
}

/** `refusal` is null where the store belongs to this database, or to none. Files without an owner are those of a lost identity. */
async function look(blobs: BlobStore, recorded: RecordedStore | null, signal: AbortSignal) {
  const identity = await blobs.loadIdentity(signal);
  const isRefused = !isOwnStore(recorded, identity) || (identity === null && (await holdsFiles(blobs, signal)));
  const refusal = isRefused
    ? new WrongStore('local', explainRefusal(blobs.location, recorded, identity), { at: 'storage' })
    : null;
  return { identity, owner: parseIdentity(identity), refusal };
}

async function holdsFiles(blobs: BlobStore, signal: AbortSignal): Promise<boolean> {
  for await (const { key } of blobs.list('', signal)) if (toSha256(key) !== null) return true;
  return false;
}

/** Checks that this database owns the store, and takes none: for a process whose role may not change the record of it. */
export async function requireOwned(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  const { owner, refusal } = await loadOwner(deps, signal);
  if (refusal !== null) throw refusal;
  const unowned = `${deps.blobs.location} has no owner yet: a worker takes it at its first start.`;
  if (owner === null) throw new Trouble('local', unowned, { at: 'storage' });
}

/** Checks that the store holds the files of this database. A former owner may still read. */
export async function requireOnceOwned(deps: OwnerDeps, signal: AbortSignal): Promise<void> {
  const { recorded, identity, refusal } = await loadOwner(deps, signal);
  const isFormer = identity !== null && recorded?.location === deps.blobs.location;
  if (refusal !== null && !isFormer) throw refusal;
}

/** Writes the planned identity, or a new one. Returns it; null if another process has written meanwhile, and the caller looks again. */
async function take(
  { store, blobs }: OwnerDeps,
  recorded: RecordedStore,
  identity: string | null,
  signal: AbortSignal,
): Promise<string | null> {
  let next = recorded.nextIdentity;
  const planned = parseIdentity(next);
  // A plan is replaced where the store has passed its epoch, since its process can no longer write it; and in a copy of its database.
  const isPassed = next !== identity && (planned?.epoch ?? 0) <= (parseIdentity(identity)?.epoch ?? 0);
  if (next === null || isPassed || planned?.databaseId !== recorded.databaseId) {
    next = renderIdentity(toNextOwner(recorded, identity), randomUUID());
    if (!(await store.blobStore.planIdentity(recorded.nextIdentity, next))) return null;
  }
  if (next !== identity && !(await blobs.replaceIdentity(identity, next, signal))) return null;
  await store.blobStore.confirmIdentity(next, blobs.location);
  return next;
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
      const look = async () => (now() > freshUntil ? await checkOwner(signal) : undefined);
      await look();
      return await blobs.put(key, body, facts, signal, look);
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
        if (isMissing(error)) await checkOwner(signal);
        throw error;
      }
    },
    async delete(key, signal) {
      await checkOwner(signal);
      return await blobs.delete(key, signal);
    },
  };
}

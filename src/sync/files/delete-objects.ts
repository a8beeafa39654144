// Deletes objects from the blob store: infected ones, orphans, and those of erased persons. The store's rows say what may be deleted and
// keep equal bytes from being put meanwhile (store/files/delete-blobs.ts); the network is asked between two transactions, never inside one.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore, Deleted } from '../../domain/blob.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Deletion } from '../../store/files/delete-blobs.ts';
import type { Store } from '../../store/store.ts';

export interface DeletingDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions'>;
  readonly blobs: BlobStore;
  /** Told when objects are deleted and their rows are not. */
  readonly onDeleted?: (() => void) | undefined;
  /** The process's own clock, in milliseconds; `performance.now` unless told otherwise. */
  readonly now?: (() => number) | undefined;
}

/**
 * A delete that takes longer is given up: its token still holds for a while, and the next run deletes again. Counted from before the token
 * was asked for, so that a process that stood still in between does not send a delete at all: the same bytes may be there again by then.
 */
const longestDeleteMs = 20_000;
const retryMs = 1_000;

/** Deletes infected bytes of every advertiser, and finishes deletes that were interrupted. Returns how many. */
export async function deleteInfected(deps: DeletingDeps, signal: AbortSignal): Promise<number> {
  return await deleteAll(deps, () => deps.store.deletions.beginInfected(), signal);
}

/** Deletes what nothing has referred to for the grace. Returns how many. */
export async function deleteOrphans(
  deps: DeletingDeps,
  request: { readonly advertiserId: bigint; readonly graceMs: number; readonly signal: AbortSignal },
): Promise<number> {
  const { advertiserId, graceMs, signal } = request;
  return await deleteAll(deps, () => deps.store.deletions.beginOrphans(advertiserId, graceMs), signal);
}

/** What became of bytes that were to go. */
export interface Dropped {
  /** Hashes of those that others still need. */
  readonly needed: readonly string[];
  /** Versions of objects that the blob store keeps. */
  readonly keptVersions: number;
}

/** Deletes bytes at once that nobody refers to and nobody is about to put. What the store refuses keeps no other bytes: it is thrown last. */
export async function deleteUnneeded(
  deps: DeletingDeps,
  advertiserId: bigint,
  hashes: readonly string[],
  signal: AbortSignal,
): Promise<Dropped> {
  const needed: string[] = [];
  let keptVersions = 0;
  let trouble: Trouble | undefined;
  for (let left = hashes; left.length > 0; ) {
    const giveUpAt = toGiveUpAt(deps);
    const begun = await deps.store.deletions.beginDrop(advertiserId, left.slice(0, 100));
    const deleted = await deleteObjects(deps, begun.deletion, giveUpAt, signal);
    keptVersions += deleted.keptVersions;
    trouble ??= deleted.refused[0]?.trouble;
    needed.push(...begun.needed);
    left = [...left.slice(100), ...begun.busy];
    // Another run deletes it at this moment, or died doing so. What was put after its delete has to go as well.
    if (begun.busy.length > 0) await sleep(retryMs, undefined, { signal });
  }
  if (trouble) throw trouble;
  return { needed, keptVersions };
}

/** What the store refuses keeps its token for a while, so that `begin` gives the others first; it is thrown last. */
async function deleteAll(deps: DeletingDeps, begin: () => Promise<Deletion>, signal: AbortSignal): Promise<number> {
  let deleted = 0;
  let trouble: Trouble | undefined;
  for (;;) {
    signal.throwIfAborted();
    const giveUpAt = toGiveUpAt(deps);
    const deletion = await begin();
    if (deletion.blobs.length === 0) break;
    const { refused } = await deleteObjects(deps, deletion, giveUpAt, signal);
    trouble ??= refused[0]?.trouble;
    deleted += deletion.blobs.length - refused.length;
  }
  if (trouble) throw trouble;
  return deleted;
}

function toGiveUpAt({ now = () => performance.now() }: DeletingDeps): number {
  return now() + longestDeleteMs;
}

async function deleteObjects(
  deps: DeletingDeps,
  deletion: Deletion,
  giveUpAt: number,
  signal: AbortSignal,
): Promise<Deleted> {
  const { store, blobs } = deps;
  if (deletion.blobs.length === 0) return { keptVersions: 0, refused: [] };
  const keys = deletion.blobs.map(({ key }) => key);
  const deleted = await deleteInTime(deps, keys, giveUpAt, signal);
  deps.onDeleted?.();
  const refused = new Set(deleted.refused.map(({ key }) => key));
  const gone = { ...deletion, blobs: deletion.blobs.filter(({ key }) => !refused.has(key)) };
  for (const blob of await store.deletions.confirm(gone)) {
    // It was taken over while this process stood still: the same bytes may have been put again, and then deleted by this run.
    const condition = await blobs.verify(blob.key, blob, 'record', signal);
    if (condition === 'missing') await store.blobs.markDamaged(blob.advertiserId, blob.sha256);
  }
  return deleted;
}

/**
 * A store that refuses the request is asked again while there is time; single objects that it refuses are left to the next run. One that
 * does not answer is not asked again: its delete may still be carried out, and a second one that succeeds would free the token before it
 * is. The token lapses, and the next run deletes.
 */
async function deleteInTime(
  { blobs, now = () => performance.now() }: DeletingDeps,
  keys: readonly string[],
  giveUpAt: number,
  signal: AbortSignal,
): Promise<Deleted> {
  const leftMs = giveUpAt - now();
  if (leftMs <= 0) throw toTooSlow(blobs, keys);
  const limit = AbortSignal.timeout(Math.ceil(leftMs));
  const either = AbortSignal.any([signal, limit]);
  let refusal: Trouble | null = null;
  for (;;) {
    try {
      return await blobs.delete(keys, either);
    } catch (error) {
      signal.throwIfAborted();
      // The time may be over while it is asked again: what it answered before is the cause.
      if (limit.aborted && refusal !== null) throw refusal;
      if (limit.aborted && !(error instanceof Trouble)) throw toTooSlow(blobs, keys, error);
      if (!(error instanceof Trouble) || error.status === undefined || limit.aborted) throw error;
      refusal = error;
      await sleep(retryMs, undefined, { signal: either }).catch(() => {});
    }
  }
}

function toTooSlow({ location }: BlobStore, keys: readonly string[], cause?: unknown): Trouble {
  const took = `within ${longestDeleteMs / 1_000} s`;
  const message = `${location} did not delete ${keys.length} objects ${took}. The next run deletes them.`;
  return new Trouble('local', message, { at: 'storage', cause });
}

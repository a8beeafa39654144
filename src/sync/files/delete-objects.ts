// Deletes objects from the blob store: infected ones, orphans, and those of erased persons. Rows in the database decide what may be deleted
// and prevent a put of equal bytes meanwhile (store/files/delete-blobs.ts). Requests to the blob store happen between two transactions,
// never inside one.
import { setTimeout as sleep } from 'node:timers/promises';
import { type BlobStore, countKept, type DeleteResult } from '../../domain/blob.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { BegunDelete } from '../../store/files/delete-blobs.ts';
import type { Store } from '../../store/store.ts';

export interface DeletingDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions'>;
  readonly blobs: BlobStore;
  /** Called after the objects are deleted and before their rows are updated. */
  readonly onDeleted?: (() => void) | undefined;
  /** A monotonic clock, in milliseconds; `performance.now` by default. */
  readonly now?: (() => number) | undefined;
}

/**
 * Time limit of a delete. After it the delete is abandoned; its token holds for a while longer, and the next run deletes again. The time
 * counts from before the token is requested. A process that was suspended in between therefore sends no delete at all: by then the same
 * bytes may have been put again.
 */
const longestDeleteMs = 20_000;
/** As many as are deleted in that time, also where a request is slow and an object has versions. */
const mostAtOnce = 10;
const retryMs = 1_000;

/**
 * Deletes infected bytes and orphans of every advertiser, and finishes interrupted deletes. Returns the number of deleted objects. Refused
 * objects keep their token for a while, so the others come first; the first refusal is thrown at the end.
 */
export async function deleteDue(deps: DeletingDeps, signal: AbortSignal): Promise<number> {
  let deleted = 0;
  let trouble: Trouble | undefined;
  for (;;) {
    signal.throwIfAborted();
    const giveUpAt = toGiveUpAt(deps);
    const deletion = await deps.store.deletions.beginDueDeletes(mostAtOnce);
    if (deletion.blobs.length === 0) break;
    const { refused } = await deleteObjects(deps, deletion, giveUpAt, signal);
    trouble ??= refused[0]?.trouble;
    deleted += deletion.blobs.length - refused.length;
  }
  if (trouble) throw trouble;
  return deleted;
}

/**
 * Deletes bytes immediately if no file refers to them and no download is about to put them. If the blob store refuses some objects, the
 * others are still deleted; the first refusal is thrown at the end. Returns how many of them are still needed, and how many versions the
 * blob store keeps in spite of the delete.
 */
export async function deleteUnneeded(
  deps: DeletingDeps,
  advertiserId: bigint,
  hashes: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly needed: number; readonly keptVersions: number }> {
  let needed = 0;
  let keptVersions = 0;
  let trouble: Trouble | undefined;
  for (let left = hashes; left.length > 0; ) {
    const giveUpAt = toGiveUpAt(deps);
    const begun = await deps.store.deletions.beginDrop(advertiserId, left.slice(0, mostAtOnce));
    const deleted = await deleteObjects(deps, begun.deletion, giveUpAt, signal);
    keptVersions += countKept(deleted);
    trouble ??= deleted.refused[0]?.trouble;
    needed += begun.needed;
    left = [...left.slice(mostAtOnce), ...begun.busy];
    // Another run is deleting these objects, or died while doing so. Bytes that were put after its delete must be deleted too.
    if (begun.busy.length > 0) await sleep(retryMs, undefined, { signal });
  }
  if (trouble) throw trouble;
  return { needed, keptVersions };
}

function toGiveUpAt({ now = () => performance.now() }: DeletingDeps): number {
  return now() + longestDeleteMs;
}

async function deleteObjects(
  deps: DeletingDeps,
  deletion: BegunDelete,
  giveUpAt: number,
  signal: AbortSignal,
): Promise<DeleteResult> {
  const { store, blobs } = deps;
  if (deletion.blobs.length === 0) return { kept: [], refused: [] };
  const keys = deletion.blobs.map(({ key }) => key);
  const deleted = await deleteInTime(deps, keys, giveUpAt, signal);
  deps.onDeleted?.();
  const refused = new Set(deleted.refused.map(({ key }) => key));
  const gone = { ...deletion, blobs: deletion.blobs.filter(({ key }) => !refused.has(key)) };
  for (const blob of await store.deletions.confirm(gone, deleted.kept)) {
    // Another run took over while this process was suspended: the same bytes may have been put again and then deleted by this run.
    const condition = await blobs.verify(blob.key, blob, 'metadata', signal);
    if (condition === 'missing') await store.blobs.markDamaged(blob.advertiserId, blob.sha256);
  }
  return deleted;
}

/**
 * If the blob store refuses the whole request, it is repeated until the time limit; single refused objects are left to the next run.
 * A request without an answer is not repeated. The store may still carry it out, and a second delete that succeeds would release the token
 * before that. Instead the token expires, and the next run deletes.
 */
async function deleteInTime(
  { blobs, now = () => performance.now() }: DeletingDeps,
  keys: readonly string[],
  giveUpAt: number,
  signal: AbortSignal,
): Promise<DeleteResult> {
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
      // The time limit may end a repeated request; the earlier refusal is then the cause to report.
      if (limit.aborted) throw refusal ?? (error instanceof Trouble ? error : toTooSlow(blobs, keys, error));
      if (!(error instanceof Trouble) || error.status === undefined) throw error;
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

// Reads stored bytes and proves them on the way, for a resume, a screen or an export.
import { createHash } from 'node:crypto';
import { type BlobFacts, type BlobStore, toBlobKey } from '../domain/blob.ts';
import { Trouble } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';

export interface StoredBytesDeps {
  readonly store: { readonly blobs: Pick<Store['blobs'], 'markSuspect'> };
  readonly blobs: BlobStore;
}

/**
 * The bytes of a stored file. Begins with an empty chunk once the object is open. Each chunk is held back until the next has come, the last
 * until all are proven: who has the last byte takes the file for whole. If they are not there or are others, that is a Trouble (`isLost`),
 * and the next verify reads them first.
 */
export async function* readStored(
  { store, blobs }: StoredBytesDeps,
  advertiserId: bigint,
  { sha256, sizeBytes }: BlobFacts,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let held: Uint8Array = new Uint8Array();
  let left = sizeBytes;
  try {
    for await (const chunk of blobs.get(toBlobKey(advertiserId, sha256), signal)) {
      left -= chunk.length;
      if (left < 0) break;
      yield held;
      hash.update(chunk);
      held = chunk;
    }
    if (left < 0 || hash.digest('hex') !== sha256) throw new Trouble('mismatch', 'The stored bytes are damaged.');
  } catch (error) {
    if (isLost(error)) await store.blobs.markSuspect(advertiserId, sha256);
    throw error;
  }
  yield held;
}

/** True of a failure to read stored bytes that concerns these alone: they are missing or damaged. */
export function isLost(error: unknown): boolean {
  return error instanceof Trouble && (error.kind === 'missing' || error.kind === 'mismatch');
}

// Deletes the bytes of condemned blobs. The row was condemned first, so nobody puts them again unnoticed; a crash before the last
// step deletes once more, which harms nothing.
import type { BlobStore } from '../domain/blob.ts';
import type { Store } from '../store/store.ts';

/** Empties what is condemned; returns how many. */
export async function emptyCondemned(
  { store, blobs }: { readonly store: Store; readonly blobs: BlobStore },
  advertisers: readonly bigint[],
  signal: AbortSignal,
): Promise<number> {
  for (let emptied = 0; ; ) {
    const condemned = await store.loadCondemned(advertisers);
    if (condemned.length === 0) return emptied;
    await blobs.delete(
      condemned.map((blob) => blob.key),
      signal,
    );
    await store.markEmptied(condemned);
    emptied += condemned.length;
  }
}

// Room on the disks that downloads go through: nothing is claimed that they could not take.
import { type BlobStore, hasRoom } from '../../domain/blob.ts';
import { Trouble } from '../../domain/trouble.ts';

/** Throws while the blobs' or the spool's disk could not take what is ahead, if every file were as large as it may be. */
export async function requireRoom(
  { blobs, loadSpoolBytes }: { readonly blobs: BlobStore; readonly loadSpoolBytes: () => Promise<number | null> },
  aheadBytes: number,
): Promise<void> {
  for (const free of [await blobs.freeBytes(), await loadSpoolBytes()]) {
    if (hasRoom(free, aheadBytes)) continue;
    throw new Trouble('local', 'The disk is nearly full: no file is fetched until there is room.', { at: 'storage' });
  }
}

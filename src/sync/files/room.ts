// Checks the free space of the disks that downloads use, so that no download is claimed that would not fit.
import { type BlobStore, hasRoom } from '../../domain/blob.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Spool } from './spool.ts';

/** Throws while the disk of the blobs or of the spool has no room for `aheadBytes`: all files ahead, each of the largest allowed size. */
export async function requireRoom(
  {
    blobs,
    spool,
    loadSpoolBytes,
  }: {
    readonly blobs: BlobStore;
    readonly spool: Pick<Spool, 'folder'>;
    readonly loadSpoolBytes: () => Promise<number | null>;
  },
  aheadBytes: number,
): Promise<void> {
  const disks: readonly (readonly [name: string, freeBytes: number | null])[] = [
    [blobs.location, await blobs.freeBytes()],
    [`the spool ${spool.folder} (TMPDIR)`, await loadSpoolBytes()],
  ];
  for (const [name, freeBytes] of disks) {
    if (hasRoom(freeBytes, aheadBytes)) continue;
    const happened = `The disk of ${name} is nearly full: no file is fetched until there is room.`;
    throw new Trouble('local', happened, { at: 'storage' });
  }
}

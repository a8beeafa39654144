// Puts new blobs into a folder until it is killed; sends `begun` to its parent after the first one.

import { hash, randomBytes } from 'node:crypto';
import { openDiskBlobs } from '../../../src/blobs/disk.ts';
import { toBlobKey } from '../../../src/domain/blob.ts';

const [, , folder = '', size = ''] = process.argv;
const store = await openDiskBlobs(folder);
const putOne = async () => {
  const bytes = randomBytes(Number(size));
  const sha256 = hash('sha256', bytes);
  await store.put(toBlobKey(1n, sha256), bytes, { sizeBytes: bytes.length, sha256 }, new AbortController().signal);
};
await putOne();
process.send?.('begun');
await Promise.all(
  Array.from({ length: 4 }, async () => {
    for (;;) await putOne();
  }),
);

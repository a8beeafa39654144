// Opens the configured blob store and the spool. The HTTP clients of source and webhooks are not imported here: they take 10 MB, and an
// extract, an erasure or a verification does not need them.
import { tmpdir } from 'node:os';
import { loadFreeBytes, openDiskBlobs } from '../blobs/disk.ts';
import type { Config } from '../config.ts';
import type { BlobStore, Spool } from '../domain/blob.ts';
import type { Store } from '../store/store.ts';
import { openSpool } from '../sync/files/spool.ts';
import { ensureOwned, guardStore, requireOnceOwned, requireOwned } from '../sync/files/store-owner.ts';

/**
 * What is checked when a blob store is opened, by its use: `own` takes a store that has no owner; `add` and `read` do not, and a former owner
 * may read; `erase` checks nothing, because what cannot be deleted there must not keep the rows from being erased.
 */
const checks = { own: ensureOwned, add: requireOwned, read: requireOnceOwned, erase: async () => {} };
export type BlobsUse = keyof typeof checks;

/** Opens the configured blob store. Its puts and deletes check again that this database owns it. */
export async function openBlobsOf(
  config: Config<'blobs'>,
  store: Store,
  signal: AbortSignal,
  use: BlobsUse = 'own',
): Promise<BlobStore> {
  await using stack = new AsyncDisposableStack();
  const blobs = stack.use(await openConfiguredBlobs(config));
  await checks[use]({ store, blobs }, signal);
  stack.move();
  return guardStore({ store, blobs }, { check: use === 'add' ? requireOwned : ensureOwned });
}

/** Opens the configured blob store without checking that it belongs to this database; for health checks and for an adoption. */
export async function openConfiguredBlobs({ blobs }: Config<'blobs'>): Promise<BlobStore> {
  const place = blobs.BLOBS_URL;
  if (place.kind === 'disk') return await openDiskBlobs(place.path);
  // The SDK is large, so it is loaded only when needed.
  const { openS3Blobs } = await import('../blobs/s3.ts');
  return openS3Blobs({
    ...place,
    endpoint: blobs.S3_ENDPOINT ?? undefined,
    region: blobs.S3_REGION ?? undefined,
    forcePathStyle: blobs.S3_FORCE_PATH_STYLE,
    checksums: checksums[blobs.S3_CHECKSUMS],
    sse: blobs.S3_SSE === 'off' ? undefined : blobs.S3_SSE,
    connections: blobs.SOURCE_CONCURRENCY,
    timeoutMs: blobs.SOURCE_TIMEOUT,
  });
}

const checksums = { required: 'WHEN_REQUIRED', supported: 'WHEN_SUPPORTED', off: 'OFF' } as const;

export function openSpoolOf(): Spool {
  return openSpool(tmpdir(), () => loadFreeBytes(tmpdir()));
}

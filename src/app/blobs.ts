// The blob store that the configuration names.
import { openDiskBlobs } from '../blobs/disk.ts';
import type { Config } from '../config.ts';
import type { BlobStore } from '../domain/blob.ts';

/** Opens a folder or a bucket. The S3 client is loaded only where there is one: it takes a while. */
export async function openBlobs({ blobs }: Config<'blobs'>): Promise<BlobStore> {
  const { place, s3 } = blobs;
  if (place.kind === 'disk') return await openDiskBlobs(place.path);
  const { openS3Blobs } = await import('../blobs/s3.ts');
  return openS3Blobs({
    bucket: place.bucket,
    prefix: place.prefix,
    endpoint: s3.endpoint ?? undefined,
    region: s3.region ?? undefined,
    forcePathStyle: s3.forcePathStyle,
    checksums: s3.checksums === 'required' ? 'WHEN_REQUIRED' : 'WHEN_SUPPORTED',
    sse: s3.sse === 'off' ? undefined : s3.sse,
    connections: 16,
    timeoutMs: 30_000,
  });
}

// The stores that the contract tests run on: a folder, the strict S3, SeaweedFS in a container where Docker answers, and the real store
// that S3_TEST_ENDPOINT names. The tests of an unavailable store are reported as skipped, with the reason.

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, DeleteObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { vi } from 'vitest';
import { openDiskBlobs } from '../../../src/blobs/disk.ts';
import { openS3Blobs, type S3Settings } from '../../../src/blobs/s3.ts';
import { type BlobFacts, type BlobFile, type BlobStore, identityName } from '../../../src/domain/blob.ts';
import { guardStore, type OwnerDeps } from '../../../src/sync/files/store-owner.ts';
import { dockerAnswers } from '../database/test-server.ts';
import { openSeaweed, type Seaweed, seaweedImage, seaweedKeys } from './seaweed-container.ts';
import { openStrictS3, type StrictS3, type StrictS3Options } from './strict-s3.ts';

/** A place in which a test can open any number of stores; disposing deletes everything in it. */
export interface BlobPlace extends AsyncDisposable {
  open(): Promise<BlobStore>;
}

/** How to open one kind of place, or why it is not available. */
export interface BlobPlaceChoice {
  readonly name: string;
  readonly absent?: string;
  readonly open: () => Promise<BlobPlace>;
}

/** The file at this path as a body. */
export function toFileBody(path: string): BlobFile {
  return {
    async read(into, at) {
      await using file = await open(path);
      return (await file.read(into, 0, into.length, at)).bytesRead;
    },
  };
}

/** All kinds of places, including the unavailable ones. */
export async function loadBlobPlaces(): Promise<BlobPlaceChoice[]> {
  const endpoint = process.env.S3_TEST_ENDPOINT;
  const docker = await dockerAnswers(process.env.DOCKER_HOST);
  return [
    { name: 'a folder', open: openFolder },
    { name: 'the strict S3', open: () => openStrictPlace() },
    { name: 'a strict S3 that keeps no sums', open: () => openStrictPlace({ checksums: 'forgotten' }) },
    { name: 'a strict S3 without If-None-Match', open: () => openStrictPlace({ conditionalPut: 'unsupported' }) },
    docker
      ? await openContainerChoice()
      : {
          name: 'SeaweedFS',
          absent: 'SeaweedFS needs Docker; with Docker: npm test -- test/contract/blobs.test.ts',
          open: openNothing,
        },
    endpoint
      ? { name: toRealName(process.env.S3_TEST_CONDITIONAL_PUT), open: () => openRealPlace(endpoint) }
      : {
          name: 'a real store',
          absent: 'no real store; S3_TEST_ENDPOINT=https://.. npm test -- test/contract/blobs.test.ts',
          open: openNothing,
        },
  ];
}

/** The contract tests tell by the name that a store ignores If-None-Match and overwrites. */
function toRealName(conditionalPut: string | undefined): string {
  return `S3_TEST_ENDPOINT${conditionalPut === 'ignored' ? ' without If-None-Match' : ''}`;
}

/** Random bytes with their facts. */
export function createBytes(sizeBytes: number): { bytes: Buffer; facts: BlobFacts } {
  const bytes = randomBytes(sizeBytes);
  return { bytes, facts: toFacts(bytes) };
}

/** The size and sha256 of bytes. */
export function toFacts(bytes: Uint8Array): BlobFacts {
  return { sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** Creates a temporary folder; disposing removes it. */
export async function openScratch(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'intake-blobs-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Settings for a client of the strict S3. Puts the credentials into the environment, where the SDK reads them. */
export function toSettings(s3: StrictS3, settings: Partial<S3Settings> = {}): S3Settings {
  stubCredentials(s3.credentials);
  const { bucket, endpoint, region } = s3;
  return { bucket, endpoint, region, ...fixed, ...settings };
}

async function openFolder(): Promise<BlobPlace> {
  const scratch = await openScratch();
  return {
    open: () => openDiskBlobs(join(scratch.path, 'blobs')),
    [Symbol.asyncDispose]: scratch[Symbol.asyncDispose],
  };
}

async function openStrictPlace(options: StrictS3Options = {}): Promise<BlobPlace> {
  const s3 = await openStrictS3({ pageSize: 7, ...options });
  return {
    open: async () => openS3Blobs(toSettings(s3)),
    async [Symbol.asyncDispose]() {
      vi.unstubAllEnvs();
      await s3[Symbol.asyncDispose]();
    },
  };
}

async function openRealPlace(endpoint: string): Promise<BlobPlace> {
  const bucket = process.env.S3_TEST_BUCKET ?? 'intake-test';
  const region = process.env.S3_TEST_REGION ?? 'us-east-1';
  const prefix = `intake-test/${randomUUID()}`;
  const open = async () => openS3Blobs({ ...fixed, bucket, region, prefix, endpoint, timeoutMs: 60_000 });
  return {
    open,
    async [Symbol.asyncDispose]() {
      await using store = await open();
      const signal = AbortSignal.timeout(600_000);
      for await (const { key } of store.list('', signal)) await store.delete(key, signal);
      // `list` does not return the identity object; without this delete every run would leave one in the bucket.
      const client = new S3Client({ endpoint, region, forcePathStyle: true });
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: `${prefix}/${identityName}` }));
      client.destroy();
    },
  };
}

/** Starts the container while vitest collects the file, because only a start shows whether the image is available. */
async function openContainerChoice(): Promise<BlobPlaceChoice> {
  try {
    const seaweed = await openSeaweed();
    return { name: `a container of ${seaweedImage}`, open: () => openSeaweedPlace(seaweed) };
  } catch (error) {
    return {
      name: 'SeaweedFS',
      absent: `Docker could not start ${seaweedImage}: ${(error as Error).message}`,
      open: openNothing,
    };
  }
}

async function openSeaweedPlace(seaweed: Seaweed): Promise<BlobPlace> {
  stubCredentials(seaweedKeys);
  const settings = {
    ...fixed,
    bucket: 'intake-test',
    endpoint: seaweed.endpoint,
    region: 'us-east-1',
    timeoutMs: 60_000,
  };
  const client = new S3Client({ endpoint: settings.endpoint, region: settings.region, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: settings.bucket }));
  client.destroy();
  return {
    open: async () => openS3Blobs(settings),
    async [Symbol.asyncDispose]() {
      vi.unstubAllEnvs();
      await seaweed[Symbol.asyncDispose]();
    },
  };
}

const fixed = {
  prefix: 'intake',
  forcePathStyle: true,
  checksums: 'WHEN_REQUIRED',
  connections: 8,
  timeoutMs: 60_000,
} as const;

function stubCredentials({ accessKeyId, secretAccessKey }: { accessKeyId: string; secretAccessKey: string }): void {
  vi.stubEnv('AWS_ACCESS_KEY_ID', accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretAccessKey);
  for (const name of ['AWS_SESSION_TOKEN', 'AWS_PROFILE', 'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3'])
    vi.stubEnv(name, undefined);
}

function openNothing(): Promise<BlobPlace> {
  throw new Error('This store is not available.');
}

/** The store as a process uses it, without a database: an object is missing only where the store shows whose it is. */
export function guardByIdentity(blobs: BlobStore): BlobStore {
  const check = async (_: unknown, signal: AbortSignal) => void (await blobs.loadIdentity(signal));
  return guardStore({ blobs, store: {} as OwnerDeps['store'] }, { check });
}

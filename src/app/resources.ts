// Opens the configured resources beside the database: source, blob store and spool.
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadFreeBytes, openDiskBlobs } from '../blobs/disk.ts';
import type { Config } from '../config.ts';
import type { BlobStore } from '../domain/blob.ts';
import { createSource, type Source, type SourceOptions } from '../source/client.ts';
import type { Store } from '../store/store.ts';
import { openSpool, type Spool } from '../sync/files/spool.ts';
import { createRateLimiter, honourRetryAfter } from '../sync/rate-limiter.ts';

const root = join(import.meta.dirname, '../..');
export const version = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;

/** A larger list answer is abandoned and requested in smaller ranges, so that memory stays bounded whatever the source sends. */
const listMaxBytes = 3_000_000;
/** Far more than any expected application. A larger one is shown in the status and stays unread. */
const applicationMaxBytes = 64_000_000;
/** Time limit of one answer, even if bytes keep arriving. */
const totalTimeoutMs = 600_000;
/** Most bytes that all downloads together hold in memory; the rest goes to files of the spool. */
const spoolMemoryBytes = 64 * 1024 * 1024;

export type ConfiguredAdvertiser = Config<'source'>['source']['advertisers'][number];

/** The request of every command about accounts. */
export interface Chosen {
  /** Only this one of the configured advertisers; undefined is all. */
  readonly advertiser?: string | undefined;
  readonly signal: AbortSignal;
}

/** All configured accounts, or the named one. */
export function toChosen(config: Config<'source'>, name: string | undefined): readonly ConfiguredAdvertiser[] {
  const { advertisers } = config.source;
  return name === undefined ? advertisers : advertisers.filter((advertiser) => advertiser.name === name);
}

/** The known ids of all configured accounts, or of the named one. Throws if the configuration contradicts the database. */
export async function loadKnownIds(
  config: Config<'source'>,
  store: Store,
  name: string | undefined,
): Promise<bigint[]> {
  const ids: bigint[] = [];
  for (const account of toChosen(config, name)) {
    const { advertiserId } = await store.advertisers.lookUp(account.name, account.advertiserId);
    if (advertiserId !== null) ids.push(advertiserId);
  }
  return ids;
}

/** The client of one account for read-only commands. It records only the shared rate limit and Retry-After. */
export function openSourceToLook(config: Config<'source'>, store: Store | null, account: ConfiguredAdvertiser): Source {
  const { name, url } = account;
  // The rate limit is shared through the database. Without a database, the single request of a check is sent at once.
  if (store === null) return openSource(config, null, account, async () => {});
  const takeSlot = createRateLimiter(store, url, config.source.requestsPerSecond);
  const memory = { hasAnswered: () => store.advertisers.hasAnswered(name, url), noteAnswered: async () => {} };
  return openSource(config, store, account, takeSlot, { memory });
}

/** The client of one account; nothing is sent yet. */
export function openSource(
  config: Config<'source'>,
  store: Store | null,
  { name, url, credential }: ConfiguredAdvertiser,
  takeSlot: (signal: AbortSignal) => Promise<void>,
  more: Partial<Pick<SourceOptions, 'connections' | 'onListBytes' | 'memory'>> = {},
): Source {
  return createSource({
    url,
    credential: () => credential.current(),
    format: config.source.format,
    idleTimeoutMs: config.source.idleTimeoutMs,
    totalTimeoutMs,
    connections: config.source.concurrency,
    listMaxBytes,
    applicationMaxBytes,
    userAgent: `intake/${version}`,
    takeSlot,
    // Without a database, nothing is shared with other processes and nothing is recorded.
    ...(store !== null && {
      takeSlot: honourRetryAfter(store, name, takeSlot),
      // If this fails, the process still honours the Retry-After, and the other workers receive their own from the source.
      onRetryAfter: (retryAfterMs) => store.advertisers.noteRetryAfter(name, retryAfterMs).catch(() => {}),
      memory: {
        hasAnswered: () => store.advertisers.hasAnswered(name, url),
        noteAnswered: () => store.advertisers.noteAnswered(name, url),
      },
    }),
    ...more,
  });
}

/** Opens the configured blob store and checks that it is the one that holds this database's blobs. */
export async function openBlobsOf(
  config: Config<'blobs' | 'source'>,
  store: Store,
  signal: AbortSignal,
): Promise<BlobStore> {
  const blobs = await openConfiguredBlobs(config);
  try {
    const pinned = await store.blobs.loadStore();
    // A new identity is written only if the database has no blob store yet: an unmounted folder must not be taken for a new store.
    const identity = pinned === null ? await blobs.openIdentity(signal) : await blobs.loadIdentity(signal);
    await store.blobs.pinStore(identity ?? 'none', blobs.location);
    return blobs;
  } catch (error) {
    await blobs[Symbol.asyncDispose]();
    throw error;
  }
}

/** Opens the configured blob store without checking that it belongs to this database; for health checks. */
export async function openConfiguredBlobs({
  blobs: { place, s3 },
  source,
}: Config<'blobs' | 'source'>): Promise<BlobStore> {
  if (place.kind === 'disk') return await openDiskBlobs(place.path);
  // The SDK is large, so it is loaded only when needed.
  const { openS3Blobs } = await import('../blobs/s3.ts');
  return openS3Blobs({
    ...place,
    endpoint: s3.endpoint ?? undefined,
    region: s3.region ?? undefined,
    forcePathStyle: s3.forcePathStyle,
    checksums: checksums[s3.checksums],
    sse: s3.sse === 'off' ? undefined : s3.sse,
    kmsKeyId: s3.kmsKeyId ?? undefined,
    connections: source.concurrency,
    timeoutMs: source.idleTimeoutMs,
  });
}

const checksums = { required: 'WHEN_REQUIRED', supported: 'WHEN_SUPPORTED', off: 'OFF' } as const;

/** The spool, where files wait on their way to the blob store. */
export async function openSpoolOf(): Promise<Spool & { loadBytes(): Promise<number> }> {
  // One folder per system user, because a folder of another user cannot be used. By number: in a container the user may have no name.
  const folder = join(tmpdir(), `intake-spool-${process.getuid?.() ?? 0}`);
  const spool = await openSpool(folder, spoolMemoryBytes);
  return { ...spool, loadBytes: () => loadFreeBytes(folder) };
}

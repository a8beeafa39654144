// Opens what a command needs from its configuration beside the database: source, blobs, spool. Each comes back disposable.
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadFreeBytes, openDiskBlobs } from '../blobs/disk.ts';
import type { Config } from '../config.ts';
import type { BlobStore } from '../domain/blob.ts';
import { Trouble } from '../domain/trouble.ts';
import { createSource, type Source, type SourceOptions } from '../source/client.ts';
import type { Store } from '../store/store.ts';
import type { KnownAdvertiser } from '../store/sweeps/advertisers.ts';
import { openSpool, type Spool } from '../sync/files/spool.ts';
import { honourRetryAfter } from '../sync/rate-limiter.ts';

const root = join(import.meta.dirname, '../..');
export const version = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;

/** Lists are abandoned beyond this and asked for in smaller ranges, so that memory stays bounded whatever the source sends. */
const listMaxBytes = 3_000_000;
/** One application is never expected to come near this; a larger one is named in the status and stays unread. */
const applicationMaxBytes = 64_000_000;
/** However steadily an answer drips, it ends after this. */
const totalTimeoutMs = 600_000;
/** What all downloads together hold in memory; the rest goes through the spool. */
const spoolMemoryBytes = 64 * 1024 * 1024;

export type ConfiguredAdvertiser = Config<'source'>['source']['advertisers'][number];

/** What every command about accounts is asked with. */
export interface Chosen {
  /** Of several configured advertisers only this one. */
  readonly advertiser?: string | undefined;
  readonly signal: AbortSignal;
}

/** The configured accounts, or the one that was named. */
export function toChosen(config: Config<'source'>, name: string | undefined): readonly ConfiguredAdvertiser[] {
  const { advertisers } = config.source;
  return name === undefined ? advertisers : advertisers.filter((advertiser) => advertiser.name === name);
}

/** The ids of the configured accounts, or of the one that was named, as far as they are known. Throws where one is configured wrongly. */
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

/** The client of one account for a look: it writes nothing but the shared request rate. */
export function openSourceToLook(
  config: Config<'source'>,
  store: Store | null,
  account: ConfiguredAdvertiser,
  takeSlot: (signal: AbortSignal) => Promise<void>,
): Source {
  const { name, url } = account;
  const memory = store && { hasAnswered: () => store.advertisers.hasAnswered(name, url), noteAnswered: async () => {} };
  return openSource(config, store, account, takeSlot, memory === null ? {} : { memory });
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
    // Without a database nothing is shared with other processes, and nothing remembered.
    ...(store !== null && {
      takeSlot: honourRetryAfter(store, name, takeSlot),
      // A worker that cannot tell the others still honours it, and they hear it from the source themselves.
      onRetryAfter: (retryAfterMs) => store.advertisers.noteRetryAfter(name, retryAfterMs).catch(() => {}),
      memory: {
        hasAnswered: () => store.advertisers.hasAnswered(name, url),
        noteAnswered: () => store.advertisers.noteAnswered(name, url),
      },
    }),
    ...more,
  });
}

/** The advertiser of an account; null where the configuration contradicts the database. */
export async function findConfigured(
  store: Store,
  { name, advertiserId }: ConfiguredAdvertiser,
): Promise<KnownAdvertiser | null> {
  try {
    return await store.advertisers.ensure(name, advertiserId);
  } catch (error) {
    if (error instanceof Trouble && error.kind === 'mismatch') return null;
    throw error;
  }
}

/** The blob store of the configuration, proven to be the one that this database's blobs lie in. */
export async function openBlobsOf(
  config: Config<'blobs' | 'source'>,
  store: Store,
  signal: AbortSignal,
): Promise<BlobStore> {
  const blobs = await openConfiguredBlobs(config);
  try {
    const pinned = await store.blobs.loadStore();
    // Only a database without a store marks one: an unmounted folder must not pass for a new store.
    const identity = pinned === null ? await blobs.openIdentity(signal) : await blobs.loadIdentity(signal);
    await store.blobs.pinStore(identity ?? 'none', blobs.location);
    return blobs;
  } catch (error) {
    await blobs[Symbol.asyncDispose]();
    throw error;
  }
}

/** The blob store of the configuration, whichever it is; for looking at. */
export async function openConfiguredBlobs({
  blobs: { place, s3 },
  source,
}: Config<'blobs' | 'source'>): Promise<BlobStore> {
  if (place.kind === 'disk') return await openDiskBlobs(place.path);
  // Loaded only where it is used: the SDK is large.
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

/** Where large files wait on their way to the store. */
export async function openSpoolOf(): Promise<Spool & { loadBytes(): Promise<number> }> {
  // One per account of the system: a folder that another user made would be closed to this one. By number: in a container it may have no name.
  const folder = join(tmpdir(), `intake-spool-${process.getuid?.() ?? 0}`);
  const spool = await openSpool(folder, spoolMemoryBytes);
  return { ...spool, loadBytes: () => loadFreeBytes(folder) };
}

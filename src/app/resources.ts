// Opens the configured resources beside the database: source, blob store, spool and the clients of webhooks.
import { tmpdir } from 'node:os';
import { loadFreeBytes, openDiskBlobs } from '../blobs/disk.ts';
import { type Config, toWebhookSecrets } from '../config.ts';
import type { BlobStore, Spool } from '../domain/blob.ts';
import { version } from '../domain/version.ts';
import { createSource, type Source, type SourceOptions } from '../source/client.ts';
import { type Connections, openConnections } from '../source/http.ts';
import type { Store } from '../store/store.ts';
import { openSpool } from '../sync/files/spool.ts';
import { ensureOwned, guardStore, requireOnceOwned, requireOwned } from '../sync/files/store-owner.ts';
import { createRateLimiter, honourRetryAfter } from '../sync/rate-limiter.ts';
import { openWebhookClient, type WebhookClient } from '../webhooks/send.ts';

/** A larger list answer is abandoned and requested in smaller ranges, so that memory stays bounded whatever the source sends. */
const listMaxBytes = 3_000_000;
/** Far more than any expected application. A larger one is shown in the status and stays unread: it would take twenty times its size. */
const applicationMaxBytes = 16_000_000;
/** Time limit of one answer, even if bytes keep arriving. */
export const totalTimeoutMs = 600_000;

export type ConfiguredAdvertiser = Config<'source'>['source']['advertisers'][number];

/** The client of one account for read-only commands. It records only the shared rate limit and Retry-After. */
export function openSourceToLook(
  config: Config<'source'>,
  store: Store | null,
  account: ConfiguredAdvertiser,
  connections: Connections,
): Source {
  const { name, url } = account;
  // The rate limit is shared through the database. Without a database, the single request of a check is sent at once.
  if (store === null) return openSource(config, null, account, async () => {}, { connections });
  const takeSlot = createRateLimiter(store, url, config.source.SOURCE_RATE);
  const memory = { hasAnswered: () => store.advertisers.hasAnswered(name, url), noteAnswered: async () => {} };
  return openSource(config, store, account, takeSlot, { connections, memory });
}

export function openConnectionsOf({ source }: Config<'source'>): Connections {
  return openConnections(source.SOURCE_CONCURRENCY, source.SOURCE_TIMEOUT);
}

export function openSource(
  config: Config<'source'>,
  store: Store | null,
  { name, url, credential }: ConfiguredAdvertiser,
  takeSlot: (signal: AbortSignal) => Promise<void>,
  more: Pick<SourceOptions, 'connections' | 'onListBytes' | 'memory'>,
): Source {
  return createSource({
    url,
    credential: () => credential.current(),
    format: config.source.SOURCE_FORMAT,
    totalTimeoutMs,
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
  const blobs = await openConfiguredBlobs(config);
  try {
    await checks[use]({ store, blobs }, signal);
    return guardStore({ store, blobs }, { check: use === 'add' ? requireOwned : ensureOwned });
  } catch (error) {
    await blobs[Symbol.asyncDispose]();
    throw error;
  }
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
    kmsKeyId: blobs.S3_KMS_KEY_ID ?? undefined,
    connections: blobs.SOURCE_CONCURRENCY,
    timeoutMs: blobs.SOURCE_TIMEOUT,
  });
}

const checksums = { required: 'WHEN_REQUIRED', supported: 'WHEN_SUPPORTED', off: 'OFF' } as const;

export function openSpoolOf(): Spool {
  return openSpool(tmpdir(), () => loadFreeBytes(tmpdir()));
}

export function openWebhook(
  { url, secret }: Config<'webhooks'>['webhooks']['endpoints'][number],
  { webhooks }: Config<'webhooks'>,
): WebhookClient {
  return openWebhookClient({
    url,
    secrets: () => toWebhookSecrets(secret),
    allowPrivate: webhooks.allowPrivate,
  });
}

/** A client per endpoint, so that none waits for another. */
export function openWebhooks(config: Config<'webhooks'>, stack: AsyncDisposableStack) {
  return config.webhooks.endpoints.map((endpoint) => ({ ...endpoint, ...stack.use(openWebhook(endpoint, config)) }));
}

// Opens the configured HTTP clients, those of the source and of webhooks, and downloads files with them.
import { type Config, toWebhookSecrets } from '../config.ts';
import { createSource, type Source } from '../source/client.ts';
import { openConnections } from '../source/http.ts';
import { describeFile } from '../source/parse/file-description.ts';
import { parseScreens } from '../source/parse/screen.ts';
import type { Store } from '../store/store.ts';
import {
  type DownloadAccount,
  type DownloadRunDeps,
  type DownloadSummary,
  type DownloadTotals,
  runDownloads,
} from '../sync/files/download-run.ts';
import { createRateLimiter, honourRetryAfter, type TakeSlot } from '../sync/limits.ts';
import { retry } from '../sync/retry.ts';
import { openWebhookClient, type WebhookClient } from '../webhooks/send.ts';
import { openBlobsOf, openSpoolOf } from './storage.ts';

/** A larger list answer is abandoned and requested in smaller ranges, so that memory stays bounded whatever the source sends. */
const listMaxBytes = 3_000_000;
/** Far more than any expected application. A larger one is shown in the status and stays unread: it would take twenty times its size. */
const applicationMaxBytes = 16_000_000;
/** Time limit of one answer, even if bytes keep arriving. */
export const totalTimeoutMs = 600_000;

type ConfiguredAdvertiser = Config<'source'>['source']['advertisers'][number];

/** How a task sees what its client does; `whileWaiting` gets each wait for a slot of the rate limit. */
interface SourceWatch {
  readonly onListBytes?: () => void;
  readonly whileWaiting?: (waiting: Promise<void>) => Promise<void>;
}

/**
 * Opens the clients of accounts, which share connections, and those with the same URL its rate limit. Without a database, nothing is shared
 * with other processes or recorded: the request of a check is sent at once. A look writes no row of an account but for its Retry-After.
 */
export function openSources(
  { source: { SOURCE_CONCURRENCY, SOURCE_TIMEOUT, SOURCE_RATE, SOURCE_FORMAT } }: Config<'source'>,
  store: Store | null,
  { requestsAtOnce = SOURCE_CONCURRENCY, isLook = false } = {},
) {
  const connections = openConnections(requestsAtOnce, SOURCE_TIMEOUT);
  const limiters = new Map<string, TakeSlot>();
  return {
    open({ name, url, credential }: ConfiguredAdvertiser, { onListBytes, whileWaiting }: SourceWatch = {}): Source {
      const limiter = limiters.get(url) ?? (store ? createRateLimiter(store, url, SOURCE_RATE) : async () => {});
      limiters.set(url, limiter);
      const takeSlot: TakeSlot = whileWaiting ? (signal) => whileWaiting(limiter(signal)) : limiter;
      return createSource({
        ...{ url, connections, onListBytes, takeSlot, totalTimeoutMs, listMaxBytes, applicationMaxBytes },
        credential: () => credential.current(),
        format: SOURCE_FORMAT,
        ...(store !== null && {
          takeSlot: honourRetryAfter(store, name, takeSlot),
          // If this fails, the process still honours the Retry-After, and the other workers receive their own from the source.
          onRetryAfter: (retryAfterMs) => store.advertisers.noteRetryAfter(name, retryAfterMs).catch(() => {}),
          memory: {
            hasAnswered: () => store.advertisers.hasAnswered(name, url),
            noteAnswered: async () => (isLook ? undefined : store.advertisers.noteAnswered(name, url)),
          },
        }),
      });
    },
    [Symbol.asyncDispose]: () => connections.destroy(),
  };
}

export function openWebhook(
  { url, secret }: Config<'webhooks'>['webhooks']['endpoints'][number],
  { webhooks }: Config<'webhooks'>,
): WebhookClient {
  return openWebhookClient({ url, secrets: () => toWebhookSecrets(secret), allowPrivate: webhooks.allowPrivate });
}

/** A client per endpoint, so that none waits for another. */
export function openWebhooks(config: Config<'webhooks'>, stack: AsyncDisposableStack) {
  return config.webhooks.endpoints.map((endpoint) => ({ ...endpoint, ...stack.use(openWebhook(endpoint, config)) }));
}

/** What a download run reports, and what is carried over to the next run. */
export interface FilesRequest
  extends Pick<DownloadRunDeps, 'memory' | 'onBytes' | 'onUnreachable' | 'onWait' | 'crashPoint'> {
  readonly retryForMs: number;
  readonly signal: AbortSignal;
  readonly onFiles?: ((totals: DownloadTotals, queued: number) => void) | undefined;
  readonly onStored?: (() => void) | undefined;
  /** Tells the watchdog that a wait for the blob store ends by itself: the store aborts a put that makes no progress. */
  readonly whileWaiting?: (<T>(waiting: Promise<T>) => Promise<T>) | undefined;
}

/** How long downloads in flight may take to finish after an interrupt. */
const graceMs = 5_000;

export async function downloadFiles(
  config: Config<'sync' | 'blobs'>,
  store: Store,
  accounts: readonly DownloadAccount[],
  request: FilesRequest,
): Promise<DownloadSummary> {
  const { retryForMs, signal, onFiles, onStored, whileWaiting = (waiting) => waiting, ...run } = request;
  const { ATTACHMENT_MAX_BYTES: maxBytes, LEASE: leaseMs, SOURCE_HASH: hash } = config.sync;
  await using blobs = await retry({ retryForMs, signal, onWait: run.onWait }, () =>
    whileWaiting(openBlobsOf(config, store, signal)),
  );
  await store.downloads.bringForward();
  const { waiting } = await store.downloads.loadWaiting(accounts.map((one) => one.advertiserId));
  let stored = 0;
  return await runDownloads(
    {
      ...{ ...run, store, accounts, spool: openSpoolOf(), describeFile, parseScreens },
      blobs: { ...blobs, put: (...args) => whileWaiting(blobs.put(...args)) },
      onStep(totals) {
        onFiles?.(totals, waiting);
        if (totals.stored > stored) onStored?.();
        stored = totals.stored;
      },
    },
    {
      ...{ concurrency: config.blobs.SOURCE_CONCURRENCY, leaseMs, maxBytes, hash },
      ...{ retryForMs, graceMs, signal },
    },
  );
}

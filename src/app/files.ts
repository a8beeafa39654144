// Composes a download run: opens the blob store and the spool.
import type { Config } from '../config.ts';
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
import { retry } from '../sync/retry.ts';
import { openBlobsOf, openSpoolOf } from './storage.ts';

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

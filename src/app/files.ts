// Composes a download run: opens the blob store and the spool, and reports a storage that is silent.
import type { Config } from '../config.ts';
import { Trouble } from '../domain/trouble.ts';
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
  extends Pick<DownloadRunDeps, 'memory' | 'onBytes' | 'onClaimed' | 'onUnreachable' | 'crashPoint'> {
  readonly retryForMs: number;
  readonly signal: AbortSignal;
  readonly onFiles?: ((totals: DownloadTotals, queued: number) => void) | undefined;
  readonly onStored?: (() => void) | undefined;
  /** A wait of 0: the request continues, but there has been no answer for a long time. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt?: number) => void) | undefined;
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
  const { onWait } = run;
  const address = describeStore(config);
  const watched = <T>(answer: Promise<T>, bytes: number) =>
    whileWaiting(watchSilence(answer, bytes, address, (trouble) => onWait?.(trouble, 0)));
  await using blobs = await retry({ retryForMs, signal, onWait }, () => watched(openBlobsOf(config, store, signal), 0));
  await store.downloads.bringForward();
  const { waiting } = await store.downloads.loadWaiting(accounts.map((one) => one.advertiserId));
  let stored = 0;
  return await runDownloads(
    {
      ...{ ...run, store, accounts, spool: openSpoolOf(), describeFile, parseScreens },
      blobs: { ...blobs, put: (...args) => watched(blobs.put(...args), args[2].sizeBytes) },
      onStep(totals) {
        onFiles?.(totals, waiting);
        if (totals.stored > stored) onStored?.();
        stored = totals.stored;
      },
    },
    {
      concurrency: config.blobs.SOURCE_CONCURRENCY,
      leaseMs: config.sync.LEASE,
      maxBytes: config.sync.ATTACHMENT_MAX_BYTES,
      hash: config.sync.SOURCE_HASH,
      retryForMs,
      graceMs,
      signal,
    },
  );
}

function describeStore({ blobs: { BLOBS_URL: place, S3_ENDPOINT } }: Config<'blobs'>): string {
  if (place.kind === 'disk') return place.path;
  return S3_ENDPOINT === null ? `s3://${place.bucket}` : new URL(S3_ENDPOINT).host;
}

/** A storage that takes longer than this, plus a second per megabyte, is reported as silent. Its client retries and gives up much later. */
const silentMs = 10_000;
const slowestBytesPerMs = 1_000;

async function watchSilence<T>(
  answer: Promise<T>,
  bytes: number,
  address: string,
  onSilent: (trouble: Trouble) => void,
): Promise<T> {
  const afterMs = silentMs + bytes / slowestBytesPerMs;
  const what = `The store at ${address} has not answered for ${Math.round(afterMs / 1_000)} s.`;
  const timer = setTimeout(() => onSilent(new Trouble('local', what, { at: 'storage' })), afterMs);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
  }
}

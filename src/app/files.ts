// Composes the commands about files: download queued files, verify stored ones, retry downloads, show the address of a file, and parse
// screens again. Opens their resources through resources.ts and makes no decisions.
import type { Config } from '../config.ts';
import type { BlobStore } from '../domain/blob.ts';
import type { StoreOwner } from '../domain/store-owner.ts';
import { Trouble } from '../domain/trouble.ts';
import { describeFile } from '../source/parse/file-description.ts';
import { parseScreens, screenParserVersion } from '../source/parse/screen.ts';
import type { Store } from '../store/store.ts';
import {
  type DownloadAccount,
  type DownloadRunDeps,
  type DownloadSummary,
  type DownloadTotals,
  runDownloads,
} from '../sync/files/download-run.ts';
import { type ReparseSummary, reparse } from '../sync/files/reparse.ts';
import { adoptStore, lookUpOwner } from '../sync/files/store-owner.ts';
import { type VerifySummary, verify } from '../sync/files/verify.ts';
import { retry } from '../sync/retry.ts';
import { openStoreOf } from './database.ts';
import { type Chosen, openBlobsOf, openBlobsToRead, openConfiguredBlobs, openKnown, openSpoolOf } from './resources.ts';

export type { VerifySummary } from '../sync/files/verify.ts';

export type FilesConfig = Config<'database' | 'source' | 'privacy' | 'blobs'>;

/** What a command's download run reports, and what is carried over to the next run. */
export interface FilesEvents
  extends Pick<DownloadRunDeps, 'memory' | 'onBytes' | 'onClaimed' | 'onUnreachable' | 'crashPoint'> {
  readonly onFiles?: ((totals: DownloadTotals, queued: number) => void) | undefined;
  readonly onStored?: (() => void) | undefined;
  /** A wait of 0: the request continues, but there has been no answer for a long time. */
  readonly onWait?: ((name: string, trouble: Trouble, waitMs: number, attempt?: number) => void) | undefined;
  /** Tells the watchdog that a wait for the blob store ends by itself: the store aborts a put that makes no progress. */
  readonly whileWaiting?: (<T>(waiting: Promise<T>) => Promise<T>) | undefined;
}

export interface FilesRequest extends FilesEvents {
  readonly retryForMs: number;
  readonly signal: AbortSignal;
}

/** How long downloads in flight may take to finish after an interrupt. */
const graceMs = 5_000;

/** Downloads the queued files of these accounts. */
export async function downloadFiles(
  config: FilesConfig & Config<'sync'>,
  store: Store,
  accounts: readonly DownloadAccount[],
  request: FilesRequest,
): Promise<DownloadSummary> {
  const { retryForMs, signal, onFiles, onStored, onWait, whileWaiting = (waiting) => waiting } = request;
  const { memory, onBytes, onClaimed, onUnreachable, crashPoint } = request;
  const tellWait = (trouble: Trouble, waitMs: number, attempt?: number) => onWait?.('files', trouble, waitMs, attempt);
  const address = describeStore(config);
  const watched = <T>(answer: Promise<T>, bytes: number) =>
    whileWaiting(watchSilence(answer, bytes, address, (trouble) => tellWait(trouble, 0)));
  await using blobs = await retry({ retryForMs, signal, onWait: tellWait }, () =>
    watched(openBlobsOf(config, store, signal), 0),
  );
  const spool = openSpoolOf();
  await store.downloads.bringForward();
  const { waiting } = await store.downloads.loadWaiting(accounts.map((one) => one.advertiserId));
  let stored = 0;
  return await runDownloads(
    {
      ...{ store, accounts, spool, describeFile, parseScreens },
      ...{ memory, onBytes, onClaimed, onUnreachable, crashPoint },
      blobs: { ...blobs, put: (...args) => watched(blobs.put(...args), args[2].sizeBytes) },
      loadSpoolBytes: spool.loadBytes,
      onStep(totals) {
        onFiles?.(totals, waiting);
        if (totals.stored > stored) onStored?.();
        stored = totals.stored;
      },
      onWait: tellWait,
    },
    {
      concurrency: config.source.concurrency,
      leaseMs: config.sync.leaseMs,
      maxBytes: config.sync.attachmentMaxBytes,
      hash: config.sync.sourceHash,
      retryForMs,
      graceMs,
      signal,
    },
  );
}

function describeStore({ blobs: { place, s3 } }: Config<'blobs'>): string {
  if (place.kind === 'disk') return place.path;
  return s3.endpoint === null ? `s3://${place.bucket}` : new URL(s3.endpoint).host;
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

/** How long orphaned objects are kept. */
export const orphanGraceMs = 24 * 3_600_000;

/** Compares rows with objects and bytes, and objects with rows. */
export async function verifyOnce(
  config: FilesConfig,
  request: Chosen &
    Pick<FilesEvents, 'crashPoint'> & {
      /** The share of the stored bytes that is read again (0 to 1), longest unread first. */
      readonly share: number;
      readonly released?: boolean;
      readonly onStep?: (summary: VerifySummary) => void;
    },
): Promise<VerifySummary & { readonly miscounted: number }> {
  await using held = await openHeld(config, 'verify', request, openBlobsOf);
  const { share, released, onStep, crashPoint, signal } = request;
  const { store, blobs, advertisers } = held;
  const miscounted = share === 1 ? await store.reports.repairTallies() : 0;
  if (share === 1) await store.reports.markAllDays();
  const found = await verify(
    { store, blobs, onStep, crashPoint },
    { advertisers, amount: { share }, released, graceMs: orphanGraceMs, parallel: config.source.concurrency, signal },
  );
  return { ...found, miscounted };
}

/** Parses stored screens again: all of them, or those that this parser version has not parsed. */
export async function reparseOnce(
  config: FilesConfig,
  request: Chosen & { readonly all: boolean },
): Promise<ReparseSummary> {
  await using held = await openHeld(config, 'reparse', request, openBlobsToRead);
  const { store, blobs, advertisers } = held;
  const parserVersion = request.all ? null : screenParserVersion;
  return await reparse({ store, blobs, parseScreens }, { advertisers, parserVersion, signal: request.signal });
}

/** Whose the configured blob store is, and whether this database has just taken it. */
export interface Adoption {
  readonly location: string;
  /** The owner before; null where the store named none. */
  readonly former: StoreOwner | null;
  readonly wasOwn: boolean;
  /** The owner from now on; null if nothing was changed. */
  readonly owner: StoreOwner | null;
}

/** Makes this database the owner of the configured blob store; without `yes` only looks. */
export async function adoptOnce(
  config: FilesConfig,
  request: { readonly yes: boolean; readonly signal: AbortSignal },
): Promise<Adoption> {
  const { yes, signal } = request;
  await using app = await openStoreOf(config, 'adopt-store', signal);
  await using blobs = await openConfiguredBlobs(config);
  const deps = { store: app.store, blobs };
  const { owner: former, isOwn: wasOwn } = await lookUpOwner(deps, signal);
  if (yes) await adoptStore(deps, signal);
  const { owner } = yes ? await lookUpOwner(deps, signal) : { owner: null };
  return { location: blobs.location, former, wasOwn, owner };
}

/** Opens the store and the blob store, and loads the ids of the chosen advertisers. */
export async function openHeld(
  config: FilesConfig,
  role: string,
  request: Chosen & Pick<FilesEvents, 'crashPoint'>,
  openBlobs: (config: FilesConfig, store: Store, signal: AbortSignal) => Promise<BlobStore>,
) {
  await using stack = new AsyncDisposableStack();
  const { store, accounts } = stack.use(await openKnown(config, role, request));
  const blobs = stack.use(await openBlobs(config, store, request.signal));
  const advertisers = accounts.map(({ advertiserId }) => advertiserId);
  const owned = stack.move();
  return { store, blobs, advertisers, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

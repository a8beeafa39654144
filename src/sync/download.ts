// One claimed download from beginning to end: what Hash may spare, the bytes, the blob announced, put and proven, the rows.
// Failing is data: what went wrong comes back as a failure, and the drain carries out the verdict.
import { isAttachmentKind } from '../domain/application.ts';
import { mostLapses } from '../domain/attempts.ts';
import { type BlobStore, toBlobKey } from '../domain/blob.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { type HashSetting, toHashUse } from '../domain/hash-trust.ts';
import { Trouble } from '../domain/trouble.ts';
import type { FileFacts } from '../store/files.ts';
import type { Settled } from '../store/settling.ts';
import type { Store } from '../store/store.ts';
import { type FetchDeps, type FetchedFile, fetchFile } from './fetch.ts';

export interface DownloadDeps extends FetchDeps {
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface DownloadRequest {
  readonly file: FileFacts;
  readonly hash: HashSetting;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Told when the source is no longer needed. */
  readonly onFetched?: (() => void) | undefined;
}

/** How one download ended. */
export type DownloadEnd =
  | { readonly kind: 'settled'; readonly state: Settled; readonly bytes: number; readonly fetched: boolean }
  | { readonly kind: 'failed'; readonly at: 'source' | 'storage'; readonly trouble: Trouble };

/** Brings one file home. Throws only what is nobody's trouble: an abort, or a mistake of ours. */
export async function download(deps: DownloadDeps, request: DownloadRequest): Promise<DownloadEnd> {
  const { file, signal } = request;
  const { claim } = file;
  deps.crashPoint?.('claimed');
  if (claim.lapses >= mostLapses) {
    const reason = `The process ended ${claim.lapses} times while this file was fetched alone.`;
    return await settle(deps, () => deps.store.settleDownload(claim, { kind: 'final', state: 'given_up', reason }));
  }
  const use = file.twin ? toHashUse(request.hash, file.trust, Math.random()) : 'fetch';
  if (use === 'link' && file.twin) {
    const ended = await link(deps, file, file.twin);
    if (ended.kind === 'failed' || ended.state !== 'unlinkable') return ended;
  }
  let fetched: FetchedFile | 'tooLarge';
  try {
    if (!isAttachmentKind(claim.kind)) throw new Trouble('missing', 'There is no path for this type.', { status: 410 });
    const { kind, applicationId } = claim;
    const { sizeBytes } = file;
    fetched = await fetchFile(deps, { kind, applicationId, sizeBytes, maxBytes: request.maxBytes, signal });
  } catch (error) {
    return toFailure('source', error, signal);
  }
  if (fetched === 'tooLarge') {
    const reason = `larger than ${request.maxBytes} bytes (ATTACHMENT_MAX_BYTES)`;
    return await settle(deps, () => deps.store.settleDownload(claim, { kind: 'final', state: 'rejected', reason }));
  }
  await using owned = fetched;
  deps.crashPoint?.('fetched');
  request.onFetched?.();
  return await keep(deps, request, owned, use === 'compare');
}

/** Announces, puts, proves and books the bytes. Condemned ones are booked without being put. */
async function keep(
  deps: DownloadDeps,
  { file, signal }: DownloadRequest,
  fetched: FetchedFile,
  compare: boolean,
): Promise<DownloadEnd> {
  const { claim, twin } = file;
  const { advertiserId } = claim;
  const { facts, description, screens, notes } = fetched;
  const blob = { ...facts, key: toBlobKey(advertiserId, facts.sha256) };
  return await settle(
    deps,
    async () => {
      const intent = await deps.store.intendBlob(claim, blob);
      if (intent === 'lost') {
        await deps.store.condemnFetched(file, blob.sha256);
        return intent;
      }
      if (intent === 'put') {
        deps.crashPoint?.('intended');
        await deps.blobs.put(blob.key, fetched.body, facts, signal);
        deps.crashPoint?.('put');
      }
      const { contentType, detectedType, fileName } = description;
      const agrees = twin?.sha256 === facts.sha256 ? ('agreed' as const) : ('contradicted' as const);
      const compared = compare ? agrees : null;
      const said = { contentType, detectedType, fileName, notes, screens, compared };
      const state = await deps.store.settleDownload(claim, { kind: 'stored', blob, linked: false, ...said });
      // Taken over, flagged, or its person was erased meanwhile: what nobody else needs must not stay behind.
      if (state === 'lost') {
        await deps.store.condemnFetched(file, blob.sha256);
        await deps.store.dropBlobs(advertiserId, [blob.sha256], (keys) => deps.blobs.delete(keys, signal));
      }
      return state;
    },
    { bytes: facts.sizeBytes, signal },
  );
}

async function link(deps: DownloadDeps, { claim }: FileFacts, twin: NonNullable<FileFacts['twin']>) {
  const { contentType, detectedType, fileName, sizeBytes, sha256 } = twin;
  const blob = { sizeBytes, sha256, key: toBlobKey(claim.advertiserId, sha256) };
  const said = { contentType, detectedType, fileName, notes: [], screens: null, compared: null };
  return await settle(deps, () => deps.store.settleDownload(claim, { kind: 'stored', blob, linked: true, ...said }));
}

/** Books an end. `fetched` where the source gave the file, be it empty. */
async function settle(
  deps: DownloadDeps,
  work: () => Promise<Settled>,
  fetched?: { readonly bytes: number; readonly signal: AbortSignal },
): Promise<DownloadEnd> {
  try {
    const state = await work();
    deps.crashPoint?.('settled');
    const bytes = state === 'stored' && fetched ? fetched.bytes : 0;
    return { kind: 'settled', state, bytes, fetched: fetched !== undefined };
  } catch (error) {
    return toFailure('storage', error, fetched?.signal);
  }
}

function toFailure(at: 'source' | 'storage', error: unknown, signal?: AbortSignal): DownloadEnd {
  signal?.throwIfAborted();
  if (!(error instanceof Trouble)) throw error;
  // The spool is ours, wherever it is met.
  return { kind: 'failed', at: error.kind === 'ours' ? 'storage' : at, trouble: error };
}

// Carries out one claimed download: links the file to equal stored bytes where Hash is trusted, or else fetches the bytes, announces and
// puts the blob, and commits the rows. The download run handles a failure.
import { type BlobStore, toBlobKey } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { mostLapses } from '../../domain/download-verdict.ts';
import { type HashSetting, toHashUse } from '../../domain/hash-trust.ts';
import type { FileFacts, Twin } from '../../store/files/claim-facts.ts';
import type { CompletedState, Completion, StoredFile } from '../../store/files/complete-download.ts';
import type { Store } from '../../store/store.ts';
import { type FetchDeps, type FetchRequest, fetchFile } from './fetch.ts';

export interface DownloadDeps extends FetchDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions' | 'downloads'>;
  readonly blobs: BlobStore;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface DownloadRequest extends FetchRequest {
  readonly hash: HashSetting;
  /** The download no longer needs the source. */
  readonly onFetched?: (() => void) | undefined;
  /** The download no longer holds bytes in the spool. */
  readonly onStored?: (() => void) | undefined;
}

export type DownloadEnd =
  | { readonly state: 'stored'; readonly fetchedBytes: number }
  | { readonly state: Exclude<CompletedState, 'stored'> | 'linked' | 'postponed' };

export async function download(deps: DownloadDeps, request: DownloadRequest): Promise<DownloadEnd> {
  const { file, hash } = request;
  const { claim, twin, trust } = file;
  deps.crashPoint?.('claimed');
  if (claim.lapses >= mostLapses) {
    const reason = 'The process ended twice while it had this file in hand, the second time with this file alone.';
    return await complete(deps, file, { kind: 'final', state: 'given_up', reason });
  }
  const use = twin === null ? 'fetch' : toHashUse(hash, trust, Math.random());
  if (use === 'link' && twin !== null) {
    const linked = await complete(deps, file, toLinked(twin, hash));
    if (linked.state !== 'unlinkable') return linked;
  }
  const fetched = await fetchAndPut(deps, request, use === 'compare');
  if (typeof fetched === 'string') return { state: fetched };
  // A parsed screen waits for its commit in memory. A large one therefore keeps its slot until then, so that few wait.
  const isLargeScreen = fetched.kind === 'stored' && fetched.screens !== null && fetched.blob.sizeBytes >= 250_000;
  if (!isLargeScreen) request.onStored?.();
  return await complete(deps, file, fetched);
}

/** How long to wait for a delete of equal bytes. Most take less; if the deleting process died, the download waits several times. */
const deletingDelayMs = 2_000;

/** Fetches the bytes, announces them, puts them into the blob store, and frees the spool. Infected bytes are not put. */
async function fetchAndPut(
  deps: DownloadDeps,
  request: DownloadRequest,
  compare: boolean,
): Promise<Completion | 'lost' | 'postponed'> {
  const { file, maxBytes, signal } = request;
  const { claim, twin } = file;
  await using fetched = await fetchFile(deps, request);
  if (fetched === null) {
    return { kind: 'final', state: 'rejected', reason: `larger than ${maxBytes} bytes (ATTACHMENT_MAX_BYTES)` };
  }
  deps.crashPoint?.('fetched');
  request.onFetched?.();
  const { facts, description, screens, notes } = fetched;
  const answer = await deps.store.blobs.announce(claim, facts);
  if (answer === 'lost') {
    await deps.store.blobs.markFetched(file, facts.sha256);
    return 'lost';
  }
  if (answer === 'deleting') {
    // An object with equal bytes is being deleted, and a put now would be deleted with it. The download waits; no attempt is counted.
    await deps.store.downloads.postpone(claim, { delayMs: deletingDelayMs, countsAttempt: false, trouble: null });
    return 'postponed';
  }
  if (answer === 'put') {
    deps.crashPoint?.('intended');
    await deps.blobs.put(toBlobKey(claim.advertiserId, facts.sha256), fetched.body, facts, signal);
    deps.crashPoint?.('put');
  }
  const { contentType, detectedType, fileName } = description;
  const agrees = twin?.sha256 === facts.sha256 ? ('agreed' as const) : ('contradicted' as const);
  const compared = compare ? agrees : null;
  return { kind: 'stored', blob: facts, linkedBy: null, contentType, detectedType, fileName, notes, screens, compared };
}

/**
 * Commits the end. `lost`: meanwhile another process took the download over, the file was flagged, or its person was erased. Bytes that were
 * put are then left to be deleted unless another file needs them.
 */
async function complete(deps: DownloadDeps, file: FileFacts, completion: Completion): Promise<DownloadEnd> {
  const state = await deps.store.downloads.complete(file.claim, completion);
  const fetched = completion.kind === 'stored' && completion.linkedBy === null ? completion.blob : null;
  if (state === 'lost' && fetched !== null) {
    await deps.store.blobs.markFetched(file, fetched.sha256);
    await deps.store.deletions.drop(file.claim.advertiserId, [fetched.sha256]);
  }
  deps.crashPoint?.('completed');
  if (state !== 'stored') return { state };
  return fetched === null ? { state: 'linked' } : { state, fetchedBytes: fetched.sizeBytes };
}

/** The source sends the file name with the bytes, which are not requested here. */
function toLinked({ sizeBytes, sha256, contentType, detectedType }: Twin, hash: HashSetting): StoredFile {
  const said = { contentType, detectedType, fileName: null, notes: [], screens: null, compared: null };
  return { kind: 'stored', blob: { sizeBytes, sha256 }, linkedBy: hash === 'always' ? 'given' : 'earned', ...said };
}

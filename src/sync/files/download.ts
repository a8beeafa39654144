// Carries out one claimed download: links the file to equal stored bytes where Hash is trusted, or else fetches the bytes, announces and
// puts the blob, and commits the rows. The download run handles a failure.
import { isAttachmentKind } from '../../domain/application.ts';
import { type BlobStore, toBlobKey } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { mostLapses } from '../../domain/download-verdict.ts';
import { type HashSetting, toHashUse } from '../../domain/hash-trust.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { FileFacts } from '../../store/files/claim-facts.ts';
import type { CompletedState, StoredFile } from '../../store/files/complete-download.ts';
import type { Store } from '../../store/store.ts';
import { deleteUnneeded } from './delete-objects.ts';
import { type FetchDeps, type FetchRequest, fetchFile } from './fetch.ts';

export interface DownloadDeps extends FetchDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions' | 'downloads'>;
  readonly blobs: BlobStore;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface DownloadRequest extends Pick<FetchRequest, 'maxBytes' | 'signal'> {
  readonly file: FileFacts;
  readonly hash: HashSetting;
  /** The download no longer needs the source. */
  readonly onFetched?: (() => void) | undefined;
  /** The download no longer holds bytes in the spool. */
  readonly onStored?: (() => void) | undefined;
}

export interface DownloadEnd {
  readonly state: CompletedState;
  readonly bytes: number;
  /** The source sent the file. */
  readonly fetched: boolean;
}

/** Downloads one file. Throws Trouble, or the signal's reason. */
export async function download(deps: DownloadDeps, request: DownloadRequest): Promise<DownloadEnd> {
  const { file, maxBytes } = request;
  const { claim, twin } = file;
  /** `fetchedBytes` is null where the source did not send the file. */
  const toEnd = (state: CompletedState, fetchedBytes: number | null = null): DownloadEnd => {
    deps.crashPoint?.('completed');
    const bytes = state === 'stored' ? (fetchedBytes ?? 0) : 0;
    return { state, bytes, fetched: fetchedBytes !== null };
  };
  const giveUp = async (state: 'given_up' | 'rejected', reason: string) =>
    toEnd(await deps.store.downloads.complete(claim, { kind: 'final', state, reason }));
  deps.crashPoint?.('claimed');
  if (claim.lapses >= mostLapses)
    return await giveUp(
      'given_up',
      'The process ended twice while it had this file in hand, the second time with this file alone.',
    );
  const use = twin === null ? 'fetch' : toHashUse(request.hash, file.trust, Math.random());
  if (use === 'link' && twin !== null) {
    const state = await link(deps, request, twin);
    if (state !== 'unlinkable') return toEnd(state);
  }
  const stored = await fetchAndPut(deps, request, use === 'compare');
  if (stored === 'tooLarge') return await giveUp('rejected', `larger than ${maxBytes} bytes (ATTACHMENT_MAX_BYTES)`);
  if (stored === 'lost') return { state: stored, bytes: 0, fetched: true };
  request.onStored?.();
  return toEnd(await commit(deps, request, stored), stored.blob.sizeBytes);
}

/** How long to wait for a delete of equal bytes. Most take less; if the deleting process died, the download waits several times. */
const deletingDelayMs = 2_000;

/** Fetches the bytes, announces them, puts them into the blob store, and frees the spool. Infected bytes are not put. */
async function fetchAndPut(
  deps: DownloadDeps,
  request: DownloadRequest,
  compare: boolean,
): Promise<StoredFile | 'tooLarge' | 'lost'> {
  const { file, maxBytes, signal } = request;
  const { claim, twin, sizeBytes } = file;
  const { kind, applicationId } = claim;
  if (!isAttachmentKind(kind)) throw new Trouble('missing', 'There is no path for this type.', { status: 410 });
  const isKnownServed = claim.isServed;
  await using fetched = await fetchFile(deps, { kind, applicationId, sizeBytes, maxBytes, signal, isKnownServed });
  if (fetched === null) return 'tooLarge';
  deps.crashPoint?.('fetched');
  request.onFetched?.();
  const { facts, description, screens, notes } = fetched;
  const blob = { ...facts, key: toBlobKey(claim.advertiserId, facts.sha256) };
  const answer = await deps.store.blobs.announce(claim, blob);
  if (answer === 'lost') {
    await deps.store.blobs.recallFetched(file, blob.sha256);
    return 'lost';
  }
  if (answer === 'deleting') {
    // An object with equal bytes is being deleted, and a put now would be deleted with it. The download waits; no attempt is counted.
    await deps.store.downloads.postpone(claim, { delayMs: deletingDelayMs, spend: false, trouble: null });
    return 'lost';
  }
  if (answer === 'put') {
    deps.crashPoint?.('intended');
    await deps.blobs.put(blob.key, fetched.body, facts, signal);
    deps.crashPoint?.('put');
  }
  const { contentType, detectedType, fileName } = description;
  const agrees = twin?.sha256 === facts.sha256 ? ('agreed' as const) : ('contradicted' as const);
  const compared = compare ? agrees : null;
  return { kind: 'stored', blob, linkedBy: null, contentType, detectedType, fileName, notes, screens, compared };
}

/**
 * Commits the stored bytes. `lost`: meanwhile another process took the download over, the file was flagged, or its person was erased. The
 * bytes are then deleted unless another file needs them.
 */
async function commit(
  deps: DownloadDeps,
  { file, signal }: DownloadRequest,
  stored: StoredFile,
): Promise<CompletedState> {
  const { advertiserId } = file.claim;
  const { sha256 } = stored.blob;
  const state = await deps.store.downloads.complete(file.claim, stored);
  if (state === 'lost') {
    await deps.store.blobs.recallFetched(file, sha256);
    await deleteUnneeded(deps, advertiserId, [sha256], signal);
  }
  return state;
}

async function link(
  { store }: DownloadDeps,
  { file: { claim }, hash }: DownloadRequest,
  { contentType, detectedType, sizeBytes, sha256 }: NonNullable<FileFacts['twin']>,
): Promise<CompletedState> {
  const blob = { sizeBytes, sha256, key: toBlobKey(claim.advertiserId, sha256) };
  // The source sends the file name with the bytes, which are not requested here.
  const said = { contentType, detectedType, fileName: null, notes: [], screens: null, compared: null };
  const linkedBy = hash === 'always' ? 'given' : 'earned';
  return await store.downloads.complete(claim, { kind: 'stored', blob, linkedBy, ...said });
}

// Carries out one claimed download: links the file to equal stored bytes where Hash is trusted, or else fetches, announces and puts them,
// and commits the rows. A truncated body, an empty body or an error page is never taken for the file.
import { largestScreenBytes, type Note, type ParsedScreens, toUnreadableNote } from '../../domain/application.ts';
import { type BlobBody, type BlobFacts, type BlobStore, type Spool, toBlobKey } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { type HashSetting, mostLapses, toHashUse } from '../../domain/download-verdict.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { describeFile } from '../../source/parse/file-description.ts';
import type { parseScreens } from '../../source/parse/screen.ts';
import type { CompletedState, Completion, StoredFile } from '../../store/files/complete-download.ts';
import type { FileFacts, Twin } from '../../store/files/download-queue.ts';
import type { Store } from '../../store/store.ts';

export interface DownloadDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions' | 'downloads'>;
  readonly blobs: BlobStore;
  readonly source: Source;
  readonly spool: Spool;
  readonly describeFile: typeof describeFile;
  readonly parseScreens: typeof parseScreens;
  /** Called as bytes arrive, so that a slow file still counts as progress, and before they are parsed. */
  readonly onBytes?: (() => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface DownloadRequest {
  readonly file: FileFacts;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly hash: HashSetting;
  /** The download no longer needs the source. */
  readonly onFetched?: (() => void) | undefined;
  /** The download no longer holds bytes in the spool. */
  readonly onSpoolFree?: (() => void) | undefined;
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
  if (!isLargeScreen) request.onSpoolFree?.();
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
    await deps.store.downloads.postponeDownload(claim, {
      delayMs: deletingDelayMs,
      countsAttempt: false,
      trouble: null,
    });
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

/** Commits the end. `lost`: the download was taken over, its file flagged or its person erased; bytes that nobody needs are deleted. */
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

/** A whole file. Disposing it frees its bytes. */
interface FetchedFile extends AsyncDisposable {
  readonly body: BlobBody;
  readonly facts: BlobFacts;
  readonly description: Awaited<ReturnType<typeof describeFile>>;
  /** Null for files other than screens, and for a screen that cannot be parsed. */
  readonly screens: ParsedScreens | null;
  readonly notes: readonly Note[];
}

const mostFetches = 3;

/** Fetches until there is no doubt, two fetches in a row agree, which overrules Size, or the third is not short. Null: it is too large. */
async function fetchFile(deps: DownloadDeps, request: DownloadRequest): Promise<FetchedFile | null> {
  let before: string | null = null;
  for (let tries = 1; ; tries++) {
    const fetched = await fetchOnce(deps, request);
    if (fetched === null || fetched.doubt === null) return fetched;
    const { doubt } = fetched;
    if (fetched.facts.sha256 === before) return { ...fetched, notes: [...fetched.notes, doubt.note] };
    if (tries === mostFetches && !doubt.isShort) {
      const note = { field: 'bytes', reason: 'no two downloads in a row had the same bytes; the last are kept' };
      return { ...fetched, notes: [...fetched.notes, doubt.note, note] };
    }
    before = fetched.facts.sha256;
    await fetched[Symbol.asyncDispose]();
    if (tries === mostFetches) throw toIncomplete('The file was truncated, at a different place in each download.');
  }
}

async function fetchOnce(
  deps: DownloadDeps,
  { file: { claim, listedBytes }, maxBytes, signal }: DownloadRequest,
): Promise<(FetchedFile & { readonly doubt: { readonly note: Note; readonly isShort: boolean } | null }) | null> {
  const { kind, applicationId, isServed } = claim;
  await using answer = await deps.source.openAttachment(kind, applicationId, signal, isServed);
  const { headers } = answer;
  if (answer.status === 204) throw new Trouble('missing', 'The source does not have it (204).', { status: 204 });
  const declared = toLength(headers['content-length']);
  if (declared !== null && declared > maxBytes) return null;
  await using stack = new AsyncDisposableStack();
  const spooled = stack.use(deps.spool.open());
  for await (const chunk of answer.body) {
    if (spooled.sizeBytes + chunk.length > maxBytes) return null;
    await spooled.write(chunk);
    deps.onBytes?.();
  }
  const { body, facts, head } = await spooled.finish();
  if (declared !== null && declared !== facts.sizeBytes) throw toIncomplete('The file was truncated.');
  if (facts.sizeBytes === 0 && listedBytes !== 0) throw toIncomplete('The file was empty.');
  deps.onBytes?.();
  const description = await deps.describeFile(headers, head);
  const parsed = kind === 'screen' ? await readScreens(deps, body, facts.sizeBytes, description.contentType) : null;
  const isExpectedSize = listedBytes === facts.sizeBytes;
  // A page of exactly the expected Size is a file that happens to be HTML. For a screen, parsing decides.
  if (kind !== 'screen' && description.looksLikePage && !isExpectedSize) throw toPageInstead();
  if (parsed?.note && /html/i.test(description.contentType ?? '')) throw toPageInstead();
  // A body that ends when the connection closes may be truncated, and a proxy may truncate it at the same place each time.
  const isWhole = answer.isFramed || isExpectedSize || parsed?.screens != null;
  if (!isWhole)
    throw toIncomplete('The file ended with its connection, and neither its Size nor a length shows that it is whole.');
  const note = parsed ? parsed.note : toSizeNote(listedBytes, facts.sizeBytes);
  const doubt = note === null ? null : { note, isShort: facts.sizeBytes < (listedBytes ?? 0) };
  const owned = stack.move();
  const { encoding } = description;
  const notes = encoding ? [{ field: 'Content-Encoding', reason: `${encoding}, kept as it came` }] : [];
  return {
    ...{ body, facts, description, notes, doubt, screens: parsed?.screens ?? null },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A screen that parses is whole, since truncated JSON or XML does not. Its Size is ignored: it may be that of the other format. */
export async function readScreens(
  deps: Pick<DownloadDeps, 'parseScreens'>,
  body: BlobBody,
  sizeBytes: number,
  contentType: string | null,
) {
  if (sizeBytes > largestScreenBytes) return { screens: null, note: toUnreadableNote('larger than a screen can be') };
  const bytes = await readBytes(body, sizeBytes);
  try {
    return { screens: deps.parseScreens(bytes, contentType ?? undefined), note: null };
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    return { screens: null, note: toUnreadableNote(error.message) };
  }
}

async function readBytes(body: BlobBody, sizeBytes: number): Promise<Uint8Array> {
  if (body instanceof Uint8Array) return body;
  const bytes = Buffer.alloc(sizeBytes);
  let at = 0;
  for (let read = -1; read !== 0; at += read) read = await body.read(bytes.subarray(at), at);
  return bytes;
}

function toSizeNote(listed: number | null, came: number): Note | null {
  if (listed === null || listed === came) return null;
  return { field: 'Size', reason: `says ${listed}, and ${came} bytes came` };
}

function toIncomplete(message: string): Trouble {
  return new Trouble('unreachable', message, { status: 200 });
}

function toPageInstead(): Trouble {
  return new Trouble('malformed', 'The source sent an error page instead of the file.');
}

function toLength(header: string | undefined): number | null {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

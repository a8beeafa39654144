// One file from the source, beyond reasonable doubt: fetched whole, by its framing or its Size, counted, hashed, and where something does
// not fit fetched again until equal bytes decide. What may be cut, is empty or an error page is never taken for the file. Knows nothing
// of queue and store.
import type { AttachmentKind, Note } from '../../domain/application.ts';
import type { BlobBody, BlobFacts } from '../../domain/blob.ts';
import { type ParsedScreens, toUnreadableNote } from '../../domain/screen.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { FileDescription } from '../../source/parse/file-description.ts';
import type { Spool } from './spool.ts';

export interface FetchDeps {
  readonly source: Source;
  readonly spool: Spool;
  readonly describeFile: (
    headers: Readonly<Record<string, string | undefined>>,
    head: Uint8Array,
  ) => Promise<FileDescription>;
  readonly parseScreens: (body: Uint8Array, contentType: string | undefined) => ParsedScreens;
  /** Told as bytes come: however long a file takes, it moves. */
  readonly onBytes?: (() => void) | undefined;
}

export interface FetchRequest {
  readonly kind: AttachmentKind;
  readonly applicationId: bigint;
  /** As the list says; it may be wrong. */
  readonly sizeBytes: number | null;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** The source serves the account: a Retry-After is about this file alone. */
  readonly isKnownServed?: boolean | undefined;
}

/** A file that can be kept. Disposing it frees its bytes. */
export interface FetchedFile extends AsyncDisposable {
  readonly body: BlobBody;
  readonly facts: BlobFacts;
  readonly description: FileDescription;
  /** Null for a file, and for a screen that cannot be read. */
  readonly screens: ParsedScreens | null;
  readonly notes: readonly Note[];
}

/** Fetches until there is no doubt, or until the same bytes have come twice. `tooLarge`: beyond the limit, abandoned. */
export async function fetchFile(deps: FetchDeps, request: FetchRequest): Promise<FetchedFile | 'tooLarge'> {
  let before: string | null = null;
  for (let tries = 1; ; tries++) {
    const fetched = await fetchOnce(deps, request);
    if (fetched === 'tooLarge') return fetched;
    try {
      if (fetched.doubt === null) return fetched;
      const { doubt } = fetched;
      if (fetched.facts.sha256 === before) return { ...fetched, notes: [...fetched.notes, doubt.note] };
      if (tries === mostFetches) {
        if (doubt.isShort) throw toUseless('The file came cut, each time at another place.');
        const note = { field: 'bytes', reason: 'other bytes on each download; the last are kept' };
        return { ...fetched, notes: [...fetched.notes, doubt.note, note] };
      }
      before = fetched.facts.sha256;
    } catch (error) {
      await fetched[Symbol.asyncDispose]();
      throw error;
    }
    await fetched[Symbol.asyncDispose]();
  }
}

/** Two equal ones in a row decide against the list; where the first two differ there is a third. */
const mostFetches = 3;

/** Why a whole body is not simply believed. */
interface Doubt {
  readonly note: Note;
  readonly isShort: boolean;
}

async function fetchOnce(
  deps: FetchDeps,
  { kind, applicationId, sizeBytes, maxBytes, signal, isKnownServed }: FetchRequest,
): Promise<(FetchedFile & { readonly doubt: Doubt | null }) | 'tooLarge'> {
  await using answer = await deps.source.openAttachment(kind, applicationId, signal, isKnownServed);
  const { headers } = answer;
  if (answer.status === 204) throw new Trouble('missing', 'The source does not have it (204).', { status: 204 });
  const declared = toLength(headers['content-length']);
  if (declared !== null && declared > maxBytes) return 'tooLarge';
  await using stack = new AsyncDisposableStack();
  const spooled = stack.use(deps.spool.open(declared ?? sizeBytes));
  for await (const chunk of answer.body) {
    if (spooled.sizeBytes + chunk.length > maxBytes) return 'tooLarge';
    await spooled.write(chunk);
    deps.onBytes?.();
  }
  const { body, facts, head } = await spooled.finish();
  if (declared !== null && declared !== facts.sizeBytes) throw toUseless('The file came cut.');
  if (facts.sizeBytes === 0 && sizeBytes !== 0) throw toUseless('The file came empty.');
  const description = await deps.describeFile(headers, head);
  const parsed = kind === 'screen' ? readScreens(deps, body, description) : null;
  const isExpectedSize = sizeBytes === facts.sizeBytes;
  // A page with exactly the size that was announced is a file that happens to be HTML. A screen is told by reading it.
  if (parsed?.screens == null && description.looksLikePage && !isExpectedSize && kind !== 'screen') throw aPage();
  if (parsed?.note && /html/i.test(description.contentType ?? '')) throw aPage();
  // A body that ends with its connection may have been cut by anyone, and by the same proxy at the same place each time.
  const isWhole = declared !== null || isChunked(headers) || isExpectedSize || parsed?.screens != null;
  if (!isWhole)
    throw toUseless('The file ended with its connection, and neither its Size nor a length shows that it is whole.');
  const note = parsed ? parsed.note : toSizeNote(sizeBytes, facts.sizeBytes);
  const doubt = note === null ? null : { note, isShort: facts.sizeBytes < (sizeBytes ?? 0) };
  const owned = stack.move();
  return {
    body,
    facts,
    description,
    screens: parsed?.screens ?? null,
    notes: description.encoding
      ? [{ field: 'Content-Encoding', reason: `${description.encoding}, kept as it came` }]
      : [],
    doubt,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** JSON and XML are refused whole when they are cut, so a screen that can be read needs no Size, which may be that of the other format. */
function readScreens(deps: FetchDeps, body: BlobBody, { contentType }: FileDescription) {
  if (!(body instanceof Uint8Array)) return { screens: null, note: toUnreadableNote('larger than a screen can be') };
  try {
    return { screens: deps.parseScreens(body, contentType ?? undefined), note: null };
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    return { screens: null, note: toUnreadableNote(error.message) };
  }
}

function toSizeNote(listed: number | null, came: number): Note | null {
  if (listed === null || listed === came) return null;
  return { field: 'Size', reason: `says ${listed}, and ${came} bytes came` };
}

/** The source answered, and not with the file. */
function toUseless(message: string): Trouble {
  return new Trouble('unreachable', message, { status: 200 });
}

function aPage(): Trouble {
  return new Trouble('malformed', 'A page for people came instead of the file.');
}

/** The last chunk tells the end; a connection that closes before it is an error of the client. */
function isChunked(headers: Readonly<Record<string, string | undefined>>): boolean {
  return /\bchunked\s*$/i.test(headers['transfer-encoding'] ?? '');
}

function toLength(header: string | undefined): number | null {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

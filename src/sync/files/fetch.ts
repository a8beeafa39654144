// Fetches one file from the source and makes sure that it is whole, by its HTTP framing or its Size. It counts and hashes the bytes. If
// something does not match, it fetches again until two fetches in a row agree, at most three times. A truncated body, an empty body or an
// error page is never taken for the file.
import type { Note } from '../../domain/application.ts';
import type { BlobBody, BlobFacts, Spool } from '../../domain/blob.ts';
import { largestScreenBytes, type ParsedScreens, toUnreadableNote } from '../../domain/screen.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { DescribedAnswer, describeFile } from '../../source/parse/file-description.ts';
import type { parseScreens } from '../../source/parse/screen.ts';
import type { FileFacts } from '../../store/files/claim-facts.ts';

export interface FetchDeps {
  readonly source: Source;
  readonly spool: Spool;
  readonly describeFile: typeof describeFile;
  readonly parseScreens: typeof parseScreens;
  /** Called as bytes arrive, so that a slow file still counts as progress, and before they are parsed. */
  readonly onBytes?: (() => void) | undefined;
}

export interface FetchRequest {
  readonly file: FileFacts;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** A whole file. Disposing it frees its bytes. */
export interface FetchedFile extends AsyncDisposable {
  readonly body: BlobBody;
  readonly facts: BlobFacts;
  readonly description: DescribedAnswer;
  /** Null for files other than screens, and for a screen that cannot be parsed. */
  readonly screens: ParsedScreens | null;
  readonly notes: readonly Note[];
}

/**
 * Fetches until there is no doubt, two fetches in a row agree, which overrules Size, or the third is not short. Null: the file exceeds
 * `maxBytes`.
 */
export async function fetchFile(deps: FetchDeps, request: FetchRequest): Promise<FetchedFile | null> {
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

const mostFetches = 3;

async function fetchOnce(
  deps: FetchDeps,
  { file: { claim, listedBytes }, maxBytes, signal }: FetchRequest,
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

/**
 * The screens of a file, or a note that says why they cannot be read. Truncated JSON or XML does not parse, so a screen that parses is
 * whole. Its Size is ignored: it may be that of the other format.
 */
export async function readScreens(
  deps: Pick<FetchDeps, 'parseScreens'>,
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

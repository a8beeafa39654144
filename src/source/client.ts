// The advertiser side of the source API (version 1): ask the list, open an attachment.
// Paths and parameters are built here and from nothing the source says. Decides nothing about what to ask next.

import { hash } from 'node:crypto';
import type { AttachmentKind, Page } from '../domain/application.ts';
import { Trouble } from '../domain/trouble.ts';
import { readBody } from './body.ts';
import { createHttp, type HttpAnswer, type HttpOptions } from './http.ts';
import { toAttachmentPath } from './parse/attachments.ts';
import { decodeText } from './parse/charset.ts';
import { toFilterDate } from './parse/dates.ts';
import { parsePage, scanIds, toEmptyPage } from './parse/list.ts';

/** One advertiser's account at the source. Closing it ends its connections. */
export interface Source extends AsyncDisposable {
  /** Asks one question of the list. `most`: how many applications it can be about. Throws Trouble, or the signal's reason. */
  list(filters: ListFilters, signal: AbortSignal, most?: 'many' | 'one'): Promise<ListAnswer>;
  /** Opens the bytes of an attachment, by its kind and its application's id. `isKnownServed`: a Retry-After is about this file alone. */
  openAttachment(kind: AttachmentKind, id: bigint, signal: AbortSignal, isKnownServed?: boolean): Promise<HttpAnswer>;
}

/** How the account is reached, and what of its answers is read. */
export interface SourceOptions extends HttpOptions {
  readonly format: 'json' | 'xml';
  /** Larger lists are abandoned. */
  readonly listMaxBytes: number;
  /** Told as the bytes of a list come: however long it takes, it moves. */
  readonly onListBytes?: (() => void) | undefined;
  /** Whether the list has answered in an earlier process. Without it only this process counts. */
  readonly memory?: AnswerMemory | undefined;
  /** A list of one application cannot be asked for in smaller pieces: it is abandoned beyond this only. */
  readonly applicationMaxBytes: number;
}

/** What is remembered of the account's list over restarts. */
export interface AnswerMemory {
  hasAnswered(): Promise<boolean>;
  noteAnswered(): Promise<void>;
}

/** Bounds of a question; dates in milliseconds since the epoch. */
export interface ListFilters {
  readonly afterId?: bigint;
  readonly beforeId?: bigint;
  readonly afterDate?: number;
  readonly beforeDate?: number;
}

/** A whole page, or, of a list beyond the byte limit, the ids seen in its beginning: split points that need no trust. */
export type ListAnswer =
  | { readonly kind: 'page'; readonly page: Page }
  | { readonly kind: 'overflow'; readonly ids: readonly bigint[]; readonly bytes: number };

const mediaTypes = { json: 'application/json', xml: 'application/xml' };

/** Creates the client of one account; nothing is sent before the first question. */
export function createSource(options: SourceOptions): Source {
  const http = createHttp(options);
  const accept = mediaTypes[options.format];
  let hasAnswered = false;
  const isCached = createCacheTest();

  async function list(filters: ListFilters, signal: AbortSignal, most = 'many'): Promise<ListAnswer> {
    const maxBytes = most === 'one' ? options.applicationMaxBytes : options.listMaxBytes;
    const request = { path: `v1/advertiser/applications?${toQuery(filters)}`, accept, signal, fresh: true };
    try {
      const answer = await http.get(request, (opened) =>
        readList(opened, maxBytes, isCached(opened.headers), options.onListBytes),
      );
      if (!hasAnswered) await options.memory?.noteAnswered();
      hasAnswered = true;
      return answer;
    } catch (error) {
      if (!(error instanceof Trouble) || error.status !== 404) throw error;
      // Spec silent: a filter that matches nothing. Some servers say 404, but not before they have said anything else.
      hasAnswered ||= (await options.memory?.hasAnswered()) ?? false;
      if (hasAnswered) return toEmptyAnswer(null);
      throw new Trouble('missing', `There is no list at ${options.url}/v1 (404): the base URL is probably wrong.`, {
        status: 404,
      });
    }
  }

  return {
    list,
    openAttachment: (kind, id, signal, isKnownServed) =>
      http.open({
        path: `v1/${toAttachmentPath(kind, id)}`,
        accept: kind === 'screen' ? accept : '*/*',
        isKnownServed,
        signal,
      }),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  };
}

// Spec: Query parameters of the list operation. Job-seeking info comes only when it is asked for.
function toQuery(filters: ListFilters): URLSearchParams {
  const query = new URLSearchParams();
  if (filters.afterId !== undefined) query.set('afterid', String(filters.afterId));
  if (filters.beforeId !== undefined) query.set('beforeid', String(filters.beforeId));
  if (filters.afterDate !== undefined) query.set('afterdate', toFilterDate(filters.afterDate));
  if (filters.beforeDate !== undefined) query.set('beforedate', toFilterDate(filters.beforeDate));
  query.set('include', 'primaryjobseekinginfo');
  return query;
}

async function readList(
  { headers, body }: HttpAnswer,
  maxBytes: number,
  cached: boolean,
  onBytes: SourceOptions['onListBytes'],
): Promise<ListAnswer> {
  const { bytes, whole } = await readBody(body, headers['content-encoding'], maxBytes, onBytes);
  if (!whole) {
    // Byte by byte: ids are ASCII, in UTF-16 with a zero beside each digit.
    const prefix = bytes.toString('latin1').replaceAll('\0', '');
    return { kind: 'overflow', ids: scanIds(prefix), bytes: bytes.length };
  }
  const sunsetAt = Date.parse(headers.sunset ?? '') || null;
  if (bytes.length === 0) return toEmptyAnswer(sunsetAt, cached);
  const { text, bytesAsText } = decodeText(bytes, headers['content-type']);
  const page = parsePage(text, bytesAsText);
  return {
    kind: 'page',
    page: { ...page, bytes: bytes.length, bodyHash: hash('sha256', bytes, 'buffer'), cached, sunsetAt },
  };
}

function toEmptyAnswer(sunsetAt: number | null, cached = false): ListAnswer {
  return { kind: 'page', page: { ...toEmptyPage(), bytes: 0, bodyHash: null, cached, sunsetAt } };
}

/** An answer whose Date lags this far behind what the answers before it said was not made now. */
const staleMs = 60_000;

/**
 * Tells whether an answer comes from a cache, although none was asked for: by its Age, or by a Date that lies behind that of earlier
 * answers. The source's clock is compared with itself only, so it may be wrong.
 */
function createCacheTest(): (headers: HttpAnswer['headers']) => boolean {
  let newest: { readonly dateMs: number; readonly atMs: number } | null = null;
  return (headers) => {
    const nowMs = performance.now();
    const dateMs = Date.parse(headers.date ?? '');
    const expectedMs = newest === null ? dateMs : newest.dateMs + nowMs - newest.atMs;
    const isOld = Number.isFinite(dateMs) && dateMs < expectedMs - staleMs;
    if (Number.isFinite(dateMs) && !isOld) newest = { dateMs, atMs: nowMs };
    return isOld || Number(headers.age ?? 0) > 0;
  };
}

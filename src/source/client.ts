// The advertiser side of the source API (version 1): requests the list and opens attachments.
// Paths and parameters are built here; no text from the source enters them. The caller decides what to request next.

import type { Application, AttachmentKind, Page, Reject } from '../domain/application.ts';
import { Trouble } from '../domain/trouble.ts';
import { createHttp, type HttpAnswer, type HttpOptions, readBody } from './http.ts';
import { toAttachmentPath } from './parse/attachments.ts';
import { decodeText } from './parse/charset.ts';
import { toFilterDate } from './parse/dates.ts';
import { parsePage, scanIds, toElement, toEmptyPage } from './parse/list.ts';

export interface Source {
  /** Requests the list. Throws Trouble, or the signal's reason. */
  list(filters: ListFilters, signal: AbortSignal, tries?: 'several' | 'one'): Promise<ListAnswer>;
  /** Opens an attachment by its kind and its application's id. `isServed`: a Retry-After applies to this file alone. */
  openAttachment(kind: AttachmentKind, id: bigint, signal: AbortSignal, isServed?: boolean): Promise<HttpAnswer>;
  /** The element that an application is where its id is another person's. */
  toElement(application: Application): Reject;
}

export interface SourceOptions extends HttpOptions {
  readonly format: 'json' | 'xml';
  /** Reading stops at this size; the answer is then an overflow. */
  readonly listMaxBytes: number;
  /** Called for every chunk of a list, so that a slow answer counts as progress. */
  readonly onListBytes?: (() => void) | undefined;
  /** Remembers over restarts whether the list has ever answered. Without it, only answers to this process count. */
  readonly memory?: { hasAnswered(): Promise<boolean>; noteAnswered(): Promise<void> } | undefined;
  /** The size limit for a request that can match one application only, since such a request cannot be split further. */
  readonly applicationMaxBytes: number;
}

/** The filters of a list request; dates in milliseconds since the epoch. */
export interface ListFilters {
  readonly afterId?: bigint;
  readonly beforeId?: bigint;
  readonly afterDate?: number;
  readonly beforeDate?: number;
}

/** A whole page; or, for a list beyond the byte limit, the ids found in its beginning. They serve as split points only and may be wrong. */
export type ListAnswer =
  | { readonly kind: 'page'; readonly page: Page }
  | { readonly kind: 'overflow'; readonly ids: readonly bigint[]; readonly bytes: number };

/** Creates the client of one account; it sends nothing before the first call. */
export function createSource(options: SourceOptions): Source {
  const http = createHttp(options);
  const accept = `application/${options.format}`;
  let hasAnswered = false;
  const isCached = createCacheTest();

  const list: Source['list'] = async (filters, signal, tries = 'several') => {
    const { afterId, beforeId } = filters;
    const isOfOne = afterId !== undefined && beforeId === afterId + 2n;
    const maxBytes = isOfOne ? options.applicationMaxBytes : options.listMaxBytes;
    const path = `v1/advertiser/applications?${toQuery(filters)}`;
    const request = { path, accept, signal, ...(tries === 'one' && { retries: 0 }) };
    try {
      const answer = await http.get(request, (opened) => readList(opened, maxBytes));
      if (!hasAnswered) await options.memory?.noteAnswered();
      hasAnswered = true;
      return answer;
    } catch (error) {
      if (!(error instanceof Trouble) || error.status !== 404) throw error;
      // Spec silent: a filter that matches nothing. Some servers answer 404. Before the list has ever answered, 404 means a wrong base URL.
      hasAnswered ||= (await options.memory?.hasAnswered()) ?? false;
      if (hasAnswered) return { kind: 'page', page: { ...toEmptyPage(), bytes: 0, cached: false, sunsetAt: null } };
      const what = `There is no list at ${options.url}/v1 (404): the base URL is probably wrong.`;
      throw new Trouble('missing', what, { status: 404 });
    }
  };

  async function readList(answer: HttpAnswer, maxBytes: number): Promise<ListAnswer> {
    const { headers } = answer;
    const cached = isCached(headers);
    const { bytes, whole } = await readBody(answer, maxBytes, options.onListBytes);
    if (!whole) {
      // One character per byte is enough: ids are ASCII. In UTF-16 each digit has a zero byte beside it, which is removed.
      const prefix = bytes.toString('latin1').replaceAll('\0', '');
      return { kind: 'overflow', ids: scanIds(prefix), bytes: bytes.length };
    }
    const sunsetAt = Date.parse(headers.sunset ?? '') || null;
    const page = bytes.length === 0 ? toEmptyPage() : parsePage(decodeText(bytes, headers['content-type']));
    return { kind: 'page', page: { ...page, bytes: bytes.length, cached, sunsetAt } };
  }

  return {
    list,
    openAttachment(kind, id, signal, isServed) {
      const path = `v1/${toAttachmentPath(kind, id)}`;
      return http.open({ path, accept: kind === 'screen' ? accept : '*/*', isServed, signal });
    },
    toElement,
  };
}

// Spec: Query parameters of the list operation. The source sends job-seeking info only with `include`.
function toQuery({ afterId, beforeId, afterDate, beforeDate }: ListFilters): URLSearchParams {
  const query = new URLSearchParams();
  if (afterId !== undefined) query.set('afterid', String(afterId));
  if (beforeId !== undefined) query.set('beforeid', String(beforeId));
  if (afterDate !== undefined) query.set('afterdate', toFilterDate(afterDate));
  if (beforeDate !== undefined) query.set('beforedate', toFilterDate(beforeDate));
  query.set('include', 'primaryjobseekinginfo');
  return query;
}

/** An answer whose Date is this far behind the Date of earlier answers was not generated now. */
const staleMs = 60_000;

/** One odd Date does not change the known clock. So many answers in a row that agree on another one, over at least this time, do. */
const believed = { answers: 3, ms: 600_000 };

/** Answers from a cache despite `no-cache` have an Age, or a Date behind the source's clock as earlier answers show it. */
export function createCacheTest(now = () => performance.now()): (headers: HttpAnswer['headers']) => boolean {
  let offsetMs = Number.NaN;
  let other = { offsetMs, sinceMs: 0, answers: 0 };
  return (headers) => {
    const nowMs = now();
    const aheadMs = Date.parse(headers.date ?? '') - nowMs;
    if (Number.isNaN(offsetMs)) offsetMs = aheadMs;
    const isOther = Math.abs(aheadMs - offsetMs) > staleMs;
    if (!isOther || !(Math.abs(aheadMs - other.offsetMs) <= staleMs))
      other = { offsetMs: aheadMs, sinceMs: nowMs, answers: 0 };
    if (isOther && ++other.answers >= believed.answers && nowMs - other.sinceMs >= believed.ms) offsetMs = aheadMs;
    return aheadMs < offsetMs - staleMs || Number(headers.age ?? 0) > 0;
  };
}

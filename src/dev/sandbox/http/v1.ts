// The advertiser side of the API: five GET routes behind an SWS credential. Parses the request, queries the account and applies faults.

import { randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import type { Account } from '../account/account.ts';
import type { Choices } from '../behaviour/choices.ts';
import type { Fault, Route } from '../behaviour/faults.ts';
import type { BoardRow } from '../people/applications.ts';
import type { Verbatim } from '../wire/wire.ts';
import { toEncoded } from './charset.ts';
import { answerDownload, answerScreen } from './downloads.ts';
import { toError, toLoginPage, toThrottled } from './errors.ts';
import { type Listing, type Notation, renderListing } from './listing.ts';
import { toMishap } from './mishap.ts';
import type { RequestLog } from './request-log.ts';
import { readFilters, selectRows } from './selection.ts';
import { sendAnswer, type WireAnswer } from './transport.ts';

export interface V1Options {
  /** The accounts by their credentials. */
  readonly accounts: ReadonlyMap<string, Account>;
  /** The account whose choices apply to requests without a valid credential. */
  readonly first: Account;
  readonly log: RequestLog;
}

type V1Context = Context<{ Bindings: HttpBindings }>;

interface RequestTarget {
  readonly route: Route;
  readonly applicationId: bigint | null;
}

/** The routes under /v1. */
export function createV1(options: V1Options): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  // Case sensitivity of paths is a choice of the account, so paths are matched here and not by the router.
  app.all('*', async (context) => {
    const account = options.accounts.get(readCredential(context.req.header('authorization'))) ?? null;
    const chosen = account ?? options.first;
    const target = readPath(new URL(context.req.url).pathname, chosen);
    const entry = options.log.begin(context.req.raw, account?.advertiserId ?? null);
    const faults = account && target ? account.armed.take(target) : [];
    entry.faults = faults.map((fault) => fault.kind);
    const answer = account ? toAnswer(context, account, target, faults) : toRefused(chosen, context);
    entry.status = answer.status;
    await sendAnswer(context.env.outgoing, answer, chosen.choices.framing, faults);
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

/** Spec: `Authorization: SWS <CREDENTIAL>`. */
function readCredential(header: string | undefined): string {
  return header?.startsWith('SWS ') ? header.slice(4) : '';
}

const folders: Readonly<Record<string, Route>> = {
  resume: 'resume',
  coverletter: 'coverLetter',
  selectioncriteria: 'selectionCriteria',
  screen: 'screen',
};

function readPath(path: string, account: Account): RequestTarget | null {
  const seen = account.choices.pathCase === 'any' ? path.toLowerCase() : path;
  if (seen === '/v1/advertiser/applications') return { route: 'list', applicationId: null };
  const [, folder = '', id = ''] = /^\/v1\/advertiser\/applications\/([A-Za-z]+)\/(-?\d{1,30})$/.exec(seen) ?? [];
  const route = Object.hasOwn(folders, folder) ? folders[folder] : undefined;
  return route ? { route, applicationId: BigInt(id) } : null;
}

function toRefused(first: Account, context: V1Context): WireAnswer {
  const { choices } = first;
  if (choices.credentialRefused === 'redirect') {
    return { status: 302, headers: { Location: `${new URL(context.req.url).origin}/login` }, body: null };
  }
  return toError(choices, Number(choices.credentialRefused), 'The credential is not accepted.');
}

function toAnswer(
  context: V1Context,
  account: Account,
  target: RequestTarget | null,
  faults: readonly Fault[],
): WireAnswer {
  const { choices } = account;
  account.requestCount += 1;
  if (account.isOverRate()) return toThrottled(choices, choices.retryAfter, 1, account.now());
  if (choices.sunset === 'gone') return toError(choices, 410, 'This version is no longer served.');
  const mishap = toMishap(account, context.req.url, faults);
  if (mishap) return mishap;
  if (!target || context.req.method !== 'GET') {
    if (choices.unknownPath === 'html200') return toLoginPage();
    return toError(choices, choices.unknownPath === 'refuse405' ? 405 : 404, 'There is nothing at this address.');
  }
  const answer = toRouted(context, account, target, faults);
  if (choices.sunset === 'none') return answer;
  return { ...answer, headers: { ...answer.headers, Sunset: 'Wed, 31 Dec 2031 23:59:59 GMT', Deprecation: 'true' } };
}

function toRouted(context: V1Context, account: Account, target: RequestTarget, faults: readonly Fault[]): WireAnswer {
  const { choices } = account;
  const { route, applicationId } = target;
  if (route !== 'list' && route !== 'screen') {
    return answerDownload(
      account,
      route,
      applicationId ?? 0n,
      faults.some((fault) => fault.kind === 'otherBytes'),
    );
  }
  const notation = chooseNotation(context, choices);
  if (!notation) return toError(choices, 406, 'Neither application/json nor application/xml is accepted.');
  if (route === 'screen') {
    const screen = answerScreen(account, applicationId ?? 0n, notation);
    return typeof screen === 'string' ? toEncoded([screen], notation, choices) : screen;
  }
  const listing = toListing(context, account, faults);
  if ('status' in listing) return listing;
  if (listing.elements.length === 0) {
    if (choices.empty === 'emptyBody')
      return { status: 200, headers: { 'Content-Type': `application/${notation}; charset=utf-8` }, body: [] };
    if (choices.empty === 'noContent') return { status: 204, headers: {}, body: null };
    if (choices.empty === 'notFound') return toError(choices, 404, 'No applications.');
  }
  return toEncoded(renderListing(listing, notation), notation, choices);
}

function toListing(context: V1Context, account: Account, faults: readonly Fault[]): Listing | WireAnswer {
  const { choices } = account;
  const query = new URL(context.req.url).searchParams;
  const filters = readFilters(query, choices);
  if ('unreadable' in filters) {
    if (choices.invalidFilter === 'refuse400') return toError(choices, 400, `${filters.unreadable} cannot be read.`);
    return {
      account,
      advertiserId: account.advertiserId,
      filters: {},
      query,
      elements: [],
      withInfo: false,
    };
  }
  const isMixed = Object.keys(filters).length > 1;
  if (isMixed && choices.combination === 'refuse400')
    return toError(choices, 400, 'These filters cannot be used together.');
  if (isMixed && choices.combination === 'refuse403')
    return toError(choices, 403, 'These filters cannot be used together.');
  const include = query.get('include');
  const isKnown = include === null || include === 'primaryjobseekinginfo';
  if (!isKnown && choices.includeUnknown === 'refuse400') return toError(choices, 400, 'include cannot be read.');
  const asked = include !== null && (isKnown || choices.includeUnknown === 'include');
  const withInfo = choices.includeHonoured === 'always' || (choices.includeHonoured === 'asked' && asked);
  for (const fault of faults) if (fault.kind === 'grow') account.add(fault.count);
  const other = faults.find((fault) => fault.kind === 'otherAdvertiser');
  const elements = spoil(selectRows(account, filters), faults);
  return {
    account,
    advertiserId: other?.advertiserId ?? account.advertiserId,
    filters,
    query,
    elements,
    withInfo,
  };
}

/** Applies the faults that add elements to a page. */
function spoil(rows: BoardRow[], faults: readonly Fault[]): (BoardRow | Verbatim)[] {
  let elements: (BoardRow | Verbatim)[] = rows;
  for (const fault of faults) {
    const [first] = rows;
    if (fault.kind === 'poison') {
      const element = { json: fillIn(fault.json), xml: fillIn(fault.xml) };
      elements = elements.toSpliced(fault.position, 0, element);
    }
    if (fault.kind === 'duplicate' && first) {
      elements = [
        ...elements,
        fault.differing ? { ...first, plan: { ...first.plan, email: 'twice@example.com' } } : first,
      ];
    }
  }
  return elements;
}

/** Replaces {{volatile}} by a new value in every answer. */
function fillIn(text: string): string {
  return text.replaceAll('{{volatile}}', () => randomUUID());
}

/** Spec: Accept chooses between application/json and application/xml. Null where the account rejects the request. */
function chooseNotation(context: V1Context, choices: Choices): Notation | null {
  const accept = context.req.header('accept') ?? '';
  const [named, other] = (['json', 'xml'] as const).filter((notation) => accept.includes(`application/${notation}`));
  const unclear = choices.acceptUnclear === 'refuse406' ? null : choices.acceptUnclear;
  const notation = named === undefined || other !== undefined ? unclear : named;
  if (choices.formatHonoured === 'asked' || notation === null) return notation;
  return notation === 'json' ? 'xml' : 'json';
}

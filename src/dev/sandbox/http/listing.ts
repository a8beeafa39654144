// Renders a list answer: the envelope with its echoes, then one application after the other. The text is generated in pieces, so an
// answer with 200,000 applications is never in memory as a whole.

import type { Account } from '../account/account.ts';
import type { Choices } from '../behaviour/choices.ts';
import type { BoardRow } from '../people/applications.ts';
import { toWire } from '../wire/application-wire.ts';
import { renderJson, toKey } from '../wire/render-json.ts';
import { renderNamespaces, renderXml, toTag, toXmlOrder } from '../wire/render-xml.ts';
import type { Member, Verbatim, Wire } from '../wire/wire.ts';
import type { Filters } from './selection.ts';

export type Notation = 'json' | 'xml';

/** The content of one list answer. */
export interface Listing {
  readonly account: Account;
  readonly advertiserId: bigint;
  readonly filters: Filters;
  readonly query: URLSearchParams;
  readonly elements: readonly (BoardRow | Verbatim)[];
  readonly withInfo: boolean;
}

/** The body of a list answer, in pieces. */
export function renderListing(listing: Listing, notation: Notation): Iterable<string> {
  return notation === 'json' ? renderJsonListing(listing) : renderXmlListing(listing);
}

function* renderJsonListing(listing: Listing): Generator<string> {
  const { choices } = listing.account;
  const isEmpty = listing.elements.length === 0;
  const key = (name: string) => JSON.stringify(toKey(name, choices));
  if (isEmpty && choices.empty === 'emptyObject') return yield '{}';
  if (isEmpty && choices.empty === 'nullResult') return yield `{${key('JobApplications')}:null}`;
  if ((isEmpty && choices.empty === 'bareList') || choices.topLevel === 'bareList')
    return yield* renderJsonElements(listing);
  if (choices.topLevel === 'wrapped') yield `{${key('JobApplications')}:`;
  const members = toEnvelope(listing).map(([name, value]) => `${key(name)}:${renderJson(value, choices)}`);
  if (isEmpty && choices.empty === 'missingKey') yield `{${members.join(',')}}`;
  else {
    yield `{${members.join(',')}${members.length > 0 ? ',' : ''}${key('JobApplicationsList')}:`;
    if (isEmpty && choices.empty === 'null') yield 'null';
    else yield* renderJsonElements(listing);
    yield '}';
  }
  if (choices.topLevel === 'wrapped') yield '}';
}

function* renderJsonElements(listing: Listing): Generator<string> {
  const { choices } = listing.account;
  const alone = choices.single === 'object' && listing.elements.length === 1;
  if (!alone) yield '[';
  let first = true;
  for (const text of renderElements(listing, 'json')) {
    yield first ? text : `,${text}`;
    first = false;
  }
  if (!alone) yield ']';
}

/** Spec silent: the list in XML. The elements have the names of the JSON members. */
function* renderXmlListing(listing: Listing): Generator<string> {
  const { choices } = listing.account;
  const isEmpty = listing.elements.length === 0;
  const root = toTag('JobApplications', choices);
  const open = `<?xml version="1.0" encoding="utf-8"?><${root}${renderNamespaces(choices)}`;
  if (isEmpty && (choices.empty === 'emptyObject' || choices.empty === 'nullResult')) return yield `${open}/>`;
  yield `${open}>`;
  for (const [name, value] of toXmlOrder([...toEnvelope(listing), ['JobApplicationsList', 'elements']], choices)) {
    if (name !== 'JobApplicationsList') yield renderXml(name, value, choices);
    else if (!isEmpty) yield* renderXmlElements(listing);
    else if (choices.empty === 'null') yield renderXml(name, null, choices);
    else if (choices.empty !== 'missingKey') yield `<${toTag(name, choices)}/>`;
  }
  yield `</${root}>`;
}

function* renderXmlElements(listing: Listing): Generator<string> {
  const { choices } = listing.account;
  const list = toTag('JobApplicationsList', choices);
  yield `<${list}>`;
  yield* renderElements(listing, 'xml');
  yield `</${list}>`;
}

/** The elements as text, as many as fit into the account's byte limit. */
function* renderElements(listing: Listing, notation: Notation): Generator<string> {
  const { pageCapBytes } = listing.account.choices;
  let sizeBytes = 0;
  for (const element of listing.elements) {
    const text = renderElement(listing, element, notation);
    const isFirst = sizeBytes === 0;
    if (pageCapBytes !== null) sizeBytes += Buffer.byteLength(text);
    if (pageCapBytes !== null && !isFirst && sizeBytes > pageCapBytes) return;
    yield text;
  }
}

/** A row's text and everything it depends on. Rows are immutable: a change replaces the row. */
interface Rendered {
  readonly choices: Choices;
  readonly withInfo: boolean;
  readonly host: string;
  readonly notation: Notation;
  readonly text: string;
}

/** A sweep requests the same rows dozens of times; rendering them each time took a third of the sandbox's CPU. */
const rendered = new WeakMap<BoardRow, Rendered>();
/** Caching the texts of larger accounts would take hundreds of megabytes. */
const mostRendered = 2_000;

function renderElement(listing: Listing, element: BoardRow | Verbatim, notation: Notation): string {
  const { account, withInfo } = listing;
  const { choices } = account;
  if (!('ordinal' in element)) return renderWire(element, notation, choices);
  const host = account.host();
  const before = rendered.get(element);
  const isCurrent = before?.choices === choices && before.host === host && before.withInfo === withInfo;
  if (before && isCurrent && before.notation === notation) return before.text;
  const text = renderWire(toWire(account.look(element), choices, withInfo, host), notation, choices);
  const isSteady = choices.hash !== 'volatile' && choices.href !== 'signed';
  if (isSteady && account.size <= mostRendered) rendered.set(element, { choices, withInfo, host, notation, text });
  return text;
}

function renderWire(wire: Wire, notation: Notation, choices: Choices): string {
  return notation === 'json' ? renderJson(wire, choices) : renderXml('JobApplication', wire, choices);
}

/** Spec: Job applications result, all but the list. */
function toEnvelope(listing: Listing): Member[] {
  const { account, query, filters } = listing;
  const members: Member[] = [['AdvertiserID', listing.advertiserId]];
  if (account.choices.echo !== 'absent') {
    members.push(
      ['AfterDate', echoDate(listing, filters.afterdate, query.get('afterdate'))],
      ['AfterID', echoId(listing, filters.afterid)],
      ['BeforeDate', echoDate(listing, filters.beforedate, query.get('beforedate'))],
      ['BeforeID', echoId(listing, filters.beforeid)],
    );
  }
  const agents = { null: null, number: 4711, text: 'AGENT-7', changing: account.requestCount };
  if (account.choices.agentId !== 'absent') members.push(['AgentID', agents[account.choices.agentId]]);
  if (account.choices.extraMembers) members.unshift(['__type', 'JobApplications:#Advertiser'], ['Server', 'sandbox']);
  return members;
}

function echoId(listing: Listing, id: bigint | undefined): Wire {
  const { echo } = listing.account.choices;
  if (id === undefined || echo === 'null') return null;
  if (echo === 'wrong') return String(id + 1n);
  return echo === 'number' ? id : String(id);
}

function echoDate(listing: Listing, at: number | undefined, sent: string | null): Wire {
  const { choices } = listing.account;
  if (at === undefined || choices.echo === 'null') return null;
  if (choices.echo === 'text') return sent;
  if (choices.echo === 'wrong') return { moment: at + 3_600_000 };
  if (choices.echo === 'otherZone') return { json: `"/Date(${at}+0000)/"`, xml: new Date(at).toISOString() };
  return { moment: at };
}

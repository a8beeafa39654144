// Serves a hidden server over HTTP in the shape of the list endpoint: `GET /v1/advertiser/applications`, JSON only.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type LocalServer, listenLocally } from '../support/servers/local-server.ts';
import { type HiddenServer, isFailure, type ListedRow, type ListReply, type ListRequest } from './hidden-server.ts';

export interface FaceOptions {
  readonly advertiserId?: number;
  /** Virtual time in milliseconds, by default the machine's clock. Must not go back. */
  readonly clock?: () => number;
}

export async function serveHidden(server: HiddenServer, options: FaceOptions = {}): Promise<LocalServer> {
  return await listenLocally(createServer((request, response) => answer(server, options, request, response)));
}

function answer(server: HiddenServer, options: FaceOptions, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  if (request.method !== 'GET' || url.pathname !== '/v1/advertiser/applications') {
    response.writeHead(404).end();
    return;
  }
  const asked = toRequest(url.searchParams);
  if (asked === null) {
    response.writeHead(400).end();
    return;
  }
  const clock = options.clock ?? Date.now;
  const reply = server.list(asked, clock());
  const headers: Record<string, string> = reply.age === null ? {} : { Age: String(reply.age) };
  if (reply.status !== 200) {
    response.writeHead(reply.status, headers).end();
    return;
  }
  if (reply.body === 'none') {
    response.writeHead(200, headers).end();
    return;
  }
  const whole = toBody(reply, url.searchParams, asked, options.advertiserId ?? 1);
  const body = isFailure(reply) ? whole.slice(0, whole.length / 2) : whole;
  response.writeHead(200, { ...headers, 'Content-Type': 'application/json; charset=utf-8' }).end(body);
}

/** The reader's date filters are ten hours ahead of UTC. */
const readerOffsetSeconds = 36_000;

function toRequest(query: URLSearchParams): ListRequest | null {
  const ids = ['afterid', 'beforeid'].map((name) => query.get(name));
  const dates = ['afterdate', 'beforedate'].map((name) => query.get(name));
  if (ids.some((text) => text !== null && !/^-?\d{1,40}$/.test(text))) return null;
  if (dates.some((text) => text !== null && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text))) return null;
  const [afterId = null, beforeId = null] = ids.map((text) => (text === null ? null : BigInt(text)));
  const [afterDate = null, beforeDate = null] = dates.map((text) =>
    text === null ? null : Date.parse(`${text}Z`) / 1000 - readerOffsetSeconds,
  );
  if (Number.isNaN(afterDate) || Number.isNaN(beforeDate)) return null;
  return { afterId, beforeId, afterDate, beforeDate };
}

/** Builds the body without JSON.stringify, because ids may exceed 2^53. */
function toBody(reply: ListReply, query: URLSearchParams, asked: ListRequest, advertiserId: number): string {
  const echoes = reply.echo === 'absent' ? '' : toEchoes(asked, query, reply.echo === 'differs');
  const rows = reply.rows.map(toElement).join(',');
  const body = `{"JobApplications":{"AdvertiserID":${advertiserId},${echoes}"AgentID":null,"JobApplicationsList":[${rows}]}}`;
  // Trailing white space pads the body to the size of the reply.
  return body.padEnd(reply.bytes, ' ');
}

function toEchoes(asked: ListRequest, query: URLSearchParams, wrong: boolean): string {
  const id = (name: string) => {
    const sent = query.get(name);
    if (sent === null) return wrong ? '"1"' : 'null';
    return `"${wrong ? BigInt(sent) + 1n : sent}"`;
  };
  const date = (seconds: number | null) => (seconds === null ? 'null' : toDateText(seconds + (wrong ? 86_400 : 0)));
  const dates = [date(asked.afterDate), date(asked.beforeDate)] as const;
  return `"AfterDate":${dates[0]},"AfterID":${id('afterid')},"BeforeDate":${dates[1]},"BeforeID":${id('beforeid')},`;
}

function toElement(row: ListedRow): string {
  const person = `${row.id % 1_000_003n}`;
  const date = row.submittedAt === null ? '"unknown"' : toDateText(row.submittedAt);
  const toText = (padding: number) =>
    `{"ID":${row.unreadable ? `"no ${row.id}"` : row.id},"DateSubmitted":${date},"Email":"p${person}@example.test","FirstName":"First","LastName":"Last ${person}",` +
    `"Phone":"0400000000","JobSeekerID":"S${person}","JobReference":"R${'x'.repeat(padding)}","Attachments":[]}`;
  return toText(Math.max(0, row.bytes - toText(0).length));
}

function toDateText(seconds: number): string {
  return `"/Date(${seconds * 1000}+1000)/"`;
}

// A receiver of Intake's webhooks in one file, with Node alone: npx node examples/receive-webhooks.ts, with WEBHOOK_SECRET set.
// It verifies each message (Standard Webhooks 1.0.0), takes each event once and in order because it keeps the last one of each advertiser,
// notices a restore of Intake's database, and shows the newest on a page. INBOX names a file to keep them in; PORT is 8091 if it is not set.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

interface Message {
  readonly type: string;
  readonly timestamp: string;
  readonly data: { readonly event_id: bigint; readonly advertiser_id: bigint; readonly application_id: bigint };
}

/** Ids have up to 19 digits, of which a JavaScript number holds 15. */
const parse = (text: string): Message =>
  JSON.parse(text, (key, value, { source }: { source?: string } = {}) =>
    key.endsWith('_id') && typeof value === 'number' && source ? BigInt(source) : value,
  ) as Message;

const { WEBHOOK_SECRET = '', INBOX, PORT = '8091' } = process.env;
const secrets = WEBHOOK_SECRET.match(/\S+/g) ?? [];
const keys = secrets.map((secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64'));
// Anyone can sign with an empty key.
if (keys.length === 0 || keys.some((key) => key.length < 24)) {
  console.error('Set WEBHOOK_SECRET, the same as at Intake.');
  process.exit(2);
}

/** The inbox. An event and the position after it are one line, so that a crash keeps both or neither. */
const inbox: Message[] =
  INBOX && existsSync(INBOX)
    ? readFileSync(INBOX, 'utf8')
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [parse(line)]))
    : [];
const lasts = new Map(inbox.map((message) => [message.data.advertiser_id, message]));

/**
 * Takes an event. One that is newer neither by number nor by time is a repetition: delivery is at least once. A number that is used again at
 * a later time means that Intake's database was restored.
 */
function take(body: string): void {
  const message = parse(body);
  const { event_id, advertiser_id, application_id } = message.data;
  const what = `event ${event_id} of advertiser ${advertiser_id}: ${message.type} of ${application_id}`;
  const last = lasts.get(advertiser_id);
  const isNext = last === undefined || event_id > last.data.event_id;
  if (!isNext && message.timestamp <= last.timestamp) {
    console.log(`${what}, again`);
    return;
  }
  if (!isNext) console.log(`Intake's database was restored: read all applications of ${advertiser_id} anew.`);
  if (INBOX) appendFileSync(INBOX, `${body}\n`, { flush: true });
  inbox.push(message);
  lasts.set(advertiser_id, message);
  console.log(what);
}

const toleranceSeconds = 300;
const mostBytes = 1_000_000;

/** True for a message that was signed with the secret within the last five minutes. */
function isGenuine(headers: IncomingHttpHeaders, body: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures } = headers;
  if (!(Math.abs(Date.now() / 1_000 - Number(seconds)) <= toleranceSeconds)) return false;
  return keys.some((key) => {
    const expected = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest();
    return String(signatures)
      .split(' ')
      .map((one) => Buffer.from(one.replace(/^v1,/, ''), 'base64'))
      .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
  });
}

function answer(response: ServerResponse, status: number, type = 'text/plain', body = ''): void {
  response.writeHead(status, { 'content-type': `${type}; charset=utf-8` }).end(body);
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET') return answer(response, 200, 'text/html', toPage());
  // A stranger could send without end.
  if (!(Number(request.headers['content-length']) <= mostBytes)) return answer(response, 413);
  const body = await text(request);
  if (!isGenuine(request.headers, body)) return answer(response, 401);
  // Answer only when the event is safe: whatever is not answered with 2xx comes again.
  if (parse(body).type.startsWith('application.')) take(body);
  answer(response, 204);
}

// A sender that hangs up fails only its own request.
const server = createServer((request, response) => {
  receive(request, response).catch(() => response.destroy());
});

/** Types, numbers and times only, so nothing has to be escaped. */
function toPage(): string {
  const rows = inbox
    .slice(-50)
    .reverse()
    .map(
      ({ type, timestamp, data }) => `<tr><td>${[data.event_id, type, data.application_id, timestamp].join('<td>')}`,
    );
  return `<!doctype html><meta http-equiv="refresh" content="2"><title>Webhooks</title><h1>${inbox.length} events received</h1>
<table><tr><th>event<th>type<th>application<th>time${rows.join('\n')}</table>`;
}

server.listen(Number(PORT), '127.0.0.1', () => console.log(`Webhooks are received at http://127.0.0.1:${PORT}/`));
// A demo starts this process with an IPC channel, which closes when the demo ends.
process.once('disconnect', () => process.exit());

// A receiver of webhooks. It verifies every message with the package standardwebhooks, and answers as a test says.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { listenLocally } from './local-server.ts';

/** Two secrets, as `openssl rand -base64 32` makes them. */
export const [webhookSecret, newWebhookSecret] = ['one', 'two'].map(
  (word) => `whsec_${Buffer.from(`${word} secret of thirty-two bytes!!!`.padEnd(32, '.')).toString('base64')}`,
) as [string, string];

interface Message {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Received {
  /** The header webhook-id. */
  readonly id: string;
  readonly message: Message;
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
  /** The status it was answered with; null where the test answered by itself. */
  readonly status: number | null;
}

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
  /** The ids of events that were answered with 2xx, in this order. */
  taken(): number[];
  /** Connections so far. */
  connections(): number;
  /** The secret that it knows. */
  secret: string;
  /** Says what a message is answered with: a status, with headers, or null for an answer that the function gives itself. */
  answer: (received: Omit<Received, 'status'>, response: ServerResponse) => Reply | Promise<Reply>;
}

type Reply = number | { readonly status: number; readonly headers: Record<string, string> } | null;

/** Opens a receiver that takes everything. A message whose signature is wrong is answered with 401. */
export async function openReceiver(answer: Receiver['answer'] = () => 204, host = '127.0.0.1'): Promise<Receiver> {
  const received: Received[] = [];
  let connections = 0;
  const server = createServer((request, response) => void take(request, response));
  server.on('connection', () => {
    connections++;
  });
  const local = await listenLocally(server, host);

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const one = { id: String(request.headers['webhook-id']), text: body, headers: request.headers };
    let message: Message;
    try {
      message = new Webhook(receiver.secret).verify(body, request.headers as Record<string, string>) as Message;
    } catch {
      received.push({ ...one, message: JSON.parse(body), status: 401 });
      return void response.writeHead(401).end();
    }
    const reply = await receiver.answer({ ...one, message }, response);
    if (reply === null) return void received.push({ ...one, message, status: null });
    const { status, headers } = typeof reply === 'number' ? { status: reply, headers: {} } : reply;
    received.push({ ...one, message, status });
    response.writeHead(status, headers).end();
  }

  const receiver: Receiver = {
    ...local,
    url: `${local.url}/hook`,
    received,
    taken: () =>
      received
        .filter(({ status }) => status !== null && status >= 200 && status < 300)
        .map(({ message }) => Number(message.data.event_id)),
    connections: () => connections,
    secret: webhookSecret,
    answer,
  };
  return receiver;
}

// Sends one message to an endpoint and tells what it answered. It trusts nothing of the endpoint: it follows no redirect, reads a bounded
// part of the answer within a bounded time, and connects only to addresses that were checked. Never throws for what an endpoint does.
import { promises as dns, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Agent } from 'undici';
import { toCertificateProblem, toConnectionReason, toHostAndPort } from '../domain/connection-error.ts';
import { parseRetryAfter } from '../domain/delay.ts';
import { version } from '../domain/version.ts';
import type { Answer, WebhookMessage } from '../domain/webhook.ts';
import { isPublic } from './public-address.ts';
import { sign } from './sign.ts';

export interface WebhookClientOptions {
  readonly url: string;
  /** Called for each message, so that a secret can be rotated. */
  readonly secrets: () => readonly string[];
  /** Also connects to private, link-local and loopback addresses. */
  readonly allowPrivate: boolean;
  /** Time limit of one message, from its first byte to the end of the answer. */
  readonly timeoutMs?: number | undefined;
  /** Resolves names; a test gives its own. */
  readonly resolve?: Resolve | undefined;
}

export type Resolve = (
  hostname: string,
  options: { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface WebhookClient extends AsyncDisposable {
  send(message: WebhookMessage): Promise<Answer>;
}

/** Less than the 20 seconds that a worker has to end: a message in flight is finished, not repeated. */
const usualTimeoutMs = 15_000;
/** Of an answer only the status counts. A longer body costs the connection. */
const bodyMaxBytes = 65_536;
const headersMaxBytes = 16_384;
const refusedCode = 'EPRIVATE';

/** The client of one endpoint. It keeps one connection: messages are sent one after the other, and no endpoint waits for another. */
export function openWebhookClient(options: WebhookClientOptions): WebhookClient {
  const { allowPrivate, secrets, timeoutMs = usualTimeoutMs } = options;
  const url = new URL(options.url);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const address = toHostAndPort(url);
  // A host that is an address is not looked up. Name servers do not know localhost.
  const isRefused = !allowPrivate && (/(?:^|\.)localhost\.?$/.test(host) || (isIP(host) !== 0 && !isPublic(host)));
  const agent = new Agent({
    connections: 1,
    pipelining: 1,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: headersMaxBytes,
    allowH2: false,
    connect: {
      timeout: timeoutMs,
      ...(!allowPrivate && { lookup: createPublicLookup(options.resolve ?? askServers) }),
    },
  });

  return {
    async send({ id, body, at }) {
      if (isRefused) return toNoAnswer(refusedCode, address);
      const seconds = Math.floor(at.getTime() / 1_000);
      try {
        const response = await agent.request({
          origin: url.origin,
          path: url.pathname + url.search,
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'user-agent': `intake/${version}`,
            'webhook-id': id,
            'webhook-timestamp': String(seconds),
            'webhook-signature': sign(secrets(), id, seconds, body),
          },
          body,
          signal: AbortSignal.timeout(timeoutMs),
        });
        // Read to its end, so that the connection can be used again. A body that is too long or too slow closes the connection.
        await response.body.dump({ limit: bodyMaxBytes }).catch(() => {});
        const { 'retry-after': retryAfter, date } = response.headers;
        const retryAfterMs = parseRetryAfter([retryAfter].flat()[0], [date].flat()[0], Date.now());
        return { status: response.statusCode, retryAfterMs };
      } catch (error) {
        return toNoAnswer(toCode(error), address);
      }
    },
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

/**
 * Asks the name servers. The system's resolver, which `lookup` calls, would hold one of the four threads that files need for as long as a
 * name server does not answer. It also knows the names of private networks, which lead to no public address.
 */
const askServers: Resolve = async (hostname, _options, done) => {
  const resolver = new dns.Resolver({ timeout: 2_000, tries: 2 });
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  if (four.status === 'rejected' && six.status === 'rejected') return done(four.reason, []);
  const addresses = [four, six].flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  done(
    null,
    addresses.map((address) => ({ address, family: isIP(address) })),
  );
};

/** Gives the socket only public addresses, so that what was checked is what is connected to, whatever the name resolves to later. */
export function createPublicLookup(resolve: Resolve): LookupFunction {
  return (hostname, { all }, done) => {
    resolve(hostname, { all: true }, (error, addresses) => {
      if (error) return done(error, '', 0);
      const allowed = addresses.filter((one) => isPublic(one.address));
      const [first] = allowed;
      if (first === undefined) return done(Object.assign(new Error('not public'), { code: refusedCode }), '', 0);
      if (all) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
}

function toCode(error: unknown): string {
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  if (name === 'TimeoutError') return 'TIMEOUT';
  return typeof code === 'string' && /^\w+$/.test(code) ? code : 'no reason given';
}

const timeouts = new Set(['TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Never passes on an error's own text: it may hold what the endpoint sent, or the path of its address, which may be a secret. */
function toNoAnswer(code: string, address: string) {
  const problem = toCertificateProblem(code, address, 'file in NODE_EXTRA_CA_CERTS');
  const isTimeout = timeouts.has(code);
  const reason =
    code === refusedCode
      ? `${address} is not an address of the internet; WEBHOOK_ALLOW_PRIVATE=true allows it`
      : isTimeout
        ? `${address} did not answer in time`
        : (problem ?? `the connection to ${address} failed (${toConnectionReason(code)})`);
  return { status: null, reason } satisfies Answer;
}

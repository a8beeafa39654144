// Sends one message to an endpoint and tells what it answered. It trusts nothing of the endpoint: it follows no redirect, reads a bounded
// part of the answer within a bounded time, and connects only to addresses that were checked. Never throws for what an endpoint does.
import { createHmac } from 'node:crypto';
import { promises as dns } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Agent } from 'undici';
import { version } from '../domain/schema.ts';
import { parseRetryAfter, toCertificateProblem, toConnectionReason, toHostAndPort } from '../domain/trouble.ts';
import type { Answer, WebhookMessage } from '../domain/webhook.ts';

export interface WebhookClientOptions {
  readonly url: string;
  /** Called for each message, so that a secret can be rotated. */
  readonly secrets: () => readonly string[];
  /** Also connects to private, link-local and loopback addresses. */
  readonly allowPrivate: boolean;
  /** Time limit of one message, from its first byte to the end of the answer. */
  readonly timeoutMs?: number | undefined;
  /** Resolves names; a test gives its own. */
  readonly resolve?: typeof askServers | undefined;
}

export interface WebhookClient extends AsyncDisposable {
  send(message: WebhookMessage): Promise<Answer>;
}

/** Less than the 20 seconds that a worker has to end: a message in flight is finished, not repeated. */
const usualTimeoutMs = 15_000;
/** Of an answer only the status counts. A longer body costs the connection. */
const bodyMaxBytes = 65_536;
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
    maxHeaderSize: 16_384,
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
async function askServers(hostname: string): Promise<string[]> {
  const resolver = new dns.Resolver({ timeout: 2_000, tries: 2 });
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  if (four.status === 'rejected' && six.status === 'rejected') throw four.reason;
  return [four, six].flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
}

/** Gives the socket only public addresses, so that what was checked is what is connected to, whatever the name resolves to later. */
export function createPublicLookup(resolve: typeof askServers): LookupFunction {
  return (hostname, { all }, done) => {
    const pass = (addresses: readonly string[]) => {
      const allowed = addresses.filter(isPublic).map((address) => ({ address, family: isIP(address) }));
      const [first] = allowed;
      if (first === undefined) done(Object.assign(new Error('not public'), { code: refusedCode }), '', 0);
      else if (all) done(null, allowed);
      else done(null, first.address, first.family);
    };
    resolve(hostname).then(pass, (error: NodeJS.ErrnoException) => done(error, '', 0));
  };
}

/**
 * Networks that are not reachable over the internet (IANA's registry of special-purpose addresses), multicast and reserved ones. An endpoint
 * there could be a service that trusts its neighbours, and a name may come to lead there without the operator's doing.
 */
const notPublic4 = toList('ipv4', [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
  // Every machine in Azure reaches its host at this address.
  '168.63.129.16/32',
]);
/** All other networks of IPv6, among them loopback, link-local, mapped and translated IPv4 addresses, are not public. */
const public6 = toList('ipv6', ['2000::/3']);
/** Teredo and other protocol assignments, documentation, 6to4. */
const notPublic6 = toList('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** True for an address of the internet. */
export function isPublic(address: string): boolean {
  // A zone belongs to a link-local address.
  if (address.includes('%')) return false;
  const family = isIP(address);
  if (family === 4) return !notPublic4.check(address, 'ipv4');
  return family === 6 && public6.check(address, 'ipv6') && !notPublic6.check(address, 'ipv6');
}

function toList(family: 'ipv4' | 'ipv6', networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** The header `webhook-signature` of Standard Webhooks 1.0.0. While a secret is rotated there are two, and a receiver that knows either accepts the message. */
export function sign(secrets: readonly string[], id: string, seconds: number, body: string): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`;
    })
    .join(' ');
}

function toCode(error: unknown): string {
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  if (name === 'TimeoutError') return 'TIMEOUT';
  return typeof code === 'string' && /^\w+$/.test(code) ? code : 'no reason given';
}

const timeouts = new Set(['TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Never passes on an error's own text: it may hold what the endpoint sent, or the path of its address, which may be a secret. */
function toNoAnswer(code: string, address: string): Answer {
  if (code === refusedCode) {
    const reason = `${address} is not an address of the internet; WEBHOOK_ALLOW_PRIVATE=true allows it`;
    return { status: null, reason };
  }
  if (timeouts.has(code)) return { status: null, reason: `${address} did not answer in time` };
  const problem = toCertificateProblem(code, address, 'file in NODE_EXTRA_CA_CERTS');
  return { status: null, reason: problem ?? `the connection to ${address} failed (${toConnectionReason(code)})` };
}

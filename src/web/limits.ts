// Limits per client address: requests, and failed keys and logins. One token bucket per address; memory is bounded, whatever the number
// of addresses. An address in X-Forwarded-For counts only if a trusted proxy wrote it.

import { hash, timingSafeEqual } from 'node:crypto';
import { type BlockList, isIP } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import type { Context, MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';

export interface Clients {
  /** Whose X-Forwarded-For counts. */
  readonly trustedProxies: BlockList;
  readonly now: () => number;
}

const mostAddresses = 10_000;

/** Each bucket holds `burst` requests, which an address may make at once, and regains one every `refillMs`. */
function createBuckets(burst: number, refillMs: number, now: () => number) {
  const buckets = new Map<string, { left: number; at: number }>();
  return {
    /** Takes one from the address's bucket. Returns how many seconds to wait if it is empty, which costs nothing, else 0. */
    take(address: string): number {
      const at = now();
      const before = buckets.get(address) ?? { left: burst, at };
      const left = Math.min(burst, before.left + Math.max(0, at - before.at) / refillMs);
      // Reinserted at the end, so that the first entry of the map is the address that has been idle longest.
      buckets.delete(address);
      buckets.set(address, { left: left >= 1 ? left - 1 : left, at });
      if (buckets.size > mostAddresses) for (const first of buckets.keys().take(1)) buckets.delete(first);
      return left >= 1 ? 0 : Math.ceil(((1 - left) * refillMs) / 1000);
    },
    giveBack(address: string): void {
      const bucket = buckets.get(address);
      if (bucket) bucket.left += 1;
    },
  };
}

export function createRateLimit(
  { trustedProxies, now }: Clients,
  burst: number,
  refillMs: number,
  refuse: (context: Context) => Response | Promise<Response>,
): MiddlewareHandler {
  const buckets = createBuckets(burst, refillMs, now);
  return async (context, next) => {
    const waitSeconds = buckets.take(findAddress(context, trustedProxies));
    if (waitSeconds === 0) return await next();
    context.header('Retry-After', String(waitSeconds));
    return await refuse(context);
  };
}

/** Passes on whether a key or a login is right. An address that has failed too often gets 429, even with the right one. */
export function createGuessLimit({ trustedProxies, now }: Clients): (context: Context, isRight: boolean) => boolean {
  const buckets = createBuckets(10, 6_000, now);
  return (context, isRight) => {
    const address = findAddress(context, trustedProxies);
    const waitSeconds = buckets.take(address);
    if (waitSeconds > 0) {
      const headers = { 'Retry-After': String(waitSeconds) };
      throw new HTTPException(429, { res: new Response('Too many failed attempts.', { status: 429, headers }) });
    }
    if (isRight) buckets.giveBack(address);
    return isRight;
  };
}

/** Compares secrets in a time that says nothing about them. */
export function isEqualSecret(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'));
}

/** A hash, because V8 keeps the whole header alive for a part of it. */
function findAddress({ env, req }: Context<{ Bindings: HttpBindings }>, trustedProxies: BlockList): string {
  return hash('sha256', findClient(env.incoming.socket.remoteAddress, req.header('x-forwarded-for'), trustedProxies));
}

/**
 * The address that counts: the peer's, or the last one in X-Forwarded-For that no trusted proxy has. Each proxy appends the address of its
 * own peer, so all others may be forged.
 */
export function findClient(peer: string | undefined, forwardedFor = '', trustedProxies: BlockList): string {
  let address = toPlain(peer ?? '');
  for (const entry of forwardedFor.split(',').reverse()) {
    const next = toPlain(entry);
    if (isIP(next) === 0 || !trustedProxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')) break;
    address = next;
  }
  return address.includes(':') ? toNetwork(address) : address;
}

/** The address alone: some proxies append the port, and put IPv6 in brackets. */
function toPlain(address: string): string {
  const bare = address.trim().replace(/^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2');
  return bare.replace(/^::ffff:(?=\d{1,3}\.)/i, '');
}

/** The /64 of an IPv6 address, since a household or office has a whole /64. `::` is expanded first. */
function toNetwork(address: string): string {
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}

// How often one address may ask: a bucket per address that fills evenly. Memory is bounded, whatever the number of addresses.

import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';

export interface RateLimitOptions {
  /** Requests that an address may make at once. */
  readonly burst: number;
  /** How long until it has one more. */
  readonly refillMs: number;
  readonly now: () => number;
  /** What those get who ask too often. */
  readonly refuse: MiddlewareHandler;
}

const mostAddresses = 10_000;

/** Middleware that counts requests by the address they come from. */
export function createRateLimit({ burst, refillMs, now, refuse }: RateLimitOptions): MiddlewareHandler<{
  Bindings: HttpBindings;
}> {
  const buckets = new Map<string, { left: number; at: number }>();
  return async (context, next) => {
    const address = toAddress(context.env.incoming.socket.remoteAddress, context.req.header('x-forwarded-for'));
    const at = now();
    const before = buckets.get(address) ?? { left: burst, at };
    const left = Math.min(burst, before.left + (at - before.at) / refillMs);
    // Put back at the end: the first of the map is the one that was quiet for longest.
    buckets.delete(address);
    buckets.set(address, { left: Math.max(0, left - 1), at });
    if (buckets.size > mostAddresses) for (const first of buckets.keys().take(1)) buckets.delete(first);
    if (left >= 1) return await next();
    context.header('Retry-After', String(Math.ceil(((1 - left) * refillMs) / 1000)));
    return await refuse(context, next);
  };
}

/**
 * The peer; or, where the peer stands in a private network and is thus our own proxy, the address that it says it was asked from:
 * the last of the list, since everything before it was written by strangers.
 */
export function toAddress(peer: string | undefined, forwardedFor: string | undefined): string {
  const own = toPlain(peer ?? '');
  const told = forwardedFor?.split(',').at(-1)?.trim();
  const address = told && isPrivate(own) ? toPlain(told) : own;
  return address.includes(':') ? toNetwork(address) : address;
}

/** The address alone: some proxies write its port behind it, and then brackets around IPv6. */
function toPlain(address: string): string {
  const bare = address.replace(/^\[(.*)\](?::\d+)?$/, '$1').replace(/^([\d.]+):\d+$/, '$1');
  return bare.replace(/^::ffff:(?=\d+\.)/i, '').slice(0, 45);
}

/** The /64 of an IPv6 address: a household or office has a whole one. The zeros that `::` leaves out are counted. */
function toNetwork(address: string): string {
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}

function isPrivate(address: string): boolean {
  return /^(?:127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|::1$|f[cd])/i.test(address);
}

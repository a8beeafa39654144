// Limits requests per client address: one token bucket each. Memory is bounded, whatever the number of addresses.

import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';

export interface RateLimitOptions {
  /** Requests that an address may make at once: the size of its bucket. */
  readonly burst: number;
  /** The time in which a bucket regains one request. */
  readonly refillMs: number;
  readonly now: () => number;
  /** Answers a request beyond the limit. */
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
    // Reinserted at the end, so that the first entry of the map is the address that has been idle longest.
    buckets.delete(address);
    buckets.set(address, { left: Math.max(0, left - 1), at });
    if (buckets.size > mostAddresses) for (const first of buckets.keys().take(1)) buckets.delete(first);
    if (left >= 1) return await next();
    context.header('Retry-After', String(Math.ceil(((1 - left) * refillMs) / 1000)));
    return await refuse(context, next);
  };
}

/**
 * The peer's address. A peer in a private network is the operator's own proxy: then it is the last address in X-Forwarded-For, the only
 * one that the proxy itself wrote; clients can forge all others.
 */
export function toAddress(peer: string | undefined, forwardedFor: string | undefined): string {
  const own = toPlain(peer ?? '');
  const told = forwardedFor?.split(',').at(-1)?.trim();
  const address = told && isPrivate(own) ? toPlain(told) : own;
  return address.includes(':') ? toNetwork(address) : address;
}

/** The address alone: some proxies append the port, and put IPv6 in brackets. */
function toPlain(address: string): string {
  const bare = address.replace(/^\[(.*)\](?::\d+)?$/, '$1').replace(/^([\d.]+):\d+$/, '$1');
  return bare.replace(/^::ffff:(?=\d+\.)/i, '').slice(0, 45);
}

/** The /64 of an IPv6 address, since a household or office has a whole /64. `::` is expanded first. */
function toNetwork(address: string): string {
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}

function isPrivate(address: string): boolean {
  return /^(?:127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|::1$|f[cd])/i.test(address);
}

// Loaded before a process's own code (`node --import`): notes every connection to an address that is not one of its own, and every
// request whose path is not built from a kind and an id. Whatever Href and redirects say, there is none (P19).

import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import { Socket } from 'node:net';

const own = new Set((process.env.CHAOS_PORTS ?? '').split(','));
const file = process.env.CHAOS_STRANGERS ?? '';
const path =
  /^\/(?:v1\/advertiser\/applications(?:\?|\/(?:resume|coverletter|selectioncriteria|screen)\/-?\d+$)|api\/iam\/oauth2\/token$|v2\/applications\/prefilled$|v2\/resumes\/[\da-f-]{36}$)/;

const connect = Socket.prototype.connect;
Socket.prototype.connect = function connectNoted(this: Socket, ...given: unknown[]) {
  const { host, port } = toTarget(given);
  if (!['127.0.0.1', 'localhost'].includes(host) || !own.has(port))
    note(`${host}:${port} was connected to, an address that is none of ours`);
  return connect.apply(this, given as never);
} as typeof connect;

subscribe('undici:request:create', (message) => {
  const { request } = message as { request: { path: string } };
  if (!path.test(request.path)) note(`${request.path} was asked for, a path that no kind and id make`);
});

function toTarget(given: readonly unknown[]): { readonly host: string; readonly port: string } {
  // From `net.connect` the arguments come as one list.
  const [first, second] = Array.isArray(given[0]) ? given[0] : given;
  const target = (typeof first === 'object' && first !== null ? first : { port: first, host: second }) as {
    host?: unknown;
    port?: unknown;
  };
  return { host: String(target.host ?? '127.0.0.1'), port: String(target.port) };
}

function note(what: string): void {
  appendFileSync(file, `${what}\n`);
}

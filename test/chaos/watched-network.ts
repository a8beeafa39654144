// Loaded before a process's own code (`node --import`). It records every connection to an address outside the plan, and every request whose
// path is not one of the API's. There must be none, whatever Href and redirects contain (P19).

import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import { Socket } from 'node:net';

const own = new Set((process.env.CHAOS_PORTS ?? '').split(','));
const file = process.env.CHAOS_STRANGERS ?? '';
const path =
  /^\/(?:v1\/advertiser\/applications(?:\?|\/(?:resume|coverletter|selectioncriteria|screen)\/-?\d+$)|api\/iam\/oauth2\/token$|v2\/applications\/prefilled$|v2\/resumes\/[\da-f-]{36}$|hook\/account-\d$)/;

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
  // `net.connect` passes its arguments as one array.
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

// Opens the admin port and closes it again. What can be reached from other machines needs a login; what cannot answers to the names of
// this machine only.

import { SettingTrouble } from '../../domain/trouble.ts';
import { type HttpServer, openServer, toHostName } from '../server.ts';
import { type AdminDeps, createAdmin } from './routes.ts';

export interface AdminOptions extends Omit<AdminDeps, 'hosts'> {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

/** Names under which a browser on this machine reaches a port of it. */
const loopbackNames = ['localhost', '127.0.0.1', '[::1]'];

/** Starts to listen. Closing ends requests that are still open: they must not hold up the end of a worker. */
export async function openAdmin({ host, port, ...deps }: AdminOptions): Promise<HttpServer> {
  const isLocal = isLoopback(host);
  if (!isLocal && deps.login === null) {
    throw new SettingTrouble(`The admin port does not open on ${host} without ADMIN_USER and ADMIN_PASSWORD.`);
  }
  const hosts = isLocal ? [...loopbackNames, toHostName(host)] : null;
  const { fetch } = createAdmin({ ...deps, hosts });
  return await openServer({ host, port, fetch, setting: 'ADMIN_PORT', closingMs: 0 });
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127(?:\.\d{1,3}){3}$/.test(host) || /^\[?::1\]?$/.test(host);
}

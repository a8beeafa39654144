// Opens the admin port and closes it again. A port that other machines can reach needs a login; a loopback port answers only requests
// for the names of this machine.

import { SettingTrouble } from '../../domain/trouble.ts';
import { type HttpServer, openServer, toHostName } from '../server.ts';
import { type AdminDeps, createAdmin } from './routes.ts';

export interface AdminOptions extends Omit<AdminDeps, 'hosts'> {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
}

/** Names under which a browser on this machine reaches the port. */
const loopbackNames = ['localhost', '127.0.0.1', '[::1]'];

/** Starts listening. Disposing ends open requests at once: they must not delay the shutdown of a worker. */
export async function openAdmin({ host, port, ...deps }: AdminOptions): Promise<HttpServer> {
  const isLocal = isLoopback(host);
  if (!isLocal && deps.login === null) {
    throw new SettingTrouble(
      `The admin port opens on ${host} only with ADMIN_USER and ADMIN_PASSWORD: other machines could reach it.`,
    );
  }
  const hosts = isLocal ? [...loopbackNames, toHostName(host)] : null;
  const { fetch } = createAdmin({ ...deps, hosts });
  return await openServer({ host, port, fetch, setting: 'ADMIN_PORT', closingMs: 0 });
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127(?:\.\d{1,3}){3}$/.test(host) || /^\[?::1\]?$/.test(host);
}

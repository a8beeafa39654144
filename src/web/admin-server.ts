// Opens the admin port and closes it again. What can be reached from other machines needs a login; what cannot answers to the names of
// this machine only.

import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { SettingTrouble } from '../domain/trouble.ts';
import { type AdminDeps, createAdmin } from './admin.ts';
import { portLimits } from './server.ts';

export interface AdminOptions extends Omit<AdminDeps, 'hosts'> {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

/** A listening admin port. */
export interface Admin extends AsyncDisposable {
  readonly url: string;
}

/** Names under which a browser on this machine reaches a port of it. */
const loopbackNames = ['localhost', '127.0.0.1', '[::1]'];

export async function openAdmin({ host, port, ...deps }: AdminOptions): Promise<Admin> {
  const isLocal = isLoopback(host);
  if (!isLocal && deps.login === null) {
    throw new SettingTrouble(`The admin port does not open on ${host} without ADMIN_USER and ADMIN_PASSWORD.`);
  }
  const hosts = isLocal ? [...loopbackNames, toHostName(host)] : null;
  const server = createAdaptorServer({ fetch: createAdmin({ ...deps, hosts }).fetch, serverOptions: portLimits });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host.replace(/^\[|\]$/g, ''), resolve);
  }).catch((cause: NodeJS.ErrnoException) => {
    throw new SettingTrouble(`ADMIN_PORT: port ${port} cannot be opened on ${host} (${cause.code}).`, cause);
  });
  return {
    url: `http://${toHostName(host)}:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      if ('closeAllConnections' in server) server.closeAllConnections();
      await closed;
    },
  };
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127(?:\.\d{1,3}){3}$/.test(host) || /^\[?::1\]?$/.test(host);
}

function toHostName(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

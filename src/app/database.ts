// Opens the configured database and the store on it. Nothing else is imported here, so that read-only commands like `status` start without
// the clients of source and storage, which take longer to load than a status takes to show.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Config, findAddressProblem } from '../config.ts';
import { SettingTrouble } from '../domain/trouble.ts';
import type { DatabaseUrl } from '../store/postgres/connection.ts';
import { openStore, type Store, type StoreOptions } from '../store/store.ts';

/** Names this process, for a lease: a new name at every call, which no other process has. It shows operators who holds it. */
export function toOwner(role: string): string {
  return `${role} on ${hostname()} (${process.pid}, ${randomUUID().slice(0, 8)})`;
}

export async function openPlace({ database, openEmbedded }: Config<'database'>) {
  const { DATABASE_URL, DATABASE_DIRECT_URL } = database;
  if (DATABASE_URL.reveal() === 'embedded') {
    if (!openEmbedded) throw new SettingTrouble('DATABASE_URL is embedded, which only commands can open.');
    const embedded = await openEmbedded();
    return { url: embedded.url, directUrl: embedded.url, [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose]() };
  }
  const url = toUrl('DATABASE_URL', DATABASE_URL);
  const directUrl = DATABASE_DIRECT_URL === null ? url : toUrl('DATABASE_DIRECT_URL', DATABASE_DIRECT_URL);
  return { url, directUrl, [Symbol.asyncDispose]: async () => {} };
}

/** The address may come from a file that has changed since the start, so it is checked at every use. */
function toUrl(name: string, secret: { current(): string }): DatabaseUrl {
  return () => {
    const text = secret.current();
    const problem = findAddressProblem(text);
    if (problem !== null) throw new SettingTrouble(`${name} ${problem}.`, undefined, 'database');
    return text;
  };
}

/** Opens the store whatever the schema is. Nothing connects until the first use. */
export async function openAnyStore(
  config: Config<'database' | 'privacy'> & Partial<Config<'sync'>>,
  role: string,
  options: Pick<StoreOptions, 'crashPoint' | 'statementTimeoutMs'> = {},
): Promise<Store> {
  const place = await openPlace(config);
  const privacyKey = Buffer.from(config.privacy.PRIVACY_KEY.reveal(), 'utf8');
  const leaseMs = config.sync?.LEASE;
  // Shorter than the lease, so that a process suspended inside a transaction does not block the next holder of its lane.
  const idle = leaseMs === undefined ? {} : { idleInTransactionMs: Math.min(20_000, (leaseMs * 2) / 3) };
  const store = openStore({ ...options, ...idle, url: place.url, directUrl: place.directUrl, role, privacyKey });
  const end = async () => {
    await store[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
  };
  return { ...store, [Symbol.asyncDispose]: end };
}

/** Opens the store. Throws if the schema is not this version's, and does not change it. */
export async function openStoreOf(...given: Parameters<typeof openAnyStore>): Promise<Store> {
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openAnyStore(...given));
  await store.schema.requireSchema();
  stack.move();
  return store;
}

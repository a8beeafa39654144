// Opens the configured database and the store on it, and loads the status. Nothing else is imported here, so that read-only commands like
// `status` start without the clients of source and storage, which take longer to load than a status takes to show.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Config, findAddressProblem, toLocation } from '../config.ts';
import { isUsable, toSchemaTrouble } from '../domain/schema.ts';
import { type Status, toStatus } from '../domain/status/status.ts';
import { SettingTrouble, Trouble, type Wait } from '../domain/trouble.ts';
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
  const stack = new AsyncDisposableStack();
  const place = stack.use(await openPlace(config));
  const privacyKey = Buffer.from(config.privacy.PRIVACY_KEY.reveal(), 'utf8');
  const leaseMs = config.sync?.LEASE;
  // Shorter than the lease, so that a process suspended inside a transaction does not block the next holder of its lane.
  const idle = leaseMs === undefined ? {} : { idleInTransactionMs: Math.min(20_000, (leaseMs * 2) / 3) };
  const { url, directUrl } = place;
  const store = stack.use(openStore({ ...options, ...idle, url, directUrl, role, privacyKey }));
  return { ...store, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Opens the store. Throws if the schema is not this version's, and does not change it. */
export async function openStoreOf(...given: Parameters<typeof openAnyStore>): Promise<Store> {
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openAnyStore(...given));
  await store.schema.requireSchema();
  stack.move();
  return store;
}

/** The same value for the command, the page, the metrics and the probes. `ownWaits` are those of this process that no other one can see. */
export async function loadStatus(
  store: Store,
  config: Config<'sync' | 'extract'>,
  ownWaits: readonly Wait[] = [],
): Promise<Status> {
  const { extract, ...limits } = toLimits(config);
  const published = extract && (await store.extracts.findExtract(extract.location));
  return toStatus(new Date(), await store.reports.loadStatus(), {
    ...limits,
    waits: [...ownWaits, ...(await store.advertisers.loadWaits())],
    webhooks: await store.webhooks.loadWebhooks(),
    extract: extract && { ...extract, publishedAt: published?.published_at ?? null },
  });
}

/** The status, as far as the schema supports it. Throws SchemaTrouble if the schema is absent or too different. */
export async function loadAnyStatus(store: Store, config: Config<'sync' | 'extract'>): Promise<Status> {
  const schema = await store.schema.loadSchema();
  if (isUsable(schema)) return await loadStatus(store, config);
  if (schema.state === 'absent') throw toSchemaTrouble(schema);
  // An older schema may not have what the rest of the status needs.
  const advertisers = await store.reports.loadStatus().catch((error: unknown) => {
    throw error instanceof Trouble ? error : toSchemaTrouble(schema);
  });
  return toStatus(new Date(), advertisers, { ...toLimits(config), extract: null, schema });
}

/** The ages after which the status reports a problem; null where nothing polls, or extracts, by schedule. */
export function toLimits({ sync, extract }: Config<'sync' | 'extract'>) {
  const { EXTRACT_URL: place, EXTRACT_SCHEDULE, EXTRACT_WITHIN: withinMs } = extract;
  return {
    staleAfterMs: sync.SYNC_SCHEDULE === null ? null : sync.SYNC_WITHIN,
    proofLimitMs: sync.RECHECK_WITHIN ?? (sync.RECHECK_SCHEDULE === null ? 14 : 2) * 86_400_000,
    verifyWithinMs: sync.VERIFY_WITHIN,
    extract: place === null || EXTRACT_SCHEDULE === null ? null : { location: toLocation(place), withinMs },
  };
}

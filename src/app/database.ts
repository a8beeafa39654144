// Opens the database of a configuration, and the store on it. Nothing else is imported here: commands that only look, like `status`, start
// without the clients of source and storage, which take longer to load than a status takes to show.

import { type Config, findAddressProblem } from '../config.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { SettingTrouble, Trouble } from '../domain/trouble.ts';
import type { DatabaseUrl } from '../store/postgres/connection.ts';
import { createRdsToken } from '../store/postgres/rds-token.ts';
import { openStore, type Store, type StoreOptions } from '../store/store.ts';
import { type RetryOptions, retry } from '../sync/retry.ts';

export interface DatabasePlace extends AsyncDisposable {
  readonly url: DatabaseUrl;
  readonly directUrl: DatabaseUrl;
}

/** The database of the configuration, started if it is the embedded one. */
export async function openPlace({ database }: Config<'database'>): Promise<DatabasePlace> {
  if (database.url === 'embedded') {
    if (!database.openEmbedded) {
      throw new Trouble(
        'local',
        'DATABASE_URL is embedded, and this process has no embedded Postgres: name a database.',
      );
    }
    const embedded = await database.openEmbedded();
    return { url: embedded.url, directUrl: embedded.url, [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose]() };
  }
  const changing = (name: string, secret: { current(): string }): DatabaseUrl => ({
    url: () => withRootCertificate(requireAddress(name, secret.current()), database.rootCertificate),
    ...(database.auth === 'rds-iam' && { password: createRdsToken }),
  });
  const url = changing('DATABASE_URL', database.url);
  const directUrl = database.directUrl === null ? url : changing('DATABASE_DIRECT_URL', database.directUrl);
  return { url, directUrl, [Symbol.asyncDispose]: async () => {} };
}

/** Its file may have been written anew since the start: what was refused then is refused now. */
function requireAddress(name: string, text: string): string {
  const problem = findAddressProblem(text);
  if (problem !== null) throw new SettingTrouble(`${name} ${problem}.`, undefined, 'database');
  return text;
}

/** The URL, with the root certificate that it does not name itself. */
function withRootCertificate(url: string, root: string | null): string {
  if (root === null || /[?&]sslrootcert=[^&]/.test(url)) return url;
  const without = url.replace(/(?<=[?&])sslrootcert=(?:&|$)/, '');
  return `${without}${without.includes('?') ? '&' : '?'}sslrootcert=${encodeURIComponent(root)}`;
}

interface StoreRequest extends Partial<Pick<RetryOptions, 'retryForMs' | 'onWait'>> {
  readonly crashPoint?: PassCrashPoint | undefined;
}

interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
}

/** The store on this version's schema; refused on any other, which stays as it is. For commands that act on stored rows. */
export async function openStoreOf(
  config: Config<'database' | 'privacy'> & Partial<Config<'sync'>>,
  role: string,
  signal: AbortSignal,
  request: StoreRequest = {},
): Promise<OpenedStore> {
  return await openReady(config, role, signal, request, (store) => store.schema.require());
}

/** The store on a schema that was created or migrated where it had to be. For what reads the source. */
export async function openMigratedStoreOf(
  config: Config<'database' | 'privacy'> & Partial<Config<'sync'>>,
  role: string,
  signal: AbortSignal,
  { upgrade = true, ...request }: StoreRequest & { readonly upgrade?: boolean } = {},
): Promise<OpenedStore> {
  return await openReady(config, role, signal, request, (store, { directUrl }) =>
    store.schema.ensure({ directUrl, signal, upgrade, onWait: request.onWait }),
  );
}

async function openReady(
  config: Config<'database' | 'privacy'> & Partial<Config<'sync'>>,
  role: string,
  signal: AbortSignal,
  { retryForMs = 0, onWait, crashPoint }: StoreRequest,
  prepare: (store: Store, place: DatabasePlace) => Promise<void>,
): Promise<OpenedStore> {
  const stack = new AsyncDisposableStack();
  try {
    const place = stack.use(await openPlace(config));
    const store = stack.use(openStore({ ...toStoreOptions(config, place, role), crashPoint }));
    // A database that is not there yet is waited for, like one that goes away later.
    await retry({ retryForMs, signal, onWait }, () => prepare(store, place));
    return { store, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

export function toStoreOptions(
  config: Config<'privacy'> & Partial<Config<'sync'>>,
  place: DatabasePlace,
  role: string,
): StoreOptions {
  const privacyKey = Buffer.from(config.privacy.key.reveal(), 'utf8');
  const { leaseMs } = config.sync ?? {};
  // Below the lease: a process that stops inside a transaction must not keep its lane from the next holder.
  return {
    url: place.url,
    role,
    privacyKey,
    ...(leaseMs && { idleInTransactionMs: Math.min(20_000, (leaseMs * 2) / 3) }),
  };
}

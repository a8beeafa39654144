// Opens the database of a configuration, and the store on it. Nothing else is imported here: commands that only look, like `status`, start
// without the clients of source and storage, which take longer to load than a status takes to show.
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { openEmbedded } from '../store/embedded.ts';
import { openStore, type Store, type StoreOptions } from '../store/store.ts';
import { type Patience, patiently } from '../sync/patience.ts';

const root = join(import.meta.dirname, '../..');

export interface Place extends AsyncDisposable {
  readonly url: string;
  readonly directUrl: string;
}

/** The database of the configuration, started if it is the embedded one. */
export async function openPlace({ database }: Config<'database'>): Promise<Place> {
  if (database.url === 'embedded') {
    const embedded = await openEmbedded({ root });
    return { url: embedded.url, directUrl: embedded.url, [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose]() };
  }
  const url = database.url.reveal();
  return { url, directUrl: database.directUrl?.reveal() ?? url, [Symbol.asyncDispose]: async () => {} };
}

interface StoreRequest extends Partial<Pick<Patience, 'patienceMs' | 'onWait'>> {
  readonly crashPoint?: PassCrashPoint | undefined;
}

/** The store on an up-to-date schema. */
export async function openStoreOf(
  config: Config<'database' | 'privacy'> & Partial<Config<'sync'>>,
  role: string,
  signal: AbortSignal,
  { patienceMs = 0, onWait, crashPoint }: StoreRequest = {},
): Promise<{ readonly store: Store } & AsyncDisposable> {
  const stack = new AsyncDisposableStack();
  try {
    const place = stack.use(await openPlace(config));
    const store = stack.use(openStore({ ...toStoreOptions(config, place, role), crashPoint }));
    // A database that is not there yet is waited for, like one that goes away later.
    await patiently({ patienceMs, signal, onWait }, () => store.ensureSchema({ directUrl: place.directUrl, signal }));
    return { store, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

export function toStoreOptions(
  config: Config<'privacy'> & Partial<Config<'sync'>>,
  place: Place,
  role: string,
): StoreOptions {
  const privacyKey = Buffer.from(config.privacy.key.reveal(), 'utf8');
  const { leaseMs } = config.sync ?? {};
  // Below the lease, or a process that stopped inside a transaction keeps its lane from whoever takes over.
  return {
    url: place.url,
    role,
    privacyKey,
    ...(leaseMs && { idleInTransactionMs: Math.min(20_000, (leaseMs * 2) / 3) }),
  };
}

// Opens the configured database and the store on it. Nothing else is imported here, so that read-only commands like `status` start without
// the clients of source and storage, which take longer to load than a status takes to show.

import { type Config, findAddressProblem } from '../config.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { SettingTrouble } from '../domain/trouble.ts';
import type { DatabaseUrl } from '../store/postgres/connection.ts';
import { createRdsToken } from '../store/postgres/rds-token.ts';
import { openStore, type Store } from '../store/store.ts';
import { type RetryOptions, retry } from '../sync/retry.ts';

export interface DatabasePlace extends AsyncDisposable {
  readonly url: DatabaseUrl;
  readonly directUrl: DatabaseUrl;
}

/** The configured database. Starts the embedded one. */
export async function openPlace({ database }: Config<'database'>): Promise<DatabasePlace> {
  const { DATABASE_URL, DATABASE_DIRECT_URL, DATABASE_CA, DATABASE_AUTH } = database;
  if (DATABASE_URL.reveal() === 'embedded') {
    if (!database.openEmbedded) throw new SettingTrouble('DATABASE_URL is embedded, which only commands can open.');
    const embedded = await database.openEmbedded();
    return { url: embedded.url, directUrl: embedded.url, [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose]() };
  }
  const changing = (name: string, secret: { current(): string }): DatabaseUrl => ({
    url: () => withRootCertificate(requireAddress(name, secret.current()), DATABASE_CA),
    ...(DATABASE_AUTH === 'rds-iam' && { password: createRdsToken }),
  });
  const url = changing('DATABASE_URL', DATABASE_URL);
  const directUrl = DATABASE_DIRECT_URL === null ? url : changing('DATABASE_DIRECT_URL', DATABASE_DIRECT_URL);
  return { url, directUrl, [Symbol.asyncDispose]: async () => {} };
}

/** The address may come from a file that has changed since the start, so it is checked again. */
function requireAddress(name: string, text: string): string {
  const problem = findAddressProblem(text);
  if (problem !== null) throw new SettingTrouble(`${name} ${problem}.`, undefined, 'database');
  return text;
}

/** Adds the configured root certificate unless the URL names one. */
function withRootCertificate(url: string, root: string | null): string {
  if (root === null || /[?&]sslrootcert=[^&]/.test(url)) return url;
  const without = url.replace(/(?<=[?&])sslrootcert=(?:&|$)/, '');
  return `${without}${without.includes('?') ? '&' : '?'}sslrootcert=${encodeURIComponent(root)}`;
}

interface StoreRequest {
  /** How long to wait for a database that is not up yet; by default not at all. */
  readonly retryForMs?: number;
  readonly onWait?: RetryOptions['onWait'];
  readonly crashPoint?: PassCrashPoint | undefined;
  /** For a command whose statements may take longer than those of a worker. */
  readonly statementTimeoutMs?: number;
  /** `require` throws if the schema is not this version's, and does not change it. `create` makes a missing one, `migrate` upgrades as well. */
  readonly schema?: 'require' | 'create' | 'migrate';
}

type StoreConfig = Config<'database' | 'privacy'> & Partial<Config<'sync'>>;

interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  readonly directUrl: DatabaseUrl;
}

/** Opens the store whatever the schema is. Nothing connects until the first use. */
export async function openAnyStore(
  config: StoreConfig,
  role: string,
  { crashPoint, statementTimeoutMs }: Pick<StoreRequest, 'crashPoint' | 'statementTimeoutMs'> = {},
): Promise<OpenedStore> {
  await using stack = new AsyncDisposableStack();
  const { url, directUrl } = stack.use(await openPlace(config));
  const privacyKey = Buffer.from(config.privacy.PRIVACY_KEY.reveal(), 'utf8');
  const leaseMs = config.sync?.LEASE;
  // Shorter than the lease, so that a process suspended inside a transaction does not block the next holder of its lane.
  const idle = leaseMs === undefined ? {} : { idleInTransactionMs: Math.min(20_000, (leaseMs * 2) / 3) };
  const store = stack.use(
    openStore({ url, role, privacyKey, crashPoint, ...idle, ...(statementTimeoutMs && { statementTimeoutMs }) }),
  );
  const owned = stack.move();
  return { store, directUrl, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Opens the store with this version's schema. */
export async function openStoreOf(
  config: StoreConfig,
  role: string,
  signal: AbortSignal,
  { retryForMs = 0, onWait, schema = 'require', ...request }: StoreRequest = {},
): Promise<OpenedStore> {
  await using stack = new AsyncDisposableStack();
  const { store, directUrl } = stack.use(await openAnyStore(config, role, request));
  const ensured = { directUrl, signal, upgrade: schema === 'migrate', onWait };
  await retry({ retryForMs, signal, onWait }, () =>
    schema === 'require' ? store.schema.require() : store.schema.ensure(ensured),
  );
  const owned = stack.move();
  return { store, directUrl, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

// Loads the configuration of a command and opens what it works with: the store and its accounts, and the files where it needs them. Passes in
// the embedded server: of the production code, only the CLI knows src/dev.
import { join } from 'node:path';
import type { BlobsUse } from '../app/storage.ts';
import type { Environment } from '../config/local.ts';
import type { Config, Need } from '../config.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { isNothing, type Sought } from '../domain/erasure.ts';
import type { Store } from '../store/store.ts';
import type { Context } from './command.ts';
import { Misuse } from './failure.ts';

const root = join(import.meta.dirname, '../..');

/** Reads the parts that a command needs. With `advertiser`, its `--advertiser`, the configuration holds only that account. */
export async function loadCommandConfig<const N extends Need>(
  env: Environment,
  {
    advertiser,
    ...request
  }: { readonly needs: readonly N[]; readonly demo?: boolean; readonly advertiser?: string | undefined },
): Promise<Config<N>> {
  const { loadConfig } = await import('../config.ts');
  const config = loadConfig(env, { ...request, openEmbedded });
  if (advertiser === undefined) return config;
  const { accounts, source } = config as Partial<Config<'accounts' | 'source'>>;
  return {
    ...config,
    ...(accounts && { accounts: [requireNamed('advertiser', accounts, advertiser)] }),
    ...(source && { source: { ...source, advertisers: [requireNamed('advertiser', source.advertisers, advertiser)] } }),
  };
}

export function requireWebhook({ webhooks: { endpoints } }: Config<'webhooks'>, name: string) {
  const advice = 'Set WEBHOOK_URL and WEBHOOK_SECRET, or name webhooks in ADVERTISERS_FILE.';
  return requireNamed('webhook', endpoints, name, endpoints.length === 0 ? advice : undefined);
}

function requireNamed<T extends { readonly name: string }>(
  what: string,
  all: readonly T[],
  name: string,
  advice = `Use a name that is configured: ${all.map((one) => one.name).join(', ')}.`,
): T {
  const found = all.find((one) => one.name === name);
  if (found) return found;
  throw new Misuse(`There is no ${what} "${name.slice(0, 100)}" in the configuration.`, advice);
}

/** The configuration of a command that reads once, as a worker does for ever; tells its warnings, which a worker logs. */
export async function loadReadConfig({ env, terminal }: Context, advertiser: string | undefined) {
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs'] as const;
  const config = await loadCommandConfig(env, { needs, advertiser });
  for (const warning of config.warnings) terminal.note(`Warning: ${warning}.`);
  return config;
}

async function openEmbedded(demo: boolean) {
  const embedded = await import('../dev/embedded/embedded.ts');
  return await embedded.openEmbedded({ root, demo });
}

/**
 * An open store, those of the accounts whose ids are known, and who runs the command, for the audit log. Throws if the configuration
 * contradicts the database.
 */
export async function openKnown<N extends Need = never>(
  { env }: Context,
  role: string,
  advertiser: string | undefined,
  ...more: N[]
) {
  const needs = ['database', 'accounts', 'privacy', ...more] as const;
  const config: Config<'database' | 'accounts' | 'privacy' | N> = await loadCommandConfig(env, { needs, advertiser });
  const { toActor } = await import('../app/actor.ts');
  const { openStoreOf } = await import('../app/database.ts');
  const crashPoint = createCrashPoint(env.INTAKE_CRASH_AT);
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openStoreOf(config, role, { crashPoint }));
  const accounts = [];
  for (const { name, advertiserId: configuredId } of config.accounts) {
    const { advertiserId } = await store.advertisers.lookUp(name, configuredId);
    if (advertiserId !== null) accounts.push({ name, advertiserId });
  }
  const owned = stack.move();
  return { config, store, accounts, crashPoint, by: toActor(), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The same with the blob store. */
export async function openFiles(context: Context, role: string, advertiser: string | undefined, use: BlobsUse) {
  await using stack = new AsyncDisposableStack();
  const known = stack.use(await openKnown(context, role, advertiser, 'blobs'));
  const { openBlobsOf } = await import('../app/storage.ts');
  const blobs = stack.use(await openBlobsOf(known.config, known.store, context.signal, use));
  const owned = stack.move();
  return { ...known, blobs, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The named advertiser, or all that may hold data. Accounts no longer configured count too: a person's rights do not end with them. */
export async function loadHolders(
  { store, accounts }: { readonly store: Store; readonly accounts: readonly { readonly advertiserId: bigint }[] },
  name: string | undefined,
): Promise<bigint[]> {
  const configured = accounts.map(({ advertiserId }) => advertiserId);
  return name === undefined ? [...new Set([...configured, ...(await store.advertisers.loadIds())])] : configured;
}

/**
 * The advertiser that holds data for this id, or is erasing it; none or one. The spec does not say whether ids are unique across
 * advertisers.
 */
export async function findHolder(
  store: Store,
  advertisers: readonly bigint[],
  sought: Sought,
): Promise<readonly bigint[]> {
  const fitting: bigint[] = [];
  for (const id of advertisers) {
    const isHeld = !isNothing((await store.privacy.findPerson(id, sought)).counts);
    // An interrupted erasure has no rows any more. Without its job, a person at another advertiser would seem to be the only match.
    if (isHeld || (await store.erasures.loadOpen(id, sought)).length > 0) fitting.push(id);
  }
  if (fitting.length <= 1) return fitting;
  throw new Misuse(
    `This id is held at ${fitting.length} advertisers (${fitting.join(', ')}), where it may name different people.`,
    'Name one with --advertiser; intake status shows which name has which id.',
  );
}

/**
 * Kills the process at a named point, as a power cut would, or suspends it there, or keeps its event loop busy for ever, for crash tests.
 * Parses `name`, `name:count`, `name:count:stop` or `name:count:hang`: acts when the point is reached for the count-th time. Undefined:
 * never.
 */
export function createCrashPoint(spec: string | undefined): PassCrashPoint | undefined {
  if (!spec) return undefined;
  const [wanted, count = '1', manner] = spec.split(':');
  let left = Number(count);
  return (name) => {
    if (name !== wanted || --left !== 0) return;
    while (manner === 'hang');
    process.kill(process.pid, manner === 'stop' ? 'SIGSTOP' : 'SIGKILL');
  };
}

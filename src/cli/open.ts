// Opens what a command on stored rows works with: the configuration, the store and its accounts, and the files where it needs them.
import type { BlobsUse } from '../app/resources.ts';
import type { Config, Need } from '../config.ts';
import type { BlobStore } from '../domain/blob.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { isNothing, type Sought } from '../domain/erasure.ts';
import { SeveralFit } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';
import type { Context } from './command.ts';
import { createCrashPoint } from './crash-point.ts';
import { loadCommandConfig } from './load-config.ts';

/** An open store, and those of the accounts whose ids are known. */
export interface KnownAccounts<N extends Need = never> extends AsyncDisposable {
  readonly config: Config<'database' | 'accounts' | 'privacy' | N>;
  readonly store: Store;
  readonly accounts: readonly { readonly name: string; readonly advertiserId: bigint }[];
  readonly crashPoint: PassCrashPoint | undefined;
  /** Who runs the command, for the audit log. */
  readonly by: string;
}

/** Throws if the configuration contradicts the database. */
export async function openKnown<N extends Need = never>(
  { env }: Context,
  role: string,
  advertiser: string | undefined,
  ...more: N[]
): Promise<KnownAccounts<N>> {
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
export async function openFiles(
  context: Context,
  role: string,
  advertiser: string | undefined,
  use: BlobsUse,
): Promise<KnownAccounts<'blobs'> & { readonly blobs: BlobStore }> {
  await using stack = new AsyncDisposableStack();
  const known = stack.use(await openKnown(context, role, advertiser, 'blobs'));
  const { openBlobsOf } = await import('../app/resources.ts');
  const blobs = stack.use(await openBlobsOf(known.config, known.store, context.signal, use));
  const owned = stack.move();
  return { ...known, blobs, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The named advertiser, or all that may hold data. Accounts no longer configured count too: a person's rights do not end with them. */
export async function loadHolders(
  { store, accounts }: Pick<KnownAccounts, 'store' | 'accounts'>,
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
  if (fitting.length > 1) throw new SeveralFit(fitting);
  return fitting;
}

// Which advertisers hold data about a person.
import { isNothing, type Sought } from '../domain/erasure.ts';
import { SeveralFit } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';
import type { KnownAccounts } from './resources.ts';

/** The named advertiser, or all that may hold data. Accounts no longer configured count too: a person's rights do not end with them. */
export async function loadHolders({ store, accounts }: KnownAccounts, name: string | undefined): Promise<bigint[]> {
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

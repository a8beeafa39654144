// Composes `intake accept-deletions` and `intake accept-unreadable`: shows what a decision is about, and records it.
import type { Config } from '../config.ts';
import type { Undecided } from '../store/privacy/decisions.ts';
import { toActor } from './actor.ts';
import { openStoreOf } from './database.ts';
import { type Chosen, toChosen } from './resources.ts';

/** What a decision is about in one account, and how many ids it was recorded for. */
export interface Decided extends Undecided {
  readonly name: string;
  readonly accepted: number;
}

/** `id` null: applications that are gone at the source; otherwise the id that cannot be read. Decides only with `yes`. */
export async function accept(
  config: Config<'database' | 'source' | 'privacy'>,
  request: Chosen & { readonly id: bigint | null; readonly yes: boolean },
): Promise<Decided[]> {
  await using app = await openStoreOf(config, 'accept', request.signal);
  const { decisions, advertisers } = app.store;
  const decided: Decided[] = [];
  for (const account of toChosen(config, request.advertiser)) {
    const { advertiserId } = await advertisers.lookUp(account.name, account.advertiserId);
    if (advertiserId === null) continue;
    const { id, yes } = request;
    const found =
      id === null ? await decisions.loadDeletions(advertiserId) : await decisions.loadUnreadable(advertiserId, id);
    const take = () =>
      id === null
        ? decisions.acceptDeletions(advertiserId, found.ids, toActor())
        : decisions.acceptUnreadable(advertiserId, id, toActor());
    decided.push({ name: account.name, ...found, accepted: yes && found.ids.length > 0 ? await take() : 0 });
  }
  return decided;
}

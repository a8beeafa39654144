// The account identity check finds out whose data an answer holds before any of it is stored. An account that answers with the data of
// another advertiser is halted until an operator resolves it. Once the id is pinned, an answer that names no advertiser is accepted.
import type { Page } from '../../domain/application.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { Store } from '../../store/store.ts';
import type { HeldLane } from './held-lane.ts';

/** Throws while the advertiser is halted because the source answered with another advertiser's data. */
export function requireIdentity({ name, halt }: KnownAdvertiser): void {
  if (halt?.kind !== 'mismatch') return;
  throw new Trouble('mismatch', `${name} is halted: ${halt.reason} Run \`intake unhalt\` once the cause is gone.`);
}

/** The first answer pins the advertiser's id. An answer with another id halts the advertiser, and nothing of that answer is kept. */
export async function checkIdentity(
  store: Pick<Store, 'advertisers'>,
  advertiser: KnownAdvertiser,
  page: Pick<Page, 'advertiserId' | 'agentId'>,
): Promise<void> {
  const { name, advertiserId } = advertiser;
  if (advertiserId === null && page.advertiserId === null) {
    throw new Trouble(
      'mismatch',
      'The answer does not say whose applications it lists; set ADVERTISER_ID, or advertiserId in ADVERTISERS_FILE. None of it was stored.',
    );
  }
  if (advertiserId !== null && page.advertiserId !== null && page.advertiserId !== advertiserId) {
    const reason = `the source answered with data of advertiser ${page.advertiserId} instead of ${advertiserId}; none of it was stored.`;
    await store.advertisers.halt(name, 'mismatch', reason);
    throw new Trouble('mismatch', `${name} is halted: ${reason}`);
  }
  if (advertiserId === null && page.advertiserId !== null)
    advertiser.advertiserId = (await store.advertisers.pin(name, page.advertiserId)).advertiserId;
  // An answer without an envelope (204, 404, no body) names no agent either.
  if (page.advertiserId !== null && page.agentId !== advertiser.agentId) {
    await store.advertisers.noteAgent(name, page.agentId);
    advertiser.agentId = page.agentId;
  }
}

/** Reads an account in its lane. A refused credential halts the account, and an accepted one ends such a halt. */
export async function haltIfRefused<T>(
  { advertisers }: Pick<Store, 'advertisers'>,
  { advertiser, lane }: { readonly advertiser: KnownAdvertiser; readonly lane: HeldLane },
  read: () => Promise<T>,
): Promise<T> {
  try {
    const result = await read();
    if (advertiser.halt !== null) await advertisers.unhalt(advertiser.name, 'refused');
    return result;
  } catch (error) {
    // Once the lane is lost, another process may hold it, and this refusal says nothing about the account's state.
    if (error instanceof Trouble && error.kind === 'refused' && !lane.signal.aborted) {
      await advertisers.halt(advertiser.name, 'refused', error.message);
    }
    throw error;
  }
}

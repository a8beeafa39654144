// Everything that `intake sync` reads for one advertiser. It first continues interrupted sweeps, then reads new applications.
// The first sync reads everything; later ones read on from where the cursor was one lag ago.
import { Trouble } from '../../domain/trouble.ts';
import { requireIdentity } from '../accounts/account-identity.ts';
import { holdLane, type LaneRequest } from '../accounts/held-lane.ts';
import { retry } from '../retry.ts';
import { readUnfinishedAndNew } from './read-tasks.ts';
import { hasReachedEnd, type ReadContext, type SweepDeps, type SweepSummary } from './sweep.ts';

export interface SyncAccountRequest
  extends Omit<LaneRequest, 'lane'>,
    Pick<ReadContext, 'lagMs' | 'startAt' | 'retryForMs'> {
  /** Null: taken from the first answer. */
  readonly advertiserId: bigint | null;
  readonly recheck: boolean;
}

/** Reads new applications (or everything) in the live lane; the last sweep is the newest. A refused credential halts the advertiser. */
export async function syncAccount(deps: SweepDeps, request: SyncAccountRequest): Promise<SweepSummary[]> {
  const { store } = deps;
  const retryOptions = { ...request, onWait: deps.onWait };
  const advertiser = await retry(retryOptions, () => store.advertisers.ensure(request.name, request.advertiserId));
  requireIdentity(advertiser);
  await using lane = await retry(retryOptions, () => holdLane(store, { ...request, lane: 'live' }));
  try {
    const sweeps = await readUnfinishedAndNew(deps, { ...request, lane, advertiser }, { recheck: request.recheck });
    await retry(retryOptions, () => store.advertisers.unhalt(request.name, 'refused'));
    if (hasReachedEnd(sweeps.at(-1))) {
      const { advertiserId } = advertiser;
      if (advertiserId !== null) await retry(retryOptions, () => store.coverage.confirmCursors([advertiserId]));
      lane.markDone();
    }
    return sweeps;
  } catch (error) {
    // If another process may hold the lane by now, the refusal says nothing about the account's state.
    if (error instanceof Trouble && error.kind === 'refused' && !lane.signal.aborted) {
      await retry(retryOptions, () => store.advertisers.halt(request.name, 'refused', error.message));
    }
    throw error;
  }
}

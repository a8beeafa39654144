// What a command reads of one account: `intake sync` in the live lane, `intake backfill` in a lane of its own, beside a live worker.
import { coveredOf, rangeOf } from '../../domain/coverage/covered.ts';
import { wholeAxis } from '../../domain/coverage/position.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { ReadRange } from '../../store/sweeps/sweeps.ts';
import { requireIdentity } from '../accounts/account-identity.ts';
import { holdLane, type LaneHolder } from '../accounts/held-lane.ts';
import { retry } from '../retry.ts';
import { readDates } from './read-dates.ts';
import { readToProof, readUnfinishedFirst } from './read-tasks.ts';
import { hasReachedEnd, type SweepDeps, type SweepSummary } from './sweep.ts';

interface ReadAccountRequest extends LaneHolder {
  readonly name: string;
  /** Null: taken from the first answer. */
  readonly advertiserId: bigint | null;
  readonly lagMs: number;
  readonly retryForMs: number;
}

export interface SyncAccountRequest extends ReadAccountRequest {
  readonly startAt: number | null;
  readonly recheck: boolean;
}

/**
 * Continues interrupted sweeps, then reads new applications, or everything; the last sweep is the newest. A refused credential halts the
 * advertiser.
 */
export async function syncAccount(deps: SweepDeps, request: SyncAccountRequest): Promise<SweepSummary[]> {
  const { store } = deps;
  const retryOptions = { ...request, onWait: deps.onWait };
  const advertiser = await retry(retryOptions, () => store.advertisers.ensure(request.name, request.advertiserId));
  requireIdentity(advertiser);
  await using lane = await retry(retryOptions, () => holdLane(store, { ...request, lane: 'live' }));
  try {
    const sweeps = await readUnfinishedFirst(
      deps,
      { ...request, lane, advertiser },
      request.recheck ? 'everything' : 'new',
    );
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

export type BackfillRange = ReadRange | 'gaps';

export interface BackfillRequest extends ReadAccountRequest {
  readonly range: BackfillRange;
  /** Start again instead of continuing an unfinished sweep of the range. */
  readonly restart: boolean;
  readonly parallel: number;
}

export async function backfill(deps: SweepDeps, request: BackfillRequest): Promise<SweepSummary[]> {
  const { store } = deps;
  const retryOptions = { ...request, onWait: deps.onWait };
  const advertiser = await retry(retryOptions, () => store.advertisers.ensure(request.name, request.advertiserId));
  requireIdentity(advertiser);
  await using lane = await retry(retryOptions, () => holdLane(store, { ...request, lane: 'backfill' }));
  const { advertiserId } = advertiser;
  const purpose = 'backfill';
  const how = { ...request, lane, advertiser, purpose } as const;
  const sweeps: SweepSummary[] = [];
  for (const range of await retry(retryOptions, () => toRanges(deps, advertiserId, request.range))) {
    if (request.restart && advertiserId !== null)
      await retry(retryOptions, () => store.sweeps.dropUnfinished({ advertiserId, lane: purpose, purpose, ...range }));
    const isByDate = range.axis === 'date';
    sweeps.push(await (isByDate ? readDates(deps, how, range) : readToProof(deps, how, rangeOf(range))));
  }
  return sweeps;
}

export async function toRanges(
  { store }: Pick<SweepDeps, 'store'>,
  advertiserId: bigint | null,
  range: BackfillRange,
): Promise<ReadRange[]> {
  if (range !== 'gaps') return [range];
  const open = advertiserId === null ? [coveredOf(wholeAxis)] : await store.coverage.loadOpenRanges(advertiserId);
  return open.map(({ low, high }) => ({ axis: 'id', low, high }));
}

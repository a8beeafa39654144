// A backfill: an ordinary sweep over a chosen range of ids, or a sweep by date, in its own lane, so that it can run beside a live worker.
// It continues an unfinished backfill of the same range.
import { type Covered, coveredOf, rangeOf } from '../../domain/coverage/covered.ts';
import { wholeAxis } from '../../domain/coverage/position.ts';
import { requireIdentity } from '../accounts/account-identity.ts';
import { holdLane, type LaneRequest } from '../accounts/held-lane.ts';
import { retry } from '../retry.ts';
import { readDates } from './read-dates.ts';
import { readToProof } from './read-tasks.ts';
import type { SweepDeps, SweepRequest, SweepSummary } from './sweep.ts';

/** A range of ids, or of dates (whole seconds since 1970), both ends included; `high` null is no end. */
export interface ReadRange extends Covered {
  readonly axis: 'id' | 'date';
}

export type BackfillRange = ReadRange | 'gaps';

export interface BackfillRequest
  extends Omit<LaneRequest, 'lane'>,
    Pick<SweepRequest, 'lagMs' | 'retryForMs' | 'parallel'> {
  readonly advertiserId: bigint | null;
  readonly range: BackfillRange;
  /** Start again instead of continuing an unfinished sweep of the range. */
  readonly restart: boolean;
}

export async function backfill(deps: SweepDeps, request: BackfillRequest): Promise<SweepSummary[]> {
  const { store } = deps;
  const retryOptions = { ...request, onWait: deps.onWait };
  const advertiser = await retry(retryOptions, () => store.advertisers.ensure(request.name, request.advertiserId));
  requireIdentity(advertiser);
  await using lane = await retry(retryOptions, () => holdLane(store, { ...request, lane: 'backfill' }));
  const sweeps: SweepSummary[] = [];
  const { advertiserId } = advertiser;
  for (const range of await retry(retryOptions, () => toRanges(deps, advertiserId, request.range))) {
    const purpose = 'backfill';
    if (request.restart && advertiserId !== null)
      await retry(retryOptions, () => store.sweeps.dropUnfinished({ advertiserId, lane: purpose, purpose, ...range }));
    const how = { ...request, lane, advertiser, purpose } as const;
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

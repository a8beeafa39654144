// A backfill: an ordinary sweep over a chosen range, in its own lane, so that it can run beside a live worker. It continues an unfinished
// backfill of the same range.
import type { Plan } from '../../domain/coverage/coverage.ts';
import { retry } from '../retry.ts';
import { requireIdentity } from './account-identity.ts';
import type { SweepRequest } from './commit-answer.ts';
import { holdLane, type LaneRequest } from './held-lane.ts';
import { readToProof } from './read-tasks.ts';
import type { SweepDeps, SweepSummary } from './sweep.ts';

/** What to read: a range of ids or of dates (whole seconds since 1970), both ends included; or the gaps in coverage. */
export type BackfillRange = Required<Pick<Plan, 'axis' | 'from' | 'to'>> | 'gaps';

export interface BackfillRequest
  extends Omit<LaneRequest, 'lane'>,
    Pick<SweepRequest, 'lagMs' | 'retryForMs' | 'parallel'> {
  readonly advertiserId: bigint | null;
  readonly range: BackfillRange;
  /** Start again instead of continuing an unfinished sweep of the range. */
  readonly restart: boolean;
}

/** Reads the range to its end. */
export async function backfill(deps: SweepDeps, request: BackfillRequest): Promise<SweepSummary[]> {
  const { store } = deps;
  const retryOptions = { ...request, onWait: deps.onWait };
  let advertiser = await retry(retryOptions, () => store.advertisers.ensure(request.name, request.advertiserId));
  requireIdentity(advertiser);
  await using lane = await retry(retryOptions, () => holdLane(store, { ...request, lane: 'backfill' }));
  const sweeps: SweepSummary[] = [];
  const { advertiserId: knownId } = advertiser;
  for (const range of await retry(retryOptions, () => toPlans(deps, knownId, request.range))) {
    if (request.restart && advertiser.advertiserId !== null) {
      const { axis = 'id', from = 1n, to = null } = range;
      const { advertiserId } = advertiser;
      const key = { advertiserId, lane: 'backfill', purpose: 'backfill', axis, low: from, high: to } as const;
      await retry(retryOptions, () => store.sweeps.dropUnfinished(key));
    }
    const { parallel, lagMs, retryForMs } = request;
    const how = { lane, advertiser, purpose: 'backfill', parallel, lagMs, retryForMs } as const;
    const summary = await readToProof(deps, { ...how, plan: range });
    advertiser = summary.advertiser;
    sweeps.push(summary);
  }
  return sweeps;
}

/** The ranges that a backfill would read. */
export async function toPlans(
  { store }: Pick<SweepDeps, 'store'>,
  advertiserId: bigint | null,
  range: BackfillRange,
): Promise<Plan[]> {
  if (range !== 'gaps') return [range];
  if (advertiserId === null) return [{ axis: 'id', from: 1n, to: null }];
  const open = await store.coverage.loadOpenRanges(advertiserId);
  return open.map(({ low, high }) => ({ axis: 'id', from: low, to: high }));
}

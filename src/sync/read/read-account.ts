// What a command reads of one account: `intake sync` in the live lane, `intake backfill` in a lane of its own, beside a live worker.
import { coveredOf, rangeOf, wholeAxis } from '../../domain/coverage/position.ts';
import type { Lane } from '../../store/accounts/leases.ts';
import type { ReadRange } from '../../store/sweeps/sweeps.ts';
import { haltIfRefused, holdLane, type LaneHolder, requireIdentity } from '../accounts/held-lane.ts';
import { type RetryOptions, retry } from '../retry.ts';
import { readDates } from './read-range.ts';
import { confirmRead, readToProof, readUnfinishedFirst } from './read-tasks.ts';
import type { ReadContext, SweepDeps, SweepSummary } from './sweep.ts';

export interface ReadAccountRequest extends LaneHolder, RetryOptions {
  readonly name: string;
  /** Null: taken from the first answer. */
  readonly advertiserId: bigint | null;
  readonly lagMs: number;
}

/** Reads in a lane, again and again while the source or the database is away. Any answer that was committed begins the time anew. */
async function readInLane(
  deps: SweepDeps,
  request: ReadAccountRequest,
  lane: Lane,
  read: (deps: SweepDeps, context: ReadContext) => Promise<SweepSummary[]>,
): Promise<SweepSummary[]> {
  const { store } = deps;
  const advertiser = await retry(request, () => store.advertisers.ensure(request.name, request.advertiserId));
  requireIdentity(advertiser);
  await using held = await retry(request, () => holdLane(store, { ...request, lane }));
  let steps = 0;
  const onStep: SweepDeps['onStep'] = (step) => {
    steps++;
    deps.onStep?.(step);
  };
  const context = { ...request, lane: held, advertiser };
  return await retry({ ...request, signal: held.signal, progress: () => steps }, () =>
    haltIfRefused(store, context, () => read({ ...deps, onStep }, context)),
  );
}

/** Continues interrupted sweeps, then reads new applications, or everything; the last sweep is the newest. */
export async function syncAccount(
  deps: SweepDeps,
  request: ReadAccountRequest & { readonly startAt: number | null; readonly recheck: boolean },
): Promise<SweepSummary[]> {
  return await readInLane(deps, request, 'live', async (counting, context) => {
    const sweeps = await readUnfinishedFirst(counting, context, request.recheck ? 'everything' : 'new');
    // Tried again alone: the sweeps have ended, and reading again would begin new ones.
    await retry(request, () => confirmRead(deps, context, sweeps));
    return sweeps;
  });
}

export type BackfillRange = ReadRange | 'gaps';

export interface BackfillRequest extends ReadAccountRequest {
  readonly range: BackfillRange;
  /** Start again instead of continuing an unfinished sweep of the range. */
  readonly restart: boolean;
  readonly parallel: number;
}

export async function backfill(deps: SweepDeps, request: BackfillRequest): Promise<SweepSummary[]> {
  const purpose = 'backfill';
  let { restart } = request;
  return await readInLane(deps, request, purpose, async (counting, context) => {
    const { advertiserId } = context.advertiser;
    const how = { ...context, parallel: request.parallel, purpose } as const;
    const sweeps: SweepSummary[] = [];
    const ranges = await toRanges(deps, advertiserId, request.range);
    if (restart && advertiserId !== null) {
      for (const range of ranges)
        await deps.store.sweeps.dropUnfinished({ advertiserId, lane: purpose, purpose, ...range });
      restart = false;
    }
    for (const range of ranges) {
      const isByDate = range.axis === 'date';
      sweeps.push(await (isByDate ? readDates(counting, how, range) : readToProof(counting, how, rangeOf(range))));
    }
    return sweeps;
  });
}

export async function toRanges(
  { store }: Pick<SweepDeps, 'store'>,
  advertiserId: bigint | null,
  range: BackfillRange,
): Promise<ReadRange[]> {
  if (range !== 'gaps') return [range];
  const open = advertiserId === null ? [coveredOf(wholeAxis)] : await store.sweeps.loadOpenRanges(advertiserId);
  return open.map(({ low, high }) => ({ axis: 'id', low, high }));
}

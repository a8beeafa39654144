// The read tasks of an account: read what is new, and read again what was read. `intake sync` and the worker run the same tasks at different
// times.
import type { Plan } from '../../domain/coverage/coverage.ts';
import { dateSlackSeconds } from '../../domain/coverage/sweep-state.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import type { SyncState } from '../../store/sweeps/continue-sweep.ts';
import { type RetryOptions, retry } from '../retry.ts';
import type { HeldLane } from './held-lane.ts';
import { type SweepDeps, type SweepSummary, sweep } from './sweep.ts';

/** Whose lane it is, and how it is read. */
export interface ReadContext {
  readonly lane: HeldLane;
  readonly advertiser: KnownAdvertiser;
  readonly lagMs: number;
  /** Where the first sweep begins, in milliseconds since the epoch; null is everything. */
  readonly startAt: number | null;
  readonly retryForMs: number;
  readonly shouldPause?: (() => boolean) | undefined;
  readonly timeLimitMs?: number | undefined;
}

/** Reads on from where the cursor stood one lag ago; the first time, everything. Goes on with what an earlier sweep left open. */
export async function readNew(deps: SweepDeps, context: ReadContext, known?: SyncState): Promise<SweepSummary> {
  const { pollFrom, learned, unfinished } =
    known ??
    (await retry(retryOptions(deps, context), () =>
      deps.store.sweeps.loadSyncState({ advertiserId: context.advertiser.advertiserId, lagMs: context.lagMs }),
    ));
  if (pollFrom === null) return await readAgain(deps, context, toFirstPlan(context));
  const plan: Plan = { from: pollFrom, rigor: 'poll', ...(learned && { capacity: learned.capacity }) };
  const isNew = !unfinished.some((one) => one.purpose === 'live' && one.low === pollFrom);
  return await sweep(deps, { ...context, purpose: 'live', plan, parallel: 1, isNew });
}

/**
 * Continues the sweeps that stopped early, then reads what is new: until the former are closed, the cursor cannot pass them. With `recheck`
 * everything is read again. Nothing is read after a sweep that stopped early; the last summary is always the newest.
 */
export async function readUnfinishedAndNew(
  deps: SweepDeps,
  context: ReadContext,
  { recheck = false, onlyUnfinished = false } = {},
): Promise<SweepSummary[]> {
  const { unfinished } = await retry(retryOptions(deps, context), () =>
    deps.store.sweeps.loadSyncState({ advertiserId: context.advertiser.advertiserId, lagMs: context.lagMs }),
  );
  const sweeps: SweepSummary[] = [];
  let { advertiser } = context;
  const keep = (summary: SweepSummary) => {
    advertiser = summary.advertiser;
    sweeps.push(summary);
    return summary.stopped !== null;
  };
  for (const { low, high, axis, purpose } of unfinished) {
    const plan = { axis, from: low, to: high };
    const request = { ...context, advertiser };
    const running =
      purpose === 'recheck'
        ? readAgain(deps, request, plan)
        : sweep(deps, { ...request, purpose, plan: { ...plan, rigor: 'poll' }, parallel: 1 });
    if (keep(await running)) return sweeps;
  }
  if (onlyUnfinished) return sweeps;
  const isReadJustNow = unfinished.some(
    ({ purpose, axis, low, high }) => purpose === 'recheck' && axis === 'id' && low <= 1n && high === null,
  );
  if (!recheck) keep(await readNew(deps, { ...context, advertiser }));
  else if (!isReadJustNow) keep(await readAgain(deps, { ...context, advertiser }, { from: 1n }));
  return sweeps;
}

/** Reads a range again, or for the first time, up to a proof. The ids already held are where its questions are cut. */
export async function readAgain(deps: SweepDeps, context: ReadContext, plan: Plan): Promise<SweepSummary> {
  const known = await retry(retryOptions(deps, context), () => loadKnown(deps, context.advertiser, plan));
  const byIds = await sweep(deps, {
    ...context,
    purpose: 'recheck',
    plan: { ...plan, rigor: 'proof', heldBefore: known?.held ?? 0, longestBefore: known?.longest ?? 0 },
    known,
    parallel: 2,
  });
  if (!byIds.tryDates || byIds.stopped !== null || plan.axis === 'date') return byIds;
  const byDates = await readByDates(deps, { ...context, advertiser: byIds.advertiser }, plan);
  return { ...addUp(byIds, byDates), certificate: byIds.certificate, risk: byIds.risk, reason: byIds.reason };
}

/**
 * Where the id filters hide applications, or may do so, the date filters are tried: a source may honour these. What comes is stored; the
 * certificate stays that of the ids, since dates cannot prove completeness.
 */
async function readByDates(deps: SweepDeps, context: ReadContext, plan: Plan): Promise<SweepSummary> {
  const { advertiserId } = context.advertiser;
  const isWhole = (plan.from ?? 1n) <= 1n;
  const lowest = isWhole ? null : await deps.store.applications.loadSubmittedAt(advertiserId, plan.from ?? 1n);
  const from = lowest === null ? 0n : BigInt(Math.floor(lowest.getTime() / 1_000)) - dateSlackSeconds;
  return await sweep(deps, {
    ...context,
    purpose: 'recheck',
    plan: { axis: 'date', from, rigor: 'proof' },
    parallel: 2,
  });
}

/** The counts of two sweeps over the same applications; what the second says of itself is dropped. */
function addUp(first: SweepSummary, second: SweepSummary): SweepSummary {
  const sum = (name: 'requests' | 'received' | 'added' | 'changed' | 'quarantined' | 'bytes') =>
    first[name] + second[name];
  return {
    ...first,
    found: Math.max(first.found, second.found),
    requests: sum('requests'),
    received: sum('received'),
    added: sum('added'),
    changed: sum('changed'),
    quarantined: sum('quarantined'),
    bytes: sum('bytes'),
    readByDates: second.added,
  };
}

/** Everything, or from a date on; the latter goes by the date filter, since no id is known yet. */
function toFirstPlan({ startAt }: Pick<ReadContext, 'startAt'>): Plan {
  return startAt === null ? { from: 1n } : { axis: 'date', from: BigInt(Math.floor(startAt / 1_000)) };
}

/** The ids already held are where a second sweep cuts its questions: nearly every one then closes at once. */
export async function loadKnown(
  { store }: Pick<SweepDeps, 'store'>,
  { advertiserId }: Pick<KnownAdvertiser, 'advertiserId'>,
  plan: Plan,
) {
  if (advertiserId === null || plan.axis === 'date') return undefined;
  return await store.applications.loadHeld(advertiserId, plan.from ?? 1n, plan.to ?? null);
}

function retryOptions(deps: SweepDeps, { retryForMs, lane }: ReadContext): RetryOptions {
  return { retryForMs, signal: lane.signal, onWait: deps.onWait };
}

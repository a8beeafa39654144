// The read tasks of an account: read new applications, and read earlier ones again. `intake sync` and the worker run the same tasks.
import type { Plan } from '../../domain/coverage/coverage.ts';
import { dateSlackSeconds } from '../../domain/coverage/sweep-state.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import type { SyncState } from '../../store/sweeps/continue-sweep.ts';
import { type RetryOptions, retry } from '../retry.ts';
import type { SweepRequest } from './commit-answer.ts';
import { type SweepDeps, type SweepSummary, sweep } from './sweep.ts';

/** The account to read, its held lane, and how to read. */
export interface ReadContext extends Omit<SweepRequest, 'purpose' | 'plan' | 'isNew' | 'splitPoints' | 'parallel'> {
  /** Submission date at which the first sweep begins, in milliseconds since the epoch; null reads everything. */
  readonly startAt: number | null;
}

/** Reads on from where the cursor was one lag ago; the first time, from `startAt`. Continues an unfinished poll from the same id. */
export async function readNew(deps: SweepDeps, context: ReadContext, state?: SyncState): Promise<SweepSummary> {
  const { pollFrom, learned, unfinished } =
    state ??
    (await retry(retryOptions(deps, context), () =>
      deps.store.sweeps.loadSyncState({ advertiserId: context.advertiser.advertiserId, lagMs: context.lagMs }),
    ));
  if (pollFrom === null) return await readAgain(deps, context, toFirstPlan(context));
  const plan: Plan = { from: pollFrom, rigor: 'poll', ...(learned && { capacity: learned.capacity }) };
  const isNew = !unfinished.some((one) => one.purpose === 'live' && one.low === pollFrom);
  return await sweep(deps, { ...context, purpose: 'live', plan, parallel: 1, isNew });
}

/**
 * Continues unfinished sweeps first: no poll requests again what they have not read. Then it reads new applications, or with `recheck`
 * everything again. If a sweep stops early, nothing is read after it. The last summary is always the newest.
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
  const isReadJustNow = unfinished.some(isWholeRecheck);
  if (!recheck) keep(await readNew(deps, { ...context, advertiser }));
  else if (!isReadJustNow) keep(await readAgain(deps, { ...context, advertiser }, { from: 1n }));
  return sweeps;
}

/** True if the sweep reads the whole list again. */
export function isWholeRecheck({ purpose, axis, low, high }: SyncState['unfinished'][number]): boolean {
  return purpose === 'recheck' && axis === 'id' && low <= 1n && high === null;
}

/** Reads a range up to a proof. Ids that are already stored split the range into questions. */
export async function readToProof(deps: SweepDeps, request: SweepRequest): Promise<SweepSummary> {
  const { advertiser, plan } = request;
  const known = await retry(retryOptions(deps, request), () => loadKnown(deps, advertiser, plan));
  const { held: heldBefore = 0, listed: listedBefore = 0, longest: longestBefore = 0, latenessMs = 0 } = known ?? {};
  const before = { heldBefore, listedBefore, longestBefore };
  const lagMs = Math.max(request.lagMs, latenessMs);
  return await sweep(deps, { ...request, lagMs, plan: { ...plan, rigor: 'proof', ...before }, splitPoints: known });
}

/** Reads a range again, or for the first time. */
export async function readAgain(deps: SweepDeps, context: ReadContext, plan: Plan): Promise<SweepSummary> {
  const byIds = await readToProof(deps, { ...context, purpose: 'recheck', plan, parallel: 2 });
  if (!byIds.tryDates || byIds.stopped !== null || plan.axis === 'date') return byIds;
  const byDates = await readByDates(deps, { ...context, advertiser: byIds.advertiser }, plan);
  return addUp(byIds, byDates);
}

/**
 * If the id filters hide applications, or may do so, this sweep tries the date filters, which the source may honour. It stores what they
 * show. The certificate stays that of the sweep by ids, because dates cannot prove completeness.
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

/** Adds up the counts of two sweeps over the same applications. All other fields are those of the first. */
function addUp(first: SweepSummary, second: SweepSummary): SweepSummary {
  return {
    ...first,
    found: Math.max(first.found, second.found),
    requests: first.requests + second.requests,
    received: first.received + second.received,
    added: first.added + second.added,
    changed: first.changed + second.changed,
    quarantined: first.quarantined + second.quarantined,
    bytes: first.bytes + second.bytes,
  };
}

/** Everything, or from a date on. The latter uses the date filter, because no id is known yet. */
function toFirstPlan({ startAt }: Pick<ReadContext, 'startAt'>): Plan {
  return startAt === null ? { from: 1n } : { axis: 'date', from: BigInt(Math.floor(startAt / 1_000)) };
}

/** Loads the stored ids, by which a second sweep splits its range into questions. Nearly every question then closes its range at once. */
export async function loadKnown(
  { store }: Pick<SweepDeps, 'store'>,
  { advertiserId }: Pick<KnownAdvertiser, 'advertiserId'>,
  plan: Plan,
) {
  if (advertiserId === null || plan.axis === 'date') return undefined;
  return await store.applications.loadHeld(advertiserId, plan.from ?? 1n, plan.to ?? null);
}

function retryOptions(deps: SweepDeps, { retryForMs, lane }: Pick<SweepRequest, 'retryForMs' | 'lane'>): RetryOptions {
  return { retryForMs, signal: lane.signal, onWait: deps.onWait };
}

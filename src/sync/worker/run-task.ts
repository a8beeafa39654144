// Runs one scheduled task for an account: takes its lease, reads the list, and halts the account when the credential is refused.
// read-tasks.ts has what is read; the worker decides when, and what follows a failure.
import { Trouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import type { SyncState } from '../../store/sweeps/continue-sweep.ts';
import { requireIdentity } from '../read/account-identity.ts';
import { audit, witnessByDate } from '../read/audit.ts';
import { type HeldLane, tryHoldLane } from '../read/held-lane.ts';
import { type ReadContext, readAgain, readNew, readUnfinishedAndNew } from '../read/read-tasks.ts';
import type { SweepDeps, SweepSummary } from '../read/sweep.ts';
import type { AccountQueue, TaskName } from './account-queue.ts';

export interface RunTaskDeps extends Pick<SweepDeps, 'onStep' | 'onWait'> {
  readonly store: Store;
  readonly now: () => number;
  /** Makes another task due for the same account. */
  readonly demand: (name: TaskName) => void;
}

export interface RunTaskRequest {
  readonly owner: string;
  readonly leaseMs: number;
  readonly lagMs: number;
  readonly startAt: number | null;
  /** A poll is skipped when another worker's ended within this time: their schedules start at the same moment. */
  readonly skipIfDoneWithinMs: number;
  readonly signal: AbortSignal;
}

/** What a task brought. */
export interface TaskResult {
  /** Whose list was read up to its newest end. */
  readonly polled: bigint | null;
  readonly sweeps: readonly SweepSummary[];
  /** Applications that a date witness or a random audit shows and the id filters did not. */
  readonly hidden: number;
}

const longTasks = ['unfinished', 'day', 'fortnight', 'everything'] as const;
const nothing: TaskResult = { polled: null, sweeps: [], hidden: 0 };

/** How long a task retries before the account rests instead: a poll must not keep its slot from others. */
const pollRetryMs = 5_000;
const longRetryMs = 30_000;
/** A task that takes longer goes on later, so that none keeps an account's lane to itself. */
const sweepLimitMs = 3_600_000;

/** Runs the task if the lane is free; null when another process holds it. */
export async function runTask(
  deps: RunTaskDeps,
  request: RunTaskRequest,
  queue: AccountQueue,
  name: TaskName,
): Promise<TaskResult | null> {
  const { store } = deps;
  const { account, due } = queue;
  const advertiser = await store.advertisers.ensure(account.name, account.advertiserId);
  requireIdentity(advertiser);
  const isPoll = name === 'poll';
  const { owner, leaseMs, signal } = request;
  const claim = { name: account.name, lane: 'live', owner, leaseMs, signal } as const;
  await using lane = await tryHoldLane(store, {
    ...claim,
    skipIfDoneWithinMs: isPoll ? request.skipIfDoneWithinMs : 0,
  });
  if (lane === null) return null;
  const context = {
    ...{ lane, advertiser, lagMs: request.lagMs, startAt: request.startAt },
    retryForMs: isPoll ? pollRetryMs : longRetryMs,
    shouldPause: () => !isPoll && due.has('poll'),
    timeLimitMs: sweepLimitMs,
  };
  const sweepDeps = { ...deps, source: account.source, onContradiction: () => deps.demand('everything') };
  try {
    const result = isPoll
      ? await poll(deps, sweepDeps, queue, context)
      : await carryOut(deps, sweepDeps, context, name);
    if (advertiser.halt !== null) await store.advertisers.unhalt(account.name, 'refused');
    if (result.sweeps.at(-1)?.stopped === 'paused') due.add(name);
    if (result.polled !== null) lane.markDone();
    return result;
  } catch (error) {
    if (error instanceof Trouble && error.kind === 'refused' && !lost(lane)) {
      await store.advertisers.halt(account.name, 'refused', error.message);
    }
    throw error;
  }
}

/** Reads what is new. Unfinished sweeps become due as well. A first sweep of everything is no poll. */
async function poll(
  deps: RunTaskDeps,
  sweepDeps: SweepDeps,
  queue: AccountQueue,
  context: ReadContext,
): Promise<TaskResult> {
  const { advertiserId } = context.advertiser;
  const state = await deps.store.sweeps.loadSyncState({ advertiserId, lagMs: context.lagMs });
  const isFirst = isFirstSweep(state);
  const isTakenUp = longTasks.some((name) => queue.due.has(name));
  if (isFirst || (state.unfinished.length > 0 && !isTakenUp)) deps.demand('unfinished');
  if (isFirst) return nothing;
  return { ...nothing, polled: advertiserId, sweeps: [await readNew(sweepDeps, context, state)] };
}

/** Nothing to go on from yet, or a sweep of everything that was interrupted. */
function isFirstSweep({ pollFrom, covered, unfinished }: SyncState): boolean {
  return pollFrom === null || (!covered && unfinished.length > 0);
}

async function carryOut(
  deps: RunTaskDeps,
  sweepDeps: SweepDeps,
  context: ReadContext,
  name: TaskName,
): Promise<TaskResult> {
  const { advertiserId } = context.advertiser;
  const loadIsFirst = async () =>
    isFirstSweep(await deps.store.sweeps.loadSyncState({ advertiserId, lagMs: context.lagMs }));
  if (name === 'unfinished') {
    // A first sweep goes on to its end: a poll in between would read the rest of it as if it were new.
    const isFirst = await loadIsFirst();
    const sweeps = isFirst
      ? await readUnfinishedAndNew(sweepDeps, { ...context, shouldPause: undefined })
      : await readUnfinishedAndNew(sweepDeps, context, { onlyUnfinished: true });
    return { ...nothing, polled: isFirst ? (sweeps.at(-1)?.advertiser.advertiserId ?? null) : null, sweeps };
  }
  if (name === 'witness') {
    const hidden = await witnessByDate(sweepDeps, context, deps.now());
    if (hidden > 0) deps.demand('everything');
    return { ...nothing, hidden };
  }
  if (name === 'audit') {
    const { contradictions } = await audit(sweepDeps, context, Math.random);
    return { ...nothing, hidden: contradictions };
  }
  const days = name === 'day' ? 1 : name === 'fortnight' ? 14 : null;
  // Recent days come after the first sweep: at their end the cursor would pass what that has not read yet.
  if (days !== null && (await loadIsFirst())) {
    deps.demand('unfinished');
    return nothing;
  }
  const from = days === null ? 1n : await deps.store.applications.loadRecentFrom(advertiserId, days);
  return from === null ? nothing : { ...nothing, sweeps: [await readAgain(sweepDeps, context, { from })] };
}

/** A refusal that a former holder of the lane heard says nothing about the account as it is now. */
function lost({ signal }: HeldLane): boolean {
  return signal.aborted;
}

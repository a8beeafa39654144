// Runs one scheduled task: for an account it takes the lease, reads the list, and halts the account when the credential is refused. Of the
// workers, the one that takes the lease of a maintenance task runs that. read-tasks.ts defines what is read. The worker decides when.
import { firstPosition, lastPosition } from '../../domain/coverage/position.ts';
import type { Store } from '../../store/store.ts';
import type { SyncState } from '../../store/sweeps/continue-sweep.ts';
import { haltIfRefused, type LaneHolder, requireIdentity, tryHoldLane } from '../accounts/held-lane.ts';
import { audit, witnessByDate } from '../read/audit.ts';
import { confirmRead, isWholeRecheck, readAgain, readNew, readUnfinishedFirst } from '../read/read-tasks.ts';
import { loadState, type ReadContext, type SweepDeps, type SweepSummary } from '../read/sweep.ts';
import { type AccountQueue, isReady, type TaskName } from './account-queue.ts';
import type { MaintenanceName } from './pass.ts';

export interface RunTaskDeps extends Pick<SweepDeps, 'onStep'> {
  readonly store: Store;
  readonly demand: (name: TaskName) => void;
}

export interface RunTaskRequest extends LaneHolder, Pick<ReadContext, 'lagMs' | 'startAt'> {
  /** A poll is skipped if another worker's poll finished within this time: the schedules of workers start at the same moment. */
  readonly skipIfDoneWithinMs: number;
}

type TaskDeps = RunTaskDeps & SweepDeps;

export interface TaskResult {
  readonly sweeps: readonly SweepSummary[];
  /** Contradictions that the check by date or a random audit found. */
  readonly hidden: number;
}

const longTasks = ['unfinished', 'day', 'fortnight', 'everything'] as const;
const nothing: TaskResult = { sweeps: [], hidden: 0 };

/** A task that takes longer stops and continues later, so that no task occupies the lane of an account. */
const taskLimitMs = 3_600_000;

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
  const skipIfDoneWithinMs = isPoll ? request.skipIfDoneWithinMs : 0;
  await using lane = await tryHoldLane(store, { ...request, name: account.name, lane: 'live', skipIfDoneWithinMs });
  if (lane === null) return null;
  const endsAt = performance.now() + taskLimitMs;
  const isOver = () => performance.now() > endsAt;
  const { lagMs, startAt } = request;
  const hasToStop = () => isOver() || (!isPoll && isReady(queue, 'poll'));
  const context = { lane, advertiser, lagMs, startAt, hasToStop };
  const taskDeps = { ...deps, source: account.source };
  const result = await haltIfRefused(store, context, () =>
    isPoll ? poll(taskDeps, queue, context) : runOther(taskDeps, context, name, isOver),
  );
  if (result.sweeps.at(-1)?.stopped) due.add(name);
  return result;
}

/** Reads new applications, and makes due what the rows show to be undone. A first sweep of everything is left to the task `unfinished`. */
async function poll(deps: TaskDeps, queue: AccountQueue, context: ReadContext): Promise<TaskResult> {
  const state = await loadState(deps, context);
  const isFirst = isFirstSweep(state);
  const isTakenUp = longTasks.some((name) => isReady(queue, name));
  if (isFirst || state.due.length > 0 || (state.unfinished.length > 0 && !isTakenUp)) deps.demand('unfinished');
  if (isFirst) return nothing;
  if (state.contradicted && !state.unfinished.some(isWholeRecheck)) deps.demand('everything');
  const sweeps = [await readNew(deps, context, state)];
  await confirmRead(deps, context, sweeps);
  return { ...nothing, sweeps };
}

/** True if there is no cursor yet, or the first sweep of everything was interrupted. */
function isFirstSweep({ pollFrom, covered, unfinished }: SyncState): boolean {
  return pollFrom === null || (!covered && unfinished.length > 0);
}

async function runOther(
  deps: TaskDeps,
  context: ReadContext,
  name: TaskName,
  isOver: () => boolean,
): Promise<TaskResult> {
  if (name === 'witness' || name === 'audit') {
    const hidden = name === 'audit' ? await audit(deps, context, Math.random) : await witnessByDate(deps, context);
    if (hidden > 0) deps.demand('everything');
    return { ...nothing, hidden };
  }
  const isFirst = name !== 'everything' && isFirstSweep(await loadState(deps, context));
  if (name === 'unfinished') {
    if (!isFirst) return { ...nothing, sweeps: await readUnfinishedFirst(deps, context, 'nothing') };
    // A first sweep does not pause for polls: a poll would read the rest of the list as if it were new.
    const sweeps = await readUnfinishedFirst(deps, { ...context, hasToStop: isOver }, 'new');
    await confirmRead(deps, context, sweeps);
    return { ...nothing, sweeps };
  }
  // Recent days are read only after the first sweep. Otherwise the cursor would pass applications that the first sweep has not read yet.
  if (isFirst) {
    deps.demand('unfinished');
    return nothing;
  }
  const loadFrom = (days: number) => deps.store.sweeps.loadRecentFrom(context.advertiser.advertiserId, days);
  const from = name === 'everything' ? firstPosition : await loadFrom(name === 'day' ? 1 : 14);
  return from === null ? nothing : { ...nothing, sweeps: [await readAgain(deps, context, { from, to: lastPosition })] };
}

export interface MaintenanceTask {
  readonly name: MaintenanceName;
  readonly schedule: string;
  /** No run begins within this time after one that has finished: a minute, if not given. The clocks of workers differ by less. */
  readonly restMs?: number;
  /** Calls `onStep` while it makes progress. */
  readonly run: (signal: AbortSignal, onStep: () => void) => Promise<void>;
}

/** Runs the task unless another worker runs it, or has just run it. True when this worker ran it. */
export async function runMaintenance(
  store: Pick<Store, 'leases'>,
  task: MaintenanceTask,
  request: LaneHolder & { readonly onStep: () => void },
): Promise<boolean> {
  // The space keeps it apart from advertiser names, which have none.
  const name = `maintenance ${task.name}`;
  const { restMs: skipIfDoneWithinMs = 60_000 } = task;
  await using lane = await tryHoldLane(store, { ...request, name, lane: 'live', skipIfDoneWithinMs });
  if (lane === null) return false;
  await task.run(lane.signal, request.onStep);
  lane.markDone();
  return true;
}

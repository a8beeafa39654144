// The worker: schedules make tasks due for accounts and start maintenance tasks, the download loop follows the queue, and the webhook loop
// the events. It only schedules. A failure pauses only its own account, and is retried without end.
import { once } from 'node:events';
import { createTask } from 'node-cron';
import { LeaseLost, type Trouble, type Wait } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import { addUp, nothingCounted, type SweepCounts } from '../read/sweep.ts';
import { backoffAfter, createTroubles, isTemporary, toTrouble } from '../retry.ts';
import {
  type AccountQueue,
  createAccountQueues,
  type TaskName,
  taskNames,
  type WorkerAccount,
} from './account-queue.ts';
import { type Schedule, startSchedules } from './cron.ts';
import { type DownloadLoopDeps, startDownloadLoop } from './download-loop.ts';
import { createTeller, toErrorKind } from './pass.ts';
import { type MaintenanceTask, type RunTaskRequest, runMaintenance, runTask, type TaskResult } from './run-task.ts';
import { runWebhookLoop, type WebhookLoopDeps } from './webhook-loop.ts';

export interface WorkerDeps extends DownloadLoopDeps, WebhookLoopDeps {
  readonly store: Store;
  readonly accounts: readonly WorkerAccount[];
  readonly maintenance: readonly MaintenanceTask[];
}

export interface WorkerRequest extends Omit<RunTaskRequest, 'skipIfDoneWithinMs'> {
  /** Cron text of live polls; null is off, here and below. */
  readonly schedule: string | null;
  readonly recheckSchedule: string | null;
  readonly auditSchedule: string | null;
  readonly accountsAtOnce: number;
  /** Most of them that may run other tasks than polls. */
  readonly longAtOnce: number;
  readonly probeEveryMs: number;
}

export interface WorkerFacts {
  readonly accounts: number;
  /** Accounts whose last try failed. */
  readonly troubled: number;
  /** The trouble of one of them. */
  readonly trouble: Trouble | null;
  /** Why files cannot be fetched or stored; null if they can. */
  readonly filesTrouble: Trouble | null;
  /** The accounts that wait for the database, which cannot be told. */
  readonly waits: readonly Wait[];
}

/** A task that failed before and finds its lane held tries again after this time. */
const retryHeldMs = 5_000;
const backoffRange = { minMs: 1_000, baseMs: 2_000, maxMs: 300_000 };

/** Starts the schedules and runs until the signal aborts. Every account is polled once at the start. */
export function startWorker(deps: WorkerDeps, request: WorkerRequest) {
  const { store, log, watchdog } = deps;
  const { signal } = request;
  const taskRequest = { ...request, skipIfDoneWithinMs: toNotWithinMs(request.schedule) };
  const troubles = createTroubles(store);
  const queues = createAccountQueues({
    accounts: deps.accounts,
    atOnce: request.accountsAtOnce,
    longAtOnce: request.longAtOnce,
    work: workQueue,
    signal,
  });

  async function workQueue(queue: AccountQueue, task: TaskName): Promise<void> {
    const { account, failing } = queue;
    const facts = { advertiser: account.name, task };
    using heartbeat = watchdog.begin({ task, advertiser: account.name });
    account.watch(heartbeat);
    const tell = createTeller(deps, task);
    const failedBefore = failing.get(task)?.attempt ?? 0;
    let counts: SweepCounts = nothingCounted;
    const goOn = () => {
      failing.delete(task);
      if (failing.size === 0) troubles.clear('reading', [account.name]);
    };
    const onStep = (step: SweepCounts) => {
      heartbeat.move();
      counts = addUp(counts, step);
      goOn();
    };
    const demand = (name: TaskName) => queues.demandOf(queue, name);
    try {
      const result = await runTask({ store, onStep, demand }, taskRequest, queue, task);
      if (result === null) {
        // Another process holds the lane. That says nothing about what this worker waits for, so it tries again soon.
        if (failing.has(task)) queues.pause(queue, task, retryHeldMs);
        return;
      }
      goOn();
      tell('done', counts);
      logResult(facts, result, counts);
    } catch (error) {
      if (signal.aborted) return;
      tell('failed', { ...counts, kind: toErrorKind(error) });
      // The new holder continues the sweep.
      if (error instanceof LeaseLost) return log.warn(facts, 'lease lost');
      // A task that made progress before it failed has not failed before.
      const attempt = isTemporary(error) && counts.requests > 0 ? 1 : failedBefore + 1;
      const waitMs = Math.round(pauseAfter(queue, task, toTrouble(error), attempt));
      log.warn({ ...facts, kind: toErrorKind(error), attempt, waitMs, err: error }, 'task failed; retrying');
    } finally {
      account.watch(null);
    }
  }

  /** Handles a failure: a halted account is probed by one task, everything else is retried with backoff, each task apart. */
  function pauseAfter(queue: AccountQueue, task: TaskName, trouble: Trouble, attempt: number): number {
    const isHalted = trouble.kind === 'refused' || trouble.kind === 'mismatch';
    queue.failing.set(task, { attempt, since: queue.failing.get(task)?.since ?? new Date(), trouble });
    const waitMs = isHalted ? request.probeEveryMs : backoffAfter(trouble, attempt, backoffRange);
    troubles.note('reading', [queue.account.name], trouble, waitMs);
    queues.pause(queue, task, waitMs, isHalted ? taskNames : []);
    return waitMs;
  }

  function logResult(facts: { readonly task: TaskName }, { sweeps, hidden }: TaskResult, counts: SweepCounts): void {
    if (hidden > 0) log.warn({ ...facts, hidden }, 'a check shows applications that the sweeps did not');
    const last = sweeps.at(-1);
    if (last === undefined) return;
    const { requests, received, added, changed, quarantined } = counts;
    const { certificate, stopped } = last;
    const isQuiet = facts.task === 'poll' && added + changed + quarantined === 0 && certificate !== 'unproven';
    const read = { ...facts, certificate, stopped, requests, received, added, changed, quarantined };
    log[isQuiet ? 'debug' : 'info'](read, 'read');
  }

  /**
   * A download could not connect to the source. A poll shows now whether the source is down; the next one may be minutes away. It is skipped
   * shortly after another one, and does not run during the pause after one that failed.
   */
  function pollUnreachable(name: string): void {
    for (const queue of queues.all) if (queue.account.name === name) queues.demandOf(queue, 'poll');
  }

  async function runByTheClock(task: MaintenanceTask): Promise<void> {
    using heartbeat = watchdog.begin({ task: task.name });
    const tell = createTeller(deps, task.name);
    try {
      const onStep = () => heartbeat.move();
      if (await runMaintenance(store, task, { ...request, onStep })) tell('done');
    } catch (error) {
      if (signal.aborted) return;
      tell('failed', { kind: toErrorKind(error) });
      log.warn({ maintenance: task.name, err: error }, 'maintenance task failed; next run by its schedule');
    }
  }

  /** Running tasks by name. The lease does not prevent a second run in the same worker, because the worker already owns it. */
  const maintenance = new Map<string, Promise<void>>();
  function startMaintenance(task: MaintenanceTask): void {
    if (maintenance.has(task.name)) return;
    const running = runByTheClock(task).finally(() => maintenance.delete(task.name));
    maintenance.set(task.name, running);
  }

  const stopSchedules = startSchedules(
    [
      [request.schedule, () => queues.demand('poll')],
      ['7 * * * *', () => queues.demand('day', 'witness')],
      ['41 */6 * * *', () => queues.demand('fortnight')],
      [request.recheckSchedule, () => queues.demand('everything')],
      [request.auditSchedule, () => queues.demand('audit')],
      ...deps.maintenance.map((task): Schedule => [task.schedule, () => startMaintenance(task)]),
    ],
    log,
  );
  queues.demand('poll');
  const downloadLoop = startDownloadLoop({ ...deps, onUnreachable: pollUnreachable }, troubles, signal);
  const webhookLoop = runWebhookLoop(deps, request);

  async function end(): Promise<void> {
    if (!signal.aborted) await once(signal, 'abort');
    stopSchedules();
    await Promise.allSettled([downloadLoop.ended, webhookLoop, queues.untilIdle(), ...maintenance.values()]);
    await troubles.untilWritten();
  }
  return {
    /** Resolves when everything has stopped after the signal. */
    ended: end(),
    facts(): WorkerFacts {
      const troubled = queues.all.flatMap(findTrouble);
      return {
        accounts: queues.all.length,
        troubled: troubled.length,
        trouble: troubled[0]?.trouble ?? null,
        filesTrouble: downloadLoop.trouble(),
        waits: troubled
          .filter(({ trouble }) => trouble.at === 'database')
          .map(({ advertiser, trouble: { message: reason }, since }): Wait => {
            return { advertiser, task: 'reading', dependency: 'database', reason, since };
          }),
      };
    },
  };
}

export type Worker = ReturnType<typeof startWorker>;

/** The trouble of the account's most urgent task that fails. */
function findTrouble({ account, failing }: AccountQueue) {
  const found = taskNames.flatMap((name) => failing.get(name) ?? [])[0];
  return found ? [{ advertiser: account.name, ...found }] : [];
}

/** How long after a poll other workers skip theirs, since all schedules start at the same moment: half the poll interval, at most 20 s. */
function toNotWithinMs(schedule: string | null): number {
  const [first, second] = schedule === null ? [] : createTask(schedule, () => {}).getNextRuns(2);
  return first && second ? Math.min(20_000, (second.getTime() - first.getTime()) / 2) : 20_000;
}

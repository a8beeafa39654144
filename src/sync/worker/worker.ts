// The worker: schedules make tasks due for accounts and start maintenance tasks, the download loop follows the queue, and the webhook loop
// the events. A failure pauses only its own account. The worker only schedules; run-task.ts and download-run.ts do the work. It retries without end.
import { createTask } from 'node-cron';
import { LeaseLost, type Trouble, type Wait } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import { backoffAfter, toTrouble } from '../retry.ts';
import { createTroubles } from '../troubles.ts';
import {
  type AccountQueue,
  createAccountQueues,
  type TaskName,
  taskNames,
  type WorkerAccount,
} from './account-queue.ts';
import { type Schedule, startSchedules } from './cron.ts';
import { type DownloadLoopDeps, startDownloadLoop } from './download-loop.ts';
import { type MaintenanceTask, runMaintenance } from './maintenance.ts';
import { createTeller, type Pass, type PassName, toErrorKind } from './pass.ts';
import { type RunTaskRequest, runTask, type TaskResult } from './run-task.ts';
import { runWebhookLoop, type WebhookLoopDeps } from './webhook-loop.ts';

export interface WorkerDeps extends DownloadLoopDeps, WebhookLoopDeps {
  readonly store: Store;
  readonly accounts: readonly WorkerAccount[];
  readonly maintenance: readonly MaintenanceTask[];
  readonly now: () => number;
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

export interface Worker {
  facts(): WorkerFacts;
  /** Resolves when everything has stopped after the signal. */
  readonly ended: Promise<void>;
}

/** A task that failed before and finds its lane held tries again after this time. */
const retryHeldMs = 5_000;
const backoffRange = { minMs: 1_000, baseMs: 2_000, maxMs: 300_000 };
/** Cursors of finished polls are confirmed at this interval, for all advertisers in one statement. */
const confirmEveryMs = 5_000;

const passNames: Record<TaskName, PassName> = {
  poll: 'live',
  unfinished: 'recheck',
  witness: 'witness',
  audit: 'witness',
  day: 'recheck',
  fortnight: 'recheck',
  everything: 'recheck',
};

/** Starts the schedules and runs until the signal aborts. Every account is polled once at the start. */
export function startWorker(deps: WorkerDeps, request: WorkerRequest): Worker {
  const { store, log, watchdog } = deps;
  const { signal } = request;
  const taskRequest = { ...request, skipIfDoneWithinMs: toNotWithinMs(request.schedule) };
  const polled = new Set<bigint>();
  const troubles = createTroubles(store);
  const queues = createAccountQueues({
    accounts: deps.accounts,
    atOnce: request.accountsAtOnce,
    longAtOnce: request.longAtOnce,
    work: workQueue,
    signal,
  });

  async function workQueue(queue: AccountQueue, name: TaskName): Promise<void> {
    using heartbeat = watchdog.begin({ task: name, advertiser: queue.account.name });
    queue.account.watch(heartbeat);
    const tell = createTeller(deps, passNames[name]);
    const moves = {
      onStep() {
        heartbeat.move();
        goOn(queue, name);
      },
      onWait(trouble: Trouble, waitMs: number) {
        heartbeat.move();
        waitFor(queue, name, trouble, waitMs);
      },
      demand: (task: TaskName) => queues.demandOf(queue, task),
    };
    try {
      const result = await runTask({ store, ...moves }, taskRequest, queue, name);
      if (result === null) {
        // Another process holds the lane. That says nothing about what this worker waits for, so it tries again soon.
        if (queue.troubles.has(name)) queues.pause(queue, name, retryHeldMs);
        return;
      }
      queue.failures.delete(name);
      goOn(queue, name);
      if (result.polled !== null) polled.add(result.polled);
      tell('done', toCounts(result));
      logResult(queue.account.name, name, result);
    } catch (error) {
      if (signal.aborted) return;
      tell('failed', { kind: toErrorKind(error) });
      pauseAfter(queue, name, error);
    } finally {
      queue.account.watch(null);
    }
  }

  function waitFor({ account, troubles: own }: AccountQueue, task: TaskName, trouble: Trouble, waitMs: number): void {
    own.set(task, { trouble, since: own.get(task)?.since ?? new Date() });
    troubles.note('reading', [account.name], trouble, waitMs);
  }

  function goOn({ account, troubles: own }: AccountQueue, task: TaskName): void {
    own.delete(task);
    if (own.size === 0) troubles.clear('reading', [account.name]);
  }

  /** Handles a failure: a halted account is probed by one task, everything else is retried with backoff, each task apart. */
  function pauseAfter(queue: AccountQueue, name: TaskName, error: unknown): void {
    const facts = { advertiser: queue.account.name, task: name };
    if (error instanceof LeaseLost) {
      // The new holder continues the sweep.
      log.warn(facts, 'lease lost');
      return;
    }
    const trouble = toTrouble(error);
    const isHalted = trouble.kind === 'refused' || trouble.kind === 'mismatch';
    const attempt = (queue.failures.get(name) ?? 0) + 1;
    queue.failures.set(name, attempt);
    const waitMs = isHalted ? request.probeEveryMs : backoffAfter(trouble, attempt, backoffRange);
    waitFor(queue, name, trouble, waitMs);
    queues.pause(queue, name, waitMs, isHalted ? taskNames : []);
    log.warn(
      { ...facts, kind: toErrorKind(error), attempt, waitMs: Math.round(waitMs), err: error },
      'task failed; retrying',
    );
  }

  function logResult(advertiser: string, task: TaskName, { sweeps, hidden }: TaskResult): void {
    if (hidden > 0 && task === 'audit') log.warn({ advertiser, hidden }, 'random audit contradicts the proof');
    else if (hidden > 0) {
      log.warn({ advertiser, hidden }, 'the date filter shows applications that the id filters did not');
    }
    for (const sweep of sweeps) {
      const isQuiet = task === 'poll' && sweep.added + sweep.changed + sweep.quarantined === 0;
      const level = isQuiet && sweep.certificate !== 'unproven' ? 'debug' : 'info';
      const { certificate, requests, received, added, changed, quarantined, stopped } = sweep;
      const counts = { certificate, requests, received, added, changed, quarantined, stopped };
      log[level]({ advertiser, task, ...counts }, 'read');
    }
  }

  /**
   * A download could not connect to the source. A poll shows now whether the source is down; the next one may be minutes away. It is skipped
   * shortly after another one, and does not run during the pause after one that failed.
   */
  function pollUnreachable(name: string): void {
    for (const queue of queues.all) if (queue.account.name === name) queues.demandOf(queue, 'poll');
  }

  async function runByTheClock(task: MaintenanceTask, skipIfDoneWithinMs?: number): Promise<void> {
    using heartbeat = watchdog.begin({ task: task.name });
    const tell = createTeller(deps, task.name);
    try {
      const onStep = () => heartbeat.move();
      if (await runMaintenance(store, task, { ...request, onStep, skipIfDoneWithinMs })) tell('done');
    } catch (error) {
      if (signal.aborted) return;
      tell('failed', { kind: toErrorKind(error) });
      log.warn({ maintenance: task.name, err: error }, 'maintenance task failed; next run by its schedule');
    }
  }

  async function confirm(): Promise<void> {
    const ids = [...polled];
    if (ids.length === 0) return;
    polled.clear();
    // If the database is unavailable, the polls report it, and these cursors are confirmed later.
    await store.coverage.confirmCursors(ids).catch(() => {
      for (const id of ids) polled.add(id);
    });
  }

  /** Running tasks by name. The lease does not prevent a second run in the same worker, because the worker already owns it. */
  const maintenance = new Map<PassName, Promise<void>>();
  async function startMaintenance(task: MaintenanceTask, skipIfDoneWithinMs?: number): Promise<void> {
    if (maintenance.has(task.name)) return;
    const running = runByTheClock(task, skipIfDoneWithinMs).finally(() => maintenance.delete(task.name));
    maintenance.set(task.name, running);
    await running;
  }

  const schedules = startSchedules(
    [
      [request.schedule, () => queues.demand('poll')],
      ['7 * * * *', () => queues.demand('day', 'witness')],
      ['41 */6 * * *', () => queues.demand('fortnight')],
      [request.recheckSchedule, () => queues.demand('everything')],
      [request.auditSchedule, () => queues.demand('audit')],
      ...deps.maintenance.map((task): Schedule => [task.schedule, () => startMaintenance(task)]),
      ...deps.maintenance.map(
        (task): Schedule => [task.missed?.schedule ?? null, () => startMaintenance(task, task.missed?.afterMs)],
      ),
    ],
    log,
  );
  const confirming = setInterval(() => void confirm(), confirmEveryMs);
  queues.demand('poll');
  const names = deps.accounts.map(({ name }) => name);
  const downloadLoop = startDownloadLoop(
    {
      ...deps,
      onUnreachable: pollUnreachable,
      onTrouble: (trouble, waitMs) => troubles.note('downloads', names, trouble, waitMs),
      onOver: () => troubles.clear('downloads', names),
    },
    signal,
  );

  const webhookLoop = runWebhookLoop(deps, request);

  async function end(): Promise<void> {
    clearInterval(confirming);
    schedules.stop();
    await Promise.allSettled([downloadLoop.ended, webhookLoop, queues.untilIdle(), ...maintenance.values()]);
    await Promise.all([confirm(), troubles.untilWritten()]);
  }
  const ended = new Promise<void>((resolve) => {
    if (signal.aborted) void end().then(resolve);
    else signal.addEventListener('abort', () => void end().then(resolve), { once: true });
  });
  return {
    ended,
    facts() {
      const troubled = queues.all.flatMap(findTrouble);
      return {
        accounts: queues.all.length,
        troubled: troubled.length,
        trouble: troubled[0]?.trouble ?? null,
        filesTrouble: downloadLoop.trouble(),
        waits: troubled.flatMap(({ advertiser, trouble, since }): Wait[] =>
          trouble.at === 'database'
            ? [{ advertiser, task: 'reading', dependency: 'database', reason: trouble.message, since }]
            : [],
        ),
      };
    },
  };
}

/** The trouble of the account's most urgent task that fails. */
function findTrouble({ account, troubles }: AccountQueue) {
  const found = taskNames.flatMap((name) => troubles.get(name) ?? [])[0];
  return found ? [{ advertiser: account.name, ...found }] : [];
}

/** How long after a poll other workers skip theirs, since all schedules start at the same moment: half the poll interval, at most 20 s. */
function toNotWithinMs(schedule: string | null): number {
  const [first, second] = schedule === null ? [] : createTask(schedule, () => {}).getNextRuns(2);
  return first && second ? Math.min(20_000, (second.getTime() - first.getTime()) / 2) : 20_000;
}

function toCounts({ sweeps }: TaskResult): Partial<Pass> {
  const sum = (name: 'requests' | 'added' | 'changed') => sweeps.reduce((total, sweep) => total + sweep[name], 0);
  return { requests: sum('requests'), added: sum('added'), changed: sum('changed') };
}

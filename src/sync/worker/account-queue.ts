// One queue per account: which tasks are due, whether one runs, and which are paused after a failure. Polls come before all other tasks,
// and long tasks have few slots, so that no account waits for another (P11).
import type { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { Heartbeat } from './watchdog.ts';

export interface WorkerAccount {
  readonly name: string;
  readonly advertiserId: bigint | null;
  readonly source: Source;
  /** From now on every request of the account counts as progress of the task with this heartbeat; null: of none. */
  readonly watch: (heartbeat: Heartbeat | null) => void;
}

/** In the order in which they run. `day` stores what only appeared late before the checks, which would take that for hidden. */
export const taskNames = ['poll', 'unfinished', 'day', 'witness', 'audit', 'fortnight', 'everything'] as const;
export type TaskName = (typeof taskNames)[number];

export interface AccountQueue {
  readonly account: WorkerAccount;
  readonly due: Set<TaskName>;
  isBusy: boolean;
  /** Tasks that are paused after a failure, and when the pause ends by the monotonic clock. The others run. */
  readonly pausedUntil: Map<TaskName, number>;
  /** Tasks that failed, until they go on: how often in a row, since when, and why. */
  readonly failing: Map<TaskName, { readonly attempt: number; readonly since: Date; readonly trouble: Trouble }>;
}

export function isReady({ due, pausedUntil }: Pick<AccountQueue, 'due' | 'pausedUntil'>, name: TaskName): boolean {
  return due.has(name) && !pausedUntil.has(name);
}

export interface AccountQueuesRequest {
  readonly accounts: readonly WorkerAccount[];
  readonly atOnce: number;
  /** Most of them that may be other tasks than polls. */
  readonly longAtOnce: number;
  /** Runs one task. Its promise never rejects. */
  readonly work: (queue: AccountQueue, task: TaskName) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Slots that become free within this time are filled together: polls that start together share their statements. */
const togetherMs = 25;

export type AccountQueues = ReturnType<typeof createAccountQueues>;

/** Creates the queues. The first task starts with the first demand. */
export function createAccountQueues({ accounts, atOnce, longAtOnce, work, signal }: AccountQueuesRequest) {
  const all: readonly AccountQueue[] = accounts.map((account): AccountQueue => {
    return { account, due: new Set(), isBusy: false, pausedUntil: new Map(), failing: new Map() };
  });
  // A Set keeps insertion order, so each is a queue from which any account can be removed.
  const polls = new Set<AccountQueue>();
  const others = new Set<AccountQueue>();
  const running = new Set<Promise<void>>();
  /** Their slots are free, and not filled yet. */
  const ended = new Set<AccountQueue>();
  let refilled = Promise.resolve();
  let long = 0;

  /** Makes these tasks of an account due, and starts what may start now. */
  function demandOf(queue: AccountQueue, ...names: TaskName[]): void {
    for (const name of names) queue.due.add(name);
    const isWaiting = !queue.isBusy && taskNames.some((name) => isReady(queue, name));
    if (isWaiting) (isReady(queue, 'poll') ? polls : others).add(queue);
    while (!signal.aborted && running.size < atOnce) {
      const [next] = polls.size > 0 ? polls : long < longAtOnce ? others : [];
      if (next === undefined) return;
      polls.delete(next);
      others.delete(next);
      const task = taskNames.find((name) => isReady(next, name));
      if (task !== undefined && !next.isBusy) run(next, task);
    }
  }

  function refill(): void {
    const queues = [...ended];
    ended.clear();
    for (const queue of queues) demandOf(queue);
  }

  function run(queue: AccountQueue, task: TaskName): void {
    queue.isBusy = true;
    queue.due.delete(task);
    if (task !== 'poll') long++;
    const current = work(queue, task).finally(() => {
      queue.isBusy = false;
      if (task !== 'poll') long--;
      running.delete(current);
      if (ended.size === 0) refilled = new Promise((resolve) => setTimeout(resolve, togetherMs)).then(refill);
      ended.add(queue);
    });
    running.add(current);
  }

  return {
    all,
    demandOf,
    demand(...names: TaskName[]): void {
      for (const queue of all) demandOf(queue, ...names);
    },
    /** Makes a task due again after a while. Until then it is paused, and so are the tasks in `also`. Of two pauses the longer one holds. */
    pause(queue: AccountQueue, name: TaskName, ms: number, also: readonly TaskName[] = []): void {
      const { due, pausedUntil } = queue;
      due.add(name);
      const until = performance.now() + ms;
      for (const one of [name, ...also]) pausedUntil.set(one, Math.max(until, pausedUntil.get(one) ?? until));
      const wake = () => {
        for (const [one, end] of pausedUntil) if (end <= until) pausedUntil.delete(one);
        demandOf(queue);
      };
      setTimeout(wake, ms).unref();
    },
    async untilIdle(): Promise<void> {
      while (running.size + ended.size > 0) await Promise.allSettled([refilled, ...running]);
    },
  };
}

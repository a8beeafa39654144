// One queue per account: which tasks are due, whether one runs, and whether the account is paused after a failure. Polls come before all
// other tasks, and long tasks have few slots, so that no account waits for another (P11). Knows nothing about what a task does.
import type { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { Heartbeat } from './watchdog.ts';

/** An account to keep up to date. */
export interface WorkerAccount {
  readonly name: string;
  readonly advertiserId: bigint | null;
  readonly source: Source;
  /** From now on every request of the account counts as progress of the task with this heartbeat; null: of none. */
  readonly watch: (heartbeat: Heartbeat | null) => void;
}

/**
 * In the order in which an account runs its due tasks. `day` comes before the checks: it stores an application that only appeared late, which
 * a check would take for a hidden one.
 */
const taskNames = ['poll', 'unfinished', 'day', 'witness', 'audit', 'fortnight', 'everything'] as const;
export type TaskName = (typeof taskNames)[number];

export interface AccountQueue {
  readonly account: WorkerAccount;
  readonly due: Set<TaskName>;
  isBusy: boolean;
  /** Paused after a failure. A timer ends the pause, not the time of day: setting the clock back must not prolong it. */
  isPaused: boolean;
  failures: number;
  /** The last failure, until the next success. */
  trouble: Trouble | null;
}

export interface AccountQueuesRequest {
  readonly accounts: readonly WorkerAccount[];
  /** Most tasks that run at once. */
  readonly atOnce: number;
  /** Most of them that may be other tasks than polls. */
  readonly longAtOnce: number;
  /** Runs one task. Its promise never rejects. */
  readonly work: (queue: AccountQueue, task: TaskName) => Promise<void>;
  readonly signal: AbortSignal;
}

export type AccountQueues = ReturnType<typeof createAccountQueues>;

/** The longest pause of an account, even if the source sends a longer Retry-After. */
const longestRestMs = 86_400_000;

/** Creates the queues. The first task starts with the first demand. */
export function createAccountQueues({ accounts, atOnce, longAtOnce, work, signal }: AccountQueuesRequest) {
  const all: readonly AccountQueue[] = accounts.map((account): AccountQueue => {
    const quiet = { isBusy: false, isPaused: false, failures: 0, trouble: null };
    return { account, due: new Set(), ...quiet };
  });
  // A Set keeps insertion order, so each is a queue from which any account can be removed.
  const polls = new Set<AccountQueue>();
  const others = new Set<AccountQueue>();
  const running = new Set<Promise<void>>();
  let long = 0;

  function enqueue(queue: AccountQueue): void {
    if (queue.isBusy || queue.isPaused || queue.due.size === 0) return;
    (queue.due.has('poll') ? polls : others).add(queue);
  }

  function pump(): void {
    while (!signal.aborted && running.size < atOnce) {
      const [queue] = polls.size > 0 ? polls : long < longAtOnce ? others : [];
      if (queue === undefined) return;
      polls.delete(queue);
      others.delete(queue);
      const task = taskNames.find((name) => queue.due.has(name));
      if (task === undefined || queue.isBusy || queue.isPaused) continue;
      run(queue, task);
    }
  }

  function run(queue: AccountQueue, task: TaskName): void {
    queue.isBusy = true;
    queue.due.delete(task);
    if (task !== 'poll') long++;
    const current = work(queue, task).finally(() => {
      queue.isBusy = false;
      if (task !== 'poll') long--;
      running.delete(current);
      enqueue(queue);
      pump();
    });
    running.add(current);
  }

  return {
    all,
    /** Makes tasks due for every account. */
    demand(...names: TaskName[]): void {
      for (const queue of all) {
        for (const name of names) queue.due.add(name);
        enqueue(queue);
      }
      pump();
    },
    /** Makes a task due for one account. */
    demandOf(queue: AccountQueue, name: TaskName): void {
      queue.due.add(name);
      enqueue(queue);
      pump();
    },
    /** Pauses an account for a while and makes the task due again afterwards. */
    pause(queue: AccountQueue, name: TaskName, ms: number): void {
      queue.due.add(name);
      queue.isPaused = true;
      const wake = () => {
        queue.isPaused = false;
        enqueue(queue);
        pump();
      };
      setTimeout(wake, Math.min(ms, longestRestMs)).unref();
    },
    /** Resolves when no task is running. */
    async untilIdle(): Promise<void> {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

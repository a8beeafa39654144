// The watchdog of a process records how long each task has made no progress (P13). While the loop turns and no task is stuck, it beats in
// shared memory. A thread (watchdog-thread.ts) ends the process when that stops: a loop that is busy for ever cannot silence it (P27).
// A task that waits for its own timer does not count as stuck. A process without any task does, once it has had one.
import { Worker } from 'node:worker_threads';
import type { WatchdogData } from './watchdog-thread.ts';

/** What a task works on, for the last line of a process: names and ids only. */
export type Work = Readonly<Record<string, string>>;

/** One running task. Disposed when it ends. */
export interface Heartbeat extends Disposable {
  /** Reports progress: a step, a request, or the beginning of a wait; `part` says on what, if on less than the whole task. */
  move(part?: Work): void;
  whileWaiting<T>(waiting: Promise<T>): Promise<T>;
}

export interface WatchdogOptions {
  /** Must be monotonic: setting the system clock would look like a stuck task. */
  readonly now?: (() => number) | undefined;
  /** A task without progress for this long is stuck; without it, none ever is. */
  readonly stuckMs?: number;
  readonly onStuck?: ((silentMs: number) => void) | undefined;
}

export type Watchdog = ReturnType<typeof createWatchdog>;

export function createWatchdog({
  now = () => performance.now(),
  stuckMs = Number.POSITIVE_INFINITY,
  onStuck,
}: WatchdogOptions = {}) {
  const running = new Set<{ lastProgressAt: number; readonly work: Work }>();
  let endedAt = Number.POSITIVE_INFINITY;
  const cells = new Int32Array(new SharedArrayBuffer(12));
  // Enough for the ids of any work.
  const text = new Uint8Array(new SharedArrayBuffer(1_024));
  const encoder = new TextEncoder();
  let written: Work = {};
  const findQuietest = () => [...running].sort((one, other) => one.lastProgressAt - other.lastProgressAt)[0];
  const silentMs = () => Math.max(0, now() - (findQuietest()?.lastProgressAt ?? endedAt));

  /** Keeps in shared memory what moved last: that is what a loop that stands still is at. */
  function write(work: Work): void {
    if (work === written) return;
    written = work;
    Atomics.store(cells, 2, encoder.encodeInto(JSON.stringify(work), text).written);
  }

  function beat(): void {
    if (silentMs() < stuckMs) return void Atomics.add(cells, 0, 1);
    write(findQuietest()?.work ?? {});
    Atomics.store(cells, 1, Math.round(silentMs()));
    onStuck?.(silentMs());
  }

  return {
    begin(work: Work): Heartbeat {
      let waits = 0;
      const task = { lastProgressAt: now(), work };
      const heartbeat: Heartbeat = {
        move(part = work) {
          write(part);
          task.lastProgressAt = waits > 0 ? Number.POSITIVE_INFINITY : now();
        },
        async whileWaiting(waiting) {
          waits++;
          heartbeat.move();
          try {
            return await waiting;
          } finally {
            waits--;
            heartbeat.move();
          }
        },
        [Symbol.dispose]() {
          running.delete(task);
          endedAt = now();
        },
      };
      running.add(task);
      write(work);
      return heartbeat;
    },
    /** The longest time that a running task has made no progress. If none runs, the time since the last one ended; 0 before the first. */
    silentMs,
    /** Beats until it is disposed. With `ending`, a thread ends this process when the heartbeat stops. */
    start(ending: Ending | null): AsyncDisposable {
      const loopMs = ending?.loopMs ?? longestLoopMs;
      const beating = setInterval(beat, Math.min(stuckMs, loopMs) / 40);
      const data = ending && ({ cells, text, loopMs, exitCode: ending.exitCode } satisfies WatchdogData);
      const thread = data && new Worker(threadFile, { workerData: data });
      thread?.unref();
      return {
        async [Symbol.asyncDispose]() {
          clearInterval(beating);
          await thread?.terminate();
        },
      };
    },
  };
}

/** How the thread ends the process: with which code, and after how long an iteration of the loop. */
export type Ending = Pick<WatchdogData, 'exitCode'> & Partial<Pick<WatchdogData, 'loopMs'>>;

/** No iteration of a healthy loop takes this long: the largest answer, 16 MB, is parsed within seconds, also on a busy machine. */
const longestLoopMs = 60_000;

const threadFile = new URL('./watchdog-thread.ts', import.meta.url);

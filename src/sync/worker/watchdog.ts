// The watchdog of a process: which tasks run, and how long each has made no progress. It stops nothing; the caller decides when a task is
// stuck (P13). A task that waits for its own timer does not count as stuck, however long it waits. A process without any task does.

/** One running task. Disposed when it ends. */
export interface Heartbeat extends Disposable {
  /** Reports progress: a step, a request, or the beginning of a wait. */
  move(): void;
  /** Waits for something that ends by itself. The task does not count as stuck meanwhile. */
  whileWaiting<T>(waiting: Promise<T>): Promise<T>;
}

export type Watchdog = ReturnType<typeof createWatchdog>;

export function createWatchdog(now: () => number) {
  const lastProgressAt = new Map<Heartbeat, number>();
  let endedAt = Number.POSITIVE_INFINITY;
  return {
    /** A task begins. */
    begin(): Heartbeat {
      let waits = 0;
      const heartbeat: Heartbeat = {
        move: () =>
          void (
            lastProgressAt.has(heartbeat) && lastProgressAt.set(heartbeat, waits > 0 ? Number.POSITIVE_INFINITY : now())
          ),
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
          lastProgressAt.delete(heartbeat);
          endedAt = now();
        },
      };
      lastProgressAt.set(heartbeat, now());
      return heartbeat;
    },
    /** The longest time that a running task has made no progress. If none runs, the time since the last one ended; 0 before the first. */
    silentMs: () => Math.max(0, now() - (lastProgressAt.size > 0 ? Math.min(...lastProgressAt.values()) : endedAt)),
  };
}

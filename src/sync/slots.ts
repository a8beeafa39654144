// Limits how many pieces of work run at once in this process.

/** Lets a number of callers work at once. The others wait in the order in which they came. */
export type Slots = ReturnType<typeof createSlots>;

export function createSlots(most: number) {
  const waiting = new Set<() => void>();
  let free = most;
  /** Each slot that becomes free wakes another caller, also if several become free at once. */
  const wake = () => {
    const [next] = waiting;
    if (next === undefined) return;
    waiting.delete(next);
    next();
  };
  return {
    /** Throws the signal's reason if it aborts before there is a slot. */
    async take(signal: AbortSignal): Promise<Disposable> {
      while (free === 0 && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        const end = () => resolve();
        signal.addEventListener('abort', end);
        await promise;
        signal.removeEventListener('abort', end);
        waiting.delete(resolve);
      }
      if (signal.aborted) wake();
      signal.throwIfAborted();
      free -= 1;
      return {
        [Symbol.dispose]() {
          free += 1;
          wake();
        },
      };
    },
  };
}

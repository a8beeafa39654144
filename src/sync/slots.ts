// Limits how many pieces of work run at once in this process.

/** Lets a number of callers work at once. The others wait in the order in which they came. */
export type Slots = ReturnType<typeof createSlots>;

export function createSlots(most: number) {
  const waiting = new Set<() => void>();
  let free = most;
  const wake = () => waiting.values().next().value?.();
  return {
    /** Throws the signal's reason if it aborts before there is a slot. */
    async take(signal: AbortSignal): Promise<Disposable> {
      while (free === 0 && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
        await promise;
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

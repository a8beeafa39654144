// Calls that come together go together: what many advertisers ask of the database in the same moment becomes one statement, so that
// watching a thousand of them costs little more than watching ten. Nobody waits longer than for the statement before.

/** A function of one item that runs for many at once. `run` answers in the order of its items; when it throws, all of them fail. */
export function createBatch<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  limit = 200,
): (item: Item) => Promise<Result> {
  let waiting: { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }[] = [];
  let isRunning = false;

  async function flush(): Promise<void> {
    while (waiting.length > 0) {
      const calls = waiting.slice(0, limit);
      waiting = waiting.slice(limit);
      try {
        const results = await run(calls.map((call) => call.item));
        for (const [index, call] of calls.entries()) call.resolve(results[index] as Result);
      } catch (error) {
        for (const call of calls) call.reject(error);
      }
    }
    isRunning = false;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (isRunning) return;
      isRunning = true;
      // A turn later, so that those who were woken together are all there.
      setImmediate(() => void flush());
    });
}

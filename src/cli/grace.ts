// How long a stopped process may take to give back what it holds. A connection that went silent must not decide that.

/** Resolves with the work, or with `overdue` when the signal was aborted so long ago and the work still runs. What is left lapses by itself. */
export async function withinGrace<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<T | 'overdue'> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<'overdue'>((resolve) => {
    const begin = () => {
      timer = setTimeout(() => resolve('overdue'), graceMs);
    };
    if (signal.aborted) begin();
    else signal.addEventListener('abort', begin, { once: true });
  });
  try {
    return await Promise.race([work, overdue]);
  } finally {
    clearTimeout(timer);
  }
}

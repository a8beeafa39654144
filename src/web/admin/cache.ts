// Caches a loaded value briefly, so that any number of concurrent callers cost one load. Failures are not cached.

/** Runs at most one load at a time, and at most one per `ageMs`. */
export function createMemory<T>(load: () => Promise<T>, ageMs: number): () => Promise<T> {
  let kept: { readonly value: Promise<T>; readonly until: number } | undefined;
  return () => {
    if (kept && performance.now() < kept.until) return kept.value;
    const value = load();
    const entry = { value, until: Number.POSITIVE_INFINITY };
    kept = entry;
    value.then(
      () => {
        entry.until = performance.now() + ageMs;
      },
      () => {
        if (kept === entry) kept = undefined;
      },
    );
    return value;
  };
}

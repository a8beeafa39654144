// Keeps an answer for a moment, so that any number of askers cost one question. Failures are not kept.

/** Loads at most once at a time and at most once in `ageMs`. */
export function createMemory<T>(load: () => Promise<T>, ageMs: number): () => Promise<T> {
  let kept: { readonly value: Promise<T>; readonly until: number } | undefined;
  return () => {
    if (kept && performance.now() < kept.until) return kept.value;
    const value = load();
    const mine = { value, until: Number.POSITIVE_INFINITY };
    kept = mine;
    value.then(
      () => {
        mine.until = performance.now() + ageMs;
      },
      () => {
        if (kept === mine) kept = undefined;
      },
    );
    return value;
  };
}

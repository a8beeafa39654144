// A small seeded generator: the same seed gives the same numbers on every machine, so a failing case can be replayed.

export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number in [low, high]. */
  between(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(values: readonly T[]): T;
}

/** Creates a generator whose numbers depend on the seed alone. */
export function createRandom(seed: number): Random {
  let state = (seed * 2_654_435_761) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick: (values) => values[between(0, values.length - 1)] as never,
  };
}

// Deterministic random numbers: the same seed and path give the same draws on every machine, in any order of calls.
// Integer arithmetic only, since the last bits of Math.log or Math.pow differ between platforms.

/** A random generator. Each invented thing gets its own, so that things do not depend on each other. */
export interface Draw {
  /** An integer from 0 up to, but not including, the limit. */
  below(limit: number): number;
  /** True in `share` of a thousand cases. */
  perMille(share: number): boolean;
  pick<T>(list: readonly T[]): T;
}

/** Creates the generator of this path of numbers. */
export function createDraw(...path: number[]): Draw {
  let state = mix(...path);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return (word ^ (word >>> 14)) >>> 0;
  };
  const below = (limit: number) => next() % limit;
  return {
    below,
    perMille: (share) => below(1000) < share,
    pick: <T>(list: readonly T[]) => list[below(list.length)] as T,
  };
}

/** Hashes numbers to one 32-bit number; every part affects it. */
export function mix(...parts: number[]): number {
  let hash = 0x9e3779b9;
  for (const part of parts) {
    hash = Math.imul(hash ^ (part | 0), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13) ^ Math.floor(part / 0x1_0000_0000), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return hash >>> 0;
}

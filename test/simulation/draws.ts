// A seeded random number generator: the same text gives the same numbers on every machine.

export class Draws {
  #a: number;
  #b: number;
  #c: number;
  #d = 1;

  constructor(text: string) {
    let hash = 1_779_033_703 ^ text.length;
    const word = () => {
      hash = Math.imul(hash ^ (hash >>> 16), 2_246_822_507);
      hash = Math.imul(hash ^ (hash >>> 13), 3_266_489_909);
      hash ^= hash >>> 16;
      return hash >>> 0;
    };
    for (const letter of text) {
      hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 3_432_918_353);
      hash = (hash << 13) | (hash >>> 19);
    }
    this.#a = word();
    this.#b = word();
    this.#c = word();
    for (let warm = 0; warm < 12; warm++) this.next();
  }

  /** A number from 0 (inclusive) to 1 (exclusive), by the generator sfc32. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  }

  /** An integer from `least` to `most`, both inclusive. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** An integer with a log-uniform distribution: every order of magnitude is equally likely. */
  logInt(least: number, most: number): number {
    const drawn = Math.exp(this.between(Math.log(least), Math.log(most + 1)));
    return Math.min(most, Math.max(least, Math.floor(drawn)));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[this.int(0, from.length - 1)] ?? from[0];
  }

  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /** An exponentially distributed waiting time with this mean, as between independent events. */
  wait(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }

  shuffle<T>(list: readonly T[]): T[] {
    const mixed = [...list];
    for (let last = mixed.length - 1; last > 0; last--) {
      const other = this.int(0, last);
      const moved = mixed[last] as T;
      mixed[last] = mixed[other] as T;
      mixed[other] = moved;
    }
    return mixed;
  }
}

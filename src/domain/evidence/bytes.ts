// Variable-length integers of any size: seven bits per byte, lowest first; the eighth bit says that more bytes follow.

/** Collects bytes. */
export type Writer = ReturnType<typeof createWriter>;

export function createWriter() {
  const out: number[] = [];
  /** An integer from 0 upwards. */
  function number(value: number | bigint): void {
    let rest = value;
    if (typeof rest === 'bigint' && rest <= Number.MAX_SAFE_INTEGER) rest = Number(rest);
    if (typeof rest === 'bigint') {
      for (; rest >= 128n; rest >>= 7n) out.push(Number(rest & 127n) | 128);
    } else {
      for (; rest >= 128; rest = Math.floor(rest / 128)) out.push((rest % 128) | 128);
    }
    out.push(Number(rest));
  }
  function bytes(value: Uint8Array): void {
    for (const byte of value) out.push(byte);
  }
  return {
    number,
    /** An integer of either sign. */
    signed: (value: bigint) => number(toUnsigned(value)),
    /** An integer of either sign, or null. */
    optional: (value: bigint | null) => number(value === null ? 0 : value < 0n ? -value * 2n : value * 2n + 1n),
    bytes,
    text(value: string): void {
      const encoded = new TextEncoder().encode(value);
      number(encoded.length);
      bytes(encoded);
    },
    toBytes: () => Uint8Array.from(out),
  };
}

/** Reads the values that a writer wrote, in the same order. */
export type Reader = ReturnType<typeof createReader>;

export function createReader(from: Uint8Array) {
  let at = 0;
  function big(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = from[at++];
      if (byte === undefined) throw new Error('The bytes of a record end too early.');
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  function bytes(length: number): Uint8Array {
    if (at + length > from.length) throw new Error('The bytes of a record end too early.');
    at += length;
    return from.slice(at - length, at);
  }
  const number = () => Number(big());
  return {
    number,
    big,
    signed: () => toSigned(big()),
    optional(): bigint | null {
      const value = big();
      if (value === 0n) return null;
      return value & 1n ? value >> 1n : -(value >> 1n);
    },
    bytes,
    text: () => new TextDecoder().decode(bytes(number())),
    isAtEnd: () => at === from.length,
  };
}

/** An integer of either sign as one from 0 upwards: 0, -1, 1, -2 become 0, 1, 2, 3. */
export function toUnsigned(value: bigint): bigint {
  return value < 0n ? -value * 2n - 1n : value * 2n;
}

/** Reverses `toUnsigned`. */
export function toSigned(value: bigint): bigint {
  return value & 1n ? -((value + 1n) >> 1n) : value >> 1n;
}

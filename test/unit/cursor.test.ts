import { expect, test } from 'vitest';
import { toCursor } from '../../src/domain/cursor.ts';

const largest = 9_223_372_036_854_775_807n;

/** So many ids from the first one on, ten apart. */
const dense = (first: bigint, count: number) => Array.from({ length: count }, (_, nth) => first + BigInt(nth * 10));

test('the cursor is the largest id that was committed, and never goes back', () => {
  expect(toCursor(40_000_000n, [40_000_005n, 40_000_009n])).toBe(40_000_009n);
  expect(toCursor(40_000_000n, [39_999_000n])).toBe(40_000_000n);
  expect(toCursor(40_000_000n, [])).toBe(40_000_000n);
});

test('L15: ids at the ends of 32 and of 63 bits do not move the cursor, one or two or several of them', () => {
  expect(toCursor(40_000_000n, [40_000_001n, largest])).toBe(40_000_001n);
  expect(toCursor(40_000_001n, [largest])).toBe(40_000_001n);
  expect(toCursor(40_000_000n, [40_000_001n, largest - 1n, largest])).toBe(40_000_001n);
  expect(toCursor(40_000_000n, [40_000_001n, 2_147_483_647n, 9_999_999_999n])).toBe(40_000_001n);
  expect(toCursor(40_000_001n, [2_147_483_646n, 2_147_483_647n, 9_999_999_999n, largest - 1n, largest])).toBe(
    40_000_001n,
  );
});

test('a leap is followed when eight ids without a leap between them confirm it', () => {
  expect(toCursor(40_000_000n, dense(900_000_000n, 7))).toBe(40_000_000n);
  expect(toCursor(40_000_000n, dense(900_000_000n, 8))).toBe(900_000_070n);
  expect(toCursor(40_000_000n, [...dense(900_000_000n, 8), largest])).toBe(900_000_070n);
});

test('ids before a leap, which are read already, do not confirm it', () => {
  expect(toCursor(40_000_150n, [...dense(40_000_000n, 14), 900_000_000n, 900_000_010n])).toBe(40_000_150n);
});

test('the first ids of an account begin anywhere; one alone waits for a second', () => {
  expect(toCursor(null, [40_000_000n])).toBeNull();
  expect(toCursor(0n, [40_000_000n])).toBe(0n);
  expect(toCursor(null, [40_000_000n, 40_000_020n])).toBe(40_000_020n);
  expect(toCursor(0n, [40_000_000n, 40_000_020n])).toBe(40_000_020n);
  expect(toCursor(null, [3n])).toBe(3n);
});

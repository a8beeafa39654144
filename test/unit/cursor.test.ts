import { expect, test } from 'vitest';
import { toCursor } from '../../src/domain/coverage/certificate.ts';

const largest = 9_223_372_036_854_775_807n;

test('the cursor is the largest id that was committed, and never goes back', () => {
  expect(toCursor(40_000_000n, [40_000_009n, 40_000_005n])).toBe(40_000_009n);
  expect(toCursor(40_000_000n, [39_999_000n])).toBe(40_000_000n);
  expect(toCursor(40_000_000n, [])).toBe(40_000_000n);
});

test('L15: an id of 2^63-1 does not move the cursor', () => {
  expect(toCursor(40_000_000n, [40_000_001n, largest])).toBe(40_000_001n);
  expect(toCursor(40_000_001n, [largest])).toBe(40_000_001n);
});

test('a leap is followed when a second id beyond it confirms it', () => {
  expect(toCursor(40_000_000n, [900_000_000n, 900_000_007n])).toBe(900_000_007n);
  expect(toCursor(40_000_000n, [900_000_000n, 900_000_007n, largest])).toBe(900_000_007n);
});

test('the first ids of an account begin anywhere; one alone waits for a second', () => {
  expect(toCursor(null, [40_000_000n])).toBeNull();
  expect(toCursor(null, [40_000_000n, 40_000_020n])).toBe(40_000_020n);
  expect(toCursor(null, [3n])).toBe(3n);
});

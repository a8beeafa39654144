// The one formula of waits between attempts.
import { describe, expect, test } from 'vitest';
import { backoff } from '../../src/domain/trouble.ts';

describe('a backoff', () => {
  const range = { baseMs: 500, maxMs: 15_000 };

  test('doubles its ceiling up to the longest wait', () => {
    expect([1, 2, 3, 6, 2_000].map((attempt) => backoff(attempt, range, 1))).toEqual([
      500, 1_000, 2_000, 15_000, 15_000,
    ]);
    expect([1, 2, 3].map((attempt) => backoff(attempt, { ...range, factor: 4 }, 1))).toEqual([500, 2_000, 8_000]);
  });

  test('lies anywhere between the shortest wait and the ceiling', () => {
    expect([0, 0.5, 1].map((random) => backoff(2, range, random))).toEqual([0, 500, 1_000]);
    expect([0, 0.5, 1].map((random) => backoff(2, { ...range, minMs: 600 }, random))).toEqual([600, 600, 1_000]);
  });
});

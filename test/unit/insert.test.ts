import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toTime } from '../../src/store/applications/insert.ts';

test('a time is written as a Date writes it, whichever day was written before it', () => {
  const moments = fc.integer({ min: Date.parse('0002-01-02T00:00:00Z'), max: Date.UTC(9999, 11, 30) });
  // Of two within a day of each other the second finds the first one's day, its neighbour or itself.
  const near = fc.integer({ min: -86_400_000, max: 86_400_000 });
  fc.assert(
    fc.property(moments, near, (at, away) => {
      for (const ms of [at, at + away, at]) expect(toTime(ms)).toBe(new Date(ms).toISOString());
    }),
    { numRuns: 2_000 },
  );
});

test('no time stays no time', () => {
  expect(toTime(null)).toBeNull();
});

// The fault harness judged from outside: what a plan is never without, and what makes a run red.
import { describe, expect, test } from 'vitest';
import { type CrashPoint, crashPoints } from '../../src/domain/crash-point.ts';
import type { Verdict } from '../chaos/play.ts';
import { toPlan } from '../chaos/seed.ts';
import { isFine, renderSummary } from '../chaos/summary.ts';

const points = Object.values<readonly CrashPoint[]>(crashPoints).flat();

function verdict(some: Partial<Verdict> = {}): Verdict {
  const zero = { applications: 10, files: 20, erased: 1, looks: 5, recoveredMs: 1_000, unplayable: [] };
  const fired = Object.fromEntries(points.map((point) => [point, 1]));
  return { seed: 1, seconds: 30, pooled: false, broken: null, counts: { kills: 3 }, fired, ...zero, ...some };
}

test('a plan is that of its seed, kills, cuts files, erases somebody and draws only what can be played', () => {
  expect(toPlan(17, 30)).toEqual(toPlan(17, 30));
  for (let seed = 1; seed <= 100; seed++) {
    const { schedule, pooled, onSmallSpool, onSmallDisk } = toPlan(seed, 30);
    const names = new Set(schedule.map(({ name }) => name));
    expect([...names]).toEqual(expect.arrayContaining(['crashPoint', 'cutFile', 'collect', 'erase']));
    if (names.has('poolerKilled')) expect(pooled).toBe(true);
    if (names.has('spoolFull')) expect(onSmallSpool).toBe(true);
    if (names.has('diskFull')) expect(onSmallDisk).toBe(true);
  }
});

describe('a run of the fault harness', () => {
  test('is red when a promise was broken, by its kind', () => {
    const run = [verdict(), verdict({ seed: 2, broken: 'P5: application 7 was overwritten by an older answer' })];
    expect(isFine(run)).toBe(false);
    expect(renderSummary(run)).toMatch(/stale +\| 1 \|/);
    expect(renderSummary(run)).toMatch(/lost +\| 0 \|/);
  });

  test('of twenty seeds is red when a named moment never came, of fewer it says so', () => {
    const fired = Object.fromEntries(points.filter((point) => point !== 'orphansDeleted').map((point) => [point, 1]));
    const few = Array.from({ length: 19 }, (_, seed) => verdict({ seed, fired }));
    expect(isFine(few)).toBe(true);
    expect(renderSummary(few)).toContain('Never reached: orphansDeleted.');
    expect(isFine([...few, verdict({ fired })])).toBe(false);
    expect(isFine([...few, verdict()])).toBe(true);
  });
});

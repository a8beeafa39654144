// Runs by the clock, on a clock held by hand: what is late is made up for once, and the log says so.
import { afterEach, beforeEach, describe, expect, type Mock, test, vi } from 'vitest';
import { type Schedule, startSchedules } from '../../src/sync/worker/cron.ts';

const night = new Date(2026, 2, 3, 3, 16, 50).getTime();
const hourMs = 3_600_000;

const lines: { facts: Record<string, unknown>; message: string }[] = [];
const tell = (facts: object, message: string) => void lines.push({ facts: { ...facts }, message });
const log = { debug: tell, info: tell, warn: tell };

let spoken: readonly Mock[];
beforeEach(() => {
  lines.length = 0;
  vi.useFakeTimers({ now: night });
  spoken = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) => vi.spyOn(console, name));
});
afterEach(() => {
  for (const one of spoken) expect(one).not.toHaveBeenCalled();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Counts the runs of one schedule while something happens to the clock. */
async function countRuns(when: string, happens: () => Promise<unknown>) {
  let runs = 0;
  const schedule: Schedule = [when, () => void runs++];
  const stop = startSchedules([schedule, [null, () => expect.unreachable()]], log);
  await happens();
  stop();
  return runs;
}

describe('a scheduled run', () => {
  test('comes at its moment, and nothing is said of it', async () => {
    expect(await countRuns('*/5 * * * *', () => vi.advanceTimersByTimeAsync(hourMs))).toBe(12);
    expect(lines).toEqual([]);
  });

  test('whose moment passed while the process was busy is taken: the next night would be too late', async () => {
    const busy = async () => {
      vi.setSystemTime(night + 15_000);
      await vi.advanceTimersByTimeAsync(hourMs);
    };
    expect(await countRuns('17 3 * * *', busy)).toBe(1);
  });

  test('of a night that was slept through is taken once, and said once, however many were missed', async () => {
    const asleep = async () => {
      vi.setSystemTime(night + 8 * hourMs - 44 * 60_000);
      await vi.advanceTimersByTimeAsync(20 * 60_000);
    };
    expect(await countRuns('0 * * * *', asleep)).toBe(1);
    // Noticed a minute after the end of the sleep, at 10:33:50; the first one that was missed was due at 4:00.
    expect(lines).toMatchObject([{ facts: { schedule: '0 * * * *', byMs: 6 * hourMs + 33 * 60_000 + 50_000 } }]);
  });

  test('of a schedule of seconds is taken once when the clock jumps ahead, and the process does not stand still', async () => {
    // Each run that is looked for asks for it a few times, and 7,200 were missed.
    const asked = vi.spyOn(Date.prototype, 'getMilliseconds');
    const jump = async () => {
      await vi.advanceTimersByTimeAsync(500);
      vi.setSystemTime(night + 2 * hourMs);
      await vi.advanceTimersByTimeAsync(500);
    };
    expect(await countRuns('* * * * * *', jump)).toBe(1);
    expect(asked.mock.calls.length).toBeLessThan(100);
    expect(lines).toHaveLength(1);
  });

  test('comes again within two minutes when the clock was set back by two days', async () => {
    const setBack = async () => {
      vi.setSystemTime(night - 48 * hourMs);
      await vi.advanceTimersByTimeAsync(hourMs);
    };
    expect(await countRuns('* * * * *', setBack)).toBeGreaterThan(57);
    expect(lines).toMatchObject([{ facts: { byMs: 48 * hourMs } }]);
  });
});

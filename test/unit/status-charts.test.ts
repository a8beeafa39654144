import { expect, test } from 'vitest';
import { type History, toStepStarts } from '../../src/domain/history.ts';
import { renderCharts } from '../../src/web/admin/status-charts.ts';

/** The times below the first chart of a day that is not over yet, and where their middles stand. */
async function toTimes(now: string): Promise<[string, number][]> {
  const steps = toStepStarts('24h', new Date(now)).map((startAt) => ({
    ...{ startAt, applications: 1, delayMs: null },
  }));
  const history: History = { period: '24h', steps, recentSweeps: [] };
  const chart = String(await renderCharts(history)[0]);
  return Array.from(chart.matchAll(/<text class="tick" x="([\d.]+)" y="\d+">([\d:]+)</g), ([, x, time = '']) => [
    time,
    Number(x),
  ]);
}

test('every sixth hour has its time below the chart, unless the edge would cut it off', async () => {
  expect((await toTimes('2026-11-15T11:30:00Z')).map(([time]) => time)).toEqual(['12:00', '18:00', '00:00', '06:00']);
  const times = await toTimes('2026-11-15T12:02:00Z');
  expect(times.map(([time]) => time)).toEqual(['18:00', '00:00', '06:00']);
  expect(Math.max(...times.map(([, x]) => x))).toBeLessThan(494);
});

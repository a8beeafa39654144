import { expect, test } from 'vitest';
import { arrivalSample, toUnusualSilence } from '../../src/domain/silence.ts';
import { createRandom } from '../support/random.ts';

const hour = 3600_000;
const day = 24 * hour;

/** Working days only, a few a day: the habit of a small office. */
const officeHabit = (days: number) =>
  Array.from({ length: days }, (_, index) => index)
    .filter((index) => index % 7 < 5)
    .flatMap((index) => [9, 11, 16].map((at) => index * day + at * hour));

test('a weekend is no silence to an office that never works on weekends', () => {
  const arrivals = officeHabit(33);
  const friday = arrivals.at(-1) as number;
  expect(toUnusualSilence(arrivals, friday + 3 * day)).toBeNull();
});

test('twice the longest silence there ever was is out of habit, and says what the habit was', () => {
  const arrivals = officeHabit(33);
  const last = arrivals.at(-1) as number;
  const longestUsualMs = 2 * day + 17 * hour;
  expect(toUnusualSilence(arrivals, last + 2 * longestUsualMs)).toBeNull();
  expect(toUnusualSilence(arrivals, last + 2 * longestUsualMs + 1)).toEqual({
    silentForMs: 2 * longestUsualMs + 1,
    longestUsualMs,
  });
});

test('a busy account is not accused within five days', () => {
  const arrivals = Array.from({ length: 5000 }, (_, index) => index * 5 * 60_000);
  const last = arrivals.at(-1) as number;
  expect(toUnusualSilence(arrivals, last + 5 * day - 1)).toBeNull();
  expect(toUnusualSilence(arrivals, last + 5 * day)).not.toBeNull();
});

test('few arrivals or a short history are no habit', () => {
  const few = Array.from({ length: 19 }, (_, index) => index * day);
  const short = Array.from({ length: 500 }, (_, index) => index * 30 * 60_000);
  expect(toUnusualSilence(few, 400 * day)).toBeNull();
  expect(toUnusualSilence(short, 400 * day)).toBeNull();
  expect(toUnusualSilence([], day)).toBeNull();
});

test('a date in the future ends no silence', () => {
  const arrivals = officeHabit(33);
  const now = (arrivals.at(-1) as number) + 20 * day;
  expect(toUnusualSilence([...arrivals, now + day], now)).not.toBeNull();
});

test('two weeks around Christmas are no silence, and what lies beyond them is', () => {
  const year = Date.UTC(2026, 0, 1);
  const arrivals = officeHabit(352).map((at) => year + at);
  const last = arrivals.at(-1) as number;
  expect(new Date(last).toISOString()).toMatch('2026-12-18');
  expect(toUnusualSilence(arrivals, Date.UTC(2027, 0, 9))).toBeNull();
  expect(toUnusualSilence(arrivals, Date.UTC(2027, 0, 13))).toMatchObject({
    silentForMs: Date.UTC(2027, 0, 13) - last,
  });
});

/** Days of 2026 on which offices of Victoria are closed, Easter among them. */
const holidays = new Set(
  '01-01 01-26 03-09 04-03 04-04 04-05 04-06 04-25 06-08 09-25 11-03 12-25 12-26 12-28'.split(' '),
);

/** Arrivals from October 2025 to January 2027 by the hour of the day and the day of the week, at Melbourne's standard time. */
function simulateArrivals(seed: number, account: Account): number[] {
  const random = createRandom(seed);
  const startAt = Date.UTC(2025, 9, 1);
  const hours = (Date.UTC(2027, 0, 31) - startAt) / hour;
  const rates = Array.from({ length: hours }, (_, nth) => {
    const local = new Date(startAt + (nth + 10) * hour);
    const byHour = local.getUTCHours() >= 7 && local.getUTCHours() < 22 ? 1 : 0.1;
    return byHour * ([0, 6].includes(local.getUTCDay()) ? account.weekend : 1);
  });
  const scale = account.perWeek / ((168 * rates.reduce((sum, rate) => sum + rate, 0)) / hours);
  return rates.flatMap((rate, nth) => {
    const at = startAt + nth * hour;
    const date = new Date(at + 10 * hour).toISOString().slice(5, 10);
    const isQuiet = date >= '12-21' || date <= '01-04' || holidays.has(date);
    const arrivals: number[] = [];
    const mean = rate * scale * (isQuiet ? account.quiet : 1);
    for (let left = Math.exp(-mean), drawn = random.next(); drawn > left; drawn *= random.next()) arrivals.push(at);
    return arrivals.map((from) => from + random.next() * hour).sort((a, b) => a - b);
  });
}

interface Account {
  readonly perWeek: number;
  /** What is left of a working day's applications at weekends, and of any day's on holidays. */
  readonly weekend: number;
  readonly quiet: number;
}

/** The newest arrivals before one, as the store would give them. */
function sampleBefore(times: readonly number[], index: number): number[] {
  const sample: number[] = [];
  for (let i = index - 1; i >= 0 && sample.length < arrivalSample.count; i--) {
    const at = times[i] as number;
    if (at <= (sample.at(-1) ?? Number.POSITIVE_INFINITY) - arrivalSample.apartMs) sample.push(at);
  }
  return sample;
}

const boards = [
  { kind: 'that goes on at weekends and holidays', weekend: 0.4, quiet: 0.1 },
  { kind: 'that rests at weekends and holidays', weekend: 0, quiet: 0 },
];

const accounts = boards.flatMap((board) => [
  { ...board, perWeek: 2, years: 60, mostAlarms: 6, days: 75 },
  { ...board, perWeek: 10, years: 30, mostAlarms: 0, days: 20 },
  { ...board, perWeek: 50, years: 30, mostAlarms: 0, days: 12 },
  { ...board, perWeek: 300, years: 6, mostAlarms: 0, days: 12 },
]);

for (const { kind, years, mostAlarms, days, ...account } of accounts) {
  const name = `in ${years} simulated years an account of ${account.perWeek} a week ${kind} gives at most ${mostAlarms} false alarms, and a stop is told within ${days} days`;
  test(name, { tags: years > 6 ? ['slow'] : [] }, () => {
    let alarms = 0;
    for (let seed = 1; seed <= years; seed++) {
      const times = simulateArrivals(seed, account);
      times.forEach((at, index) => {
        const isThisYear = new Date(at).getUTCFullYear() === 2026;
        // A silence is longest just before it ends, and shorter ones are never told.
        if (!isThisYear || at - (times[index - 1] ?? at) < day) return;
        if (toUnusualSilence(sampleBefore(times, index), at - 1) !== null) alarms++;
      });
      const stop = times.findIndex((at) => at >= Date.UTC(2026, 7, 1) + seed * day);
      expect(toUnusualSilence(sampleBefore(times, stop), (times[stop] as number) + days * day)).not.toBeNull();
    }
    expect(alarms).toBeLessThanOrEqual(mostAlarms);
  });
}

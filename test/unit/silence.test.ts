import { expect, test } from 'vitest';
import { toUnusualSilence } from '../../src/domain/status/advertiser-status.ts';

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

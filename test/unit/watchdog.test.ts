// When a process is silent: the work in it does not move, or there is none any more.
import { expect, test } from 'vitest';
import { createWatchdog } from '../../src/sync/worker/watchdog.ts';

function createWorld() {
  let nowMs = 0;
  return {
    pulse: createWatchdog(() => nowMs),
    pass(ms: number) {
      nowMs += ms;
    },
  };
}

test('a process that has not begun to work is not silent', () => {
  const { pulse, pass } = createWorld();
  pass(10_000);
  expect(pulse.silentMs()).toBe(0);
});

test('the quietest work counts, however much the others move', () => {
  const { pulse, pass } = createWorld();
  using quiet = pulse.begin();
  using busy = pulse.begin();
  pass(10_000);
  busy.move();
  expect(pulse.silentMs()).toBe(10_000);
  quiet.move();
  expect(pulse.silentMs()).toBe(0);
});

test('work that waits for something which ends by itself is not silent, and is again when that has ended', async () => {
  const { pulse, pass } = createWorld();
  using beat = pulse.begin();
  const waiting = Promise.withResolvers<void>();
  const rested = beat.rest(waiting.promise);
  pass(10_000);
  expect(pulse.silentMs()).toBe(0);
  waiting.resolve();
  await rested;
  pass(10_000);
  expect(pulse.silentMs()).toBe(10_000);
});

test('a process whose last work has ended is silent from then on', () => {
  const { pulse, pass } = createWorld();
  const [one, two] = [pulse.begin(), pulse.begin()];
  one[Symbol.dispose]();
  pass(10_000);
  two.move();
  expect(pulse.silentMs()).toBe(0);
  two[Symbol.dispose]();
  pass(10_000);
  expect(pulse.silentMs()).toBe(10_000);
  using _three = pulse.begin();
  expect(pulse.silentMs()).toBe(0);
});

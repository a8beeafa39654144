// When a process is silent: the work in it does not move, or there is none any more.
import { expect, test } from 'vitest';
import { createWatchdog } from '../../src/sync/worker/watchdog.ts';

function createWorld() {
  let nowMs = 0;
  return {
    watchdog: createWatchdog({ now: () => nowMs, stuckMs: 60_000 }),
    pass(ms: number) {
      nowMs += ms;
    },
  };
}

test('a process that has not begun to work is not silent', () => {
  const { watchdog, pass } = createWorld();
  pass(10_000);
  expect(watchdog.silentMs()).toBe(0);
});

test('the quietest work counts, however much the others move', () => {
  const { watchdog, pass } = createWorld();
  using quiet = watchdog.begin({});
  using busy = watchdog.begin({});
  pass(10_000);
  busy.move();
  expect(watchdog.silentMs()).toBe(10_000);
  quiet.move();
  expect(watchdog.silentMs()).toBe(0);
});

test('work that waits for something which ends by itself is not silent, and is again when that has ended', async () => {
  const { watchdog, pass } = createWorld();
  using beat = watchdog.begin({});
  const waiting = Promise.withResolvers<void>();
  const rested = beat.whileWaiting(waiting.promise);
  pass(10_000);
  expect(watchdog.silentMs()).toBe(0);
  waiting.resolve();
  await rested;
  pass(10_000);
  expect(watchdog.silentMs()).toBe(10_000);
});

test('a process whose last work has ended is silent from then on', () => {
  const { watchdog, pass } = createWorld();
  const [one, two] = [watchdog.begin({}), watchdog.begin({})];
  one[Symbol.dispose]();
  pass(10_000);
  two.move();
  expect(watchdog.silentMs()).toBe(0);
  two[Symbol.dispose]();
  pass(10_000);
  expect(watchdog.silentMs()).toBe(10_000);
  using _three = watchdog.begin({});
  expect(watchdog.silentMs()).toBe(0);
});

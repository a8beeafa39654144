// Queues by a hand-held clock: which is worked on, which is paused, and for how long.
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Source } from '../../src/source/client.ts';
import { createSlots } from '../../src/sync/limits.ts';
import {
  type AccountQueue,
  type AccountQueues,
  createAccountQueues,
  type TaskName,
  taskNames,
} from '../../src/sync/worker/account-queue.ts';

const noon = Date.UTC(2026, 4, 4, 12);

beforeEach(() => {
  vi.useFakeTimers({ now: noon });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Queues of one account; the list holds the tasks that were run. */
function openQueues(onTask: (queues: AccountQueues, ...of: [AccountQueue, TaskName]) => void = () => {}) {
  const done: TaskName[] = [];
  const queues: AccountQueues = createAccountQueues({
    accounts: [{ name: 'acme', advertiserId: null, source: {} as Source, watch: () => {} }],
    ...{ atOnce: 1, longAtOnce: 1, signal: new AbortController().signal },
    async work(queue, task) {
      done.push(task);
      onTask(queues, queue, task);
    },
  });
  return { queues, done };
}

test('a queue at rest is worked on again when its time is over, also when the clock was set back by a day meanwhile', async () => {
  const { queues, done } = openQueues((all, queue, task) => done.length === 1 && all.pause(queue, task, 1_000));
  queues.demand('poll');
  vi.setSystemTime(noon - 86_400_000);
  queues.demand('poll');
  await vi.advanceTimersByTimeAsync(900);
  expect(done).toEqual(['poll']);
  await vi.advanceTimersByTimeAsync(200);
  expect(done).toEqual(['poll', 'poll']);
});

test('a task that is paused after a failure waits, and the other due tasks of its account run meanwhile', async () => {
  const { queues, done } = openQueues((all, queue, task) => task === 'poll' && all.pause(queue, task, 1_000));
  queues.demand('poll', 'unfinished', 'audit', 'everything');
  await vi.advanceTimersByTimeAsync(900);
  expect(done).toEqual(['poll', 'unfinished', 'audit', 'everything']);
  // A task that becomes due while it is paused waits, too.
  queues.demand('poll', 'day');
  await vi.advanceTimersByTimeAsync(50);
  expect(done.slice(4)).toEqual(['day']);
  await vi.advanceTimersByTimeAsync(100);
  expect(done.slice(5)).toEqual(['poll']);
});

test('a halted account is probed by the task that was refused, and by no other', async () => {
  const { queues, done } = openQueues((all, ...of) => done.length === 1 && all.pause(...of, 1_000, taskNames));
  queues.demand('poll', 'audit', 'everything');
  await vi.advanceTimersByTimeAsync(900);
  expect(done).toEqual(['poll']);
  await vi.advanceTimersByTimeAsync(200);
  expect(done).toEqual(['poll', 'poll', 'audit', 'everything']);
});

test('a halted account is not read when the earlier pause of one of its tasks ends', async () => {
  const { queues, done } = openQueues((all, queue, task) => {
    if (task === 'day') all.pause(queue, task, 1_000);
    if (task === 'poll' && done.length === 2) all.pause(queue, task, 5_000, taskNames);
  });
  queues.demand('day');
  await vi.advanceTimersByTimeAsync(500);
  queues.demand('poll');
  await vi.advanceTimersByTimeAsync(4_900);
  expect(done).toEqual(['day', 'poll']);
  await vi.advanceTimersByTimeAsync(200);
  expect(done).toEqual(['day', 'poll', 'poll', 'day']);
});

test('the end of a halt does not shorten the longer pause of one task', async () => {
  const { queues, done } = openQueues((all, queue, task) => {
    if (task === 'poll') all.pause(queue, task, 60_000);
    if (task === 'day' && done.length === 2) all.pause(queue, task, 5_000, taskNames);
  });
  queues.demand('poll', 'day');
  await vi.advanceTimersByTimeAsync(50_000);
  expect(done).toEqual(['poll', 'day', 'day']);
  await vi.advanceTimersByTimeAsync(11_000);
  expect(done).toEqual(['poll', 'day', 'day', 'poll']);
});

test('the last day is read before the checks: a late application is stored by then, and not taken for a hidden one', async () => {
  const { queues, done } = openQueues();
  queues.demand('everything', 'audit', 'witness', 'day', 'poll');
  await vi.advanceTimersByTimeAsync(100);
  expect(done).toEqual(['poll', 'day', 'witness', 'audit', 'everything']);
});

test('every task of every account runs, one at a time for an account, few long ones at once', async () => {
  vi.setTimerTickMode('nextTimerAsync');
  const names: readonly TaskName[] = ['poll', 'unfinished', 'witness', 'everything'];
  const demanded = fc.array(fc.tuple(fc.nat(2), fc.constantFrom(...names)), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), demanded, async (s, demands) => {
      const accounts = ['a', 'b', 'c'].map((name) => ({ name, advertiserId: null, source: {} as Source, watch() {} }));
      const running: string[] = [];
      const done = new Set<string>();
      const queues = createAccountQueues({
        ...{ accounts, atOnce: 2, longAtOnce: 1, signal: new AbortController().signal },
        async work({ account }, task) {
          const one = `${account.name} ${task}`;
          expect(running.some((other) => other.startsWith(account.name))).toBe(false);
          running.push(one);
          expect(running.length).toBeLessThanOrEqual(2);
          expect(running.filter((other) => !other.endsWith('poll')).length).toBeLessThanOrEqual(1);
          await s.schedule(Promise.resolve(), one);
          running.splice(running.indexOf(one), 1);
          done.add(one);
        },
      });
      const asked = demands.map(async ([at, task]) => {
        await s.schedule(Promise.resolve(), `demand ${at} ${task}`);
        const queue = queues.all[at];
        if (queue) queues.demandOf(queue, task);
      });
      await s.waitFor(Promise.all(asked).then(() => queues.untilIdle()));
      expect(done).toEqual(new Set(demands.map(([at, task]) => `${'abc'[at]} ${task}`)));
    }),
    { numRuns: 200 },
  );
});

test('so many work at once as there are slots, all are served, and an abort ends a wait', async () => {
  const slots = createSlots(2);
  const stop = new AbortController();
  let [working, most, ended] = [0, 0, 0];
  const work = async () => {
    using _slot = await slots.take(stop.signal);
    most = Math.max(most, ++working);
    await vi.advanceTimersByTimeAsync(1);
    working--;
    ended++;
  };
  await Promise.all(Array.from({ length: 9 }, work));
  expect({ most, ended }).toEqual({ most: 2, ended: 9 });
  using _one = await slots.take(stop.signal);
  using _two = await slots.take(stop.signal);
  const waiting = slots.take(stop.signal);
  stop.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
});

// Tests the components that interleave promises within one process, under every order that fast-check's scheduler tries. fast-check
// prints a failing order with the seed that reproduces it.
import { setImmediate as nextTick } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Source } from '../../src/source/client.ts';
import { coalesce } from '../../src/store/postgres/coalesce.ts';
import { createSlots } from '../../src/sync/slots.ts';
import { createAccountQueues, type TaskName } from '../../src/sync/worker/account-queue.ts';

const runs = { numRuns: 200 };

/** Waits one tick of the event loop after each step, because `coalesce` collects a batch for one tick. */
const act = async (step: () => Promise<unknown>) => {
  await step();
  await nextTick();
};

test('coalesced calls of one group run one after the other, each with its own answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler({ act }),
      fc.array(fc.record({ group: fc.nat(1), fails: fc.boolean() }), { minLength: 1, maxLength: 12 }),
      async (s, calls) => {
        const running = new Map<number, number>();
        const call = coalesce<number, string>(
          async (batch) => {
            const group = calls[batch[0] ?? 0]?.group ?? 0;
            expect(running.get(group) ?? 0).toBe(0);
            running.set(group, 1);
            await s.schedule(Promise.resolve(), `batch of group ${group}`);
            running.set(group, 0);
            const failing = batch.find((at) => calls[at]?.fails);
            if (failing !== undefined) throw `no ${failing}`;
            return batch.map((at) => `yes ${at}`);
          },
          { toGroup: (at) => calls[at]?.group, most: 3 },
        );
        const answers = calls.map((_, at) =>
          s.schedule(Promise.resolve(), `call ${at}`).then(() => call(at).catch((reason: unknown) => String(reason))),
        );
        await s.waitFor(Promise.all(answers));
        expect(await Promise.all(answers)).toEqual(calls.map(({ fails }, at) => `${fails ? 'no' : 'yes'} ${at}`));
      },
    ),
    runs,
  );
});

test('downloads in flight never exceed their limits, and none is forgotten', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 12 }),
      async (s, concurrency, count) => {
        const holding = createSlots(2 * concurrency);
        const fetching = createSlots(concurrency);
        const { signal } = new AbortController();
        const stages = { fetching: 0, holding: 0, committed: 0 };
        const work = async (at: number) => {
          using held = new DisposableStack();
          using asking = new DisposableStack();
          held.use(await holding.take(signal));
          asking.use(await fetching.take(signal));
          expect(++stages.fetching).toBeLessThanOrEqual(concurrency);
          expect(++stages.holding).toBeLessThanOrEqual(2 * concurrency);
          await s.schedule(Promise.resolve(), `fetch ${at}`);
          stages.fetching--;
          asking.dispose();
          await s.schedule(Promise.resolve(), `store ${at}`);
          stages.holding--;
          held.dispose();
          await s.schedule(Promise.resolve(), `complete ${at}`);
          stages.committed++;
        };
        await s.waitFor(Promise.all(Array.from({ length: count }, (_, at) => work(at))));
        expect(stages).toEqual({ fetching: 0, holding: 0, committed: count });
      },
    ),
    runs,
  );
});

test('every task of every account runs, one at a time for an account, few long ones at once', async () => {
  const names: readonly TaskName[] = ['poll', 'unfinished', 'witness', 'everything'];
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.tuple(fc.nat(2), fc.constantFrom(...names)), { minLength: 1, maxLength: 12 }),
      async (s, demands) => {
        const accounts = ['a', 'b', 'c'].map((name) => ({
          name,
          advertiserId: null,
          source: {} as Source,
          watch: () => {},
        }));
        const running: string[] = [];
        const done = new Set<string>();
        const queues = createAccountQueues({
          ...{ accounts, atOnce: 2, longAtOnce: 1, signal: new AbortController().signal },
          async work({ account }, task) {
            expect(running.some((one) => one.startsWith(account.name))).toBe(false);
            running.push(`${account.name} ${task}`);
            expect(running.length).toBeLessThanOrEqual(2);
            expect(running.filter((one) => !one.endsWith('poll')).length).toBeLessThanOrEqual(1);
            await s.schedule(Promise.resolve(), `${account.name} ${task}`);
            running.splice(running.indexOf(`${account.name} ${task}`), 1);
            done.add(`${account.name} ${task}`);
          },
        });
        const asked = demands.map(([at, task]) =>
          s.schedule(Promise.resolve(), `demand ${at} ${task}`).then(() => {
            const queue = queues.all[at];
            if (queue) queues.demandOf(queue, task);
          }),
        );
        await s.waitFor(Promise.all(asked).then(() => queues.untilIdle()));
        expect(done).toEqual(new Set(demands.map(([at, task]) => `${'abc'[at]} ${task}`)));
      },
    ),
    runs,
  );
});

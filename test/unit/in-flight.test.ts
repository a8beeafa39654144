// Downloads under way: how many at once.
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Claim } from '../../src/store/files/download-queue.ts';
import { createInFlight } from '../../src/sync/files/in-flight.ts';

const aClaim = (applicationId: bigint): Claim => ({
  ...{
    advertiserId: 7n,
    applicationId,
    kind: 'resume',
    token: '',
    attempts: 1,
    lapses: 0,
    wasThrottled: false,
    isServed: false,
    failedAt: Infinity,
  },
});

/** Downloads in flight whose every move the test decides. */
function createHeld(concurrency: number) {
  const inFlight = createInFlight(concurrency);
  const controls: { fetched: () => void; stored: () => void; commit: () => void }[] = [];
  const start = () =>
    inFlight.start(aClaim(BigInt(controls.length)), ({ onFetched: fetched, onStored: stored }) => {
      const { promise, resolve: commit } = Promise.withResolvers<void>();
      controls.push({ fetched, stored, commit });
      return promise;
    });
  return { inFlight, controls, start };
}

test('the source is asked for so many at once, and as many again may be on their way to the store', async () => {
  const { inFlight, controls, start } = createHeld(2);
  start();
  expect(inFlight.isFull()).toBe(false);
  start();
  expect(inFlight.isFull()).toBe(true);
  const moved = inFlight.nextChange();
  controls[0]?.fetched();
  await moved;
  expect(inFlight.isFull()).toBe(false);
  start();
  controls[1]?.fetched();
  start();
  controls[2]?.fetched();
  controls[3]?.fetched();
  expect(inFlight.size).toBe(4);
  expect(inFlight.isFull(), 'nothing is fetched, and four are on their way to the store').toBe(true);
  controls[3]?.commit();
  await inFlight.nextChange();
  expect(inFlight.isFull()).toBe(false);
});

test('downloads that are stored wait for their commit beside the others, 64 of them and no more', async () => {
  const { inFlight, controls, start } = createHeld(1);
  while (!inFlight.isFull() && inFlight.size < 1_000) {
    start();
    const moved = inFlight.nextChange();
    controls.at(-1)?.fetched();
    controls.at(-1)?.stored();
    await moved;
  }
  expect(inFlight.size).toBe(66);
  expect(inFlight.claims()).toHaveLength(66);
  controls[0]?.commit();
  await inFlight.nextChange();
  expect(inFlight.isFull()).toBe(false);
});

test('one that lands without having fetched frees its place, and all can be waited for', async () => {
  const { inFlight, controls, start } = createHeld(1);
  start();
  let isOver = false;
  const over = inFlight.untilIdle().then(() => {
    isOver = true;
  });
  await nextTick();
  expect(isOver).toBe(false);
  expect(inFlight.claims()).toMatchObject([{ applicationId: 0n }]);
  controls[0]?.commit();
  await over;
  expect([inFlight.size, inFlight.isFull()]).toEqual([0, false]);
});

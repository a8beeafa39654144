// Downloads under way: how many at once.
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Claim } from '../../src/store/files/download-queue.ts';
import { createInFlight } from '../../src/sync/files/in-flight.ts';

const aClaim = (applicationId: bigint): Claim => ({
  ...{ advertiserId: 7n, applicationId, kind: 'resume', token: '', attempts: 1, lapses: 0, wasThrottled: false },
});

/** Flights whose every move the test decides. */
function createHeld(concurrency: number) {
  const flights = createInFlight(concurrency);
  const controls: { fetched: () => void; stored: () => void; land: () => void }[] = [];
  const start = () =>
    flights.start(aClaim(BigInt(controls.length)), ({ onFetched: fetched, onStored: stored }) => {
      const { promise, resolve: land } = Promise.withResolvers<void>();
      controls.push({ fetched, stored, land });
      return promise;
    });
  return { flights, controls, start };
}

test('the source is asked for so many at once, and as many again may be on their way to the store', async () => {
  const { flights, controls, start } = createHeld(2);
  start();
  expect(flights.isFull()).toBe(false);
  start();
  expect(flights.isFull()).toBe(true);
  const moved = flights.nextChange();
  controls[0]?.fetched();
  await moved;
  expect(flights.isFull()).toBe(false);
  start();
  controls[1]?.fetched();
  start();
  controls[2]?.fetched();
  controls[3]?.fetched();
  expect(flights.size).toBe(4);
  expect(flights.isFull(), 'nothing is fetched, and four are on their way to the store').toBe(true);
  controls[3]?.land();
  await flights.nextChange();
  expect(flights.isFull()).toBe(false);
});

test('those that the store has wait for their books beside the others, 64 of them and no more', async () => {
  const { flights, controls, start } = createHeld(1);
  while (!flights.isFull() && flights.size < 1_000) {
    start();
    const moved = flights.nextChange();
    controls.at(-1)?.fetched();
    controls.at(-1)?.stored();
    await moved;
  }
  expect(flights.size).toBe(66);
  expect(flights.claims()).toHaveLength(66);
  controls[0]?.land();
  await flights.nextChange();
  expect(flights.isFull()).toBe(false);
});

test('one that lands without having fetched frees its place, and all can be waited for', async () => {
  const { flights, controls, start } = createHeld(1);
  start();
  let isOver = false;
  const over = flights.untilIdle().then(() => {
    isOver = true;
  });
  await nextTick();
  expect(isOver).toBe(false);
  expect(flights.claims()).toMatchObject([{ applicationId: 0n }]);
  controls[0]?.land();
  await over;
  expect([flights.size, flights.isFull()]).toEqual([0, false]);
});

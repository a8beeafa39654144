// Maintenance tasks of a worker: by two schedules, and still one run at a time.
import { expect } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import type { MaintenanceTask } from '../../src/sync/worker/maintenance.ts';
import { createWatchdog } from '../../src/sync/worker/watchdog.ts';
import { startWorker } from '../../src/sync/worker/worker.ts';
import { testPrivacyKey } from '../support/syncing.ts';
import { test } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const everySecond = '* * * * * *';

test('a run that lasts is not begun again by either schedule, though the lease is its own', async ({ database }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  const stop = new AbortController();
  const release = Promise.withResolvers<void>();
  let ticks = 0;
  let begun = 0;
  const maintenance: MaintenanceTask[] = [
    {
      name: 'verify',
      schedule: everySecond,
      missed: { schedule: everySecond, afterMs: 0 },
      async run() {
        begun++;
        await release.promise;
      },
    },
    // It ends at once and was done a moment ago, so that its next runs only tell that time passes.
    { name: 'prune', schedule: everySecond, run: async () => {} },
  ];
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const worker = startWorker(
    {
      store: {
        ...store,
        leases: {
          ...store.leases,
          claim(request) {
            if (request.name === 'maintenance prune') ticks++;
            return store.leases.claim(request);
          },
        },
      },
      accounts: [],
      maintenance,
      log,
      watchdog: createWatchdog(() => 0),
      onPass: () => {},
      loadRecallTrouble: () => null,
      now: Date.now,
      runDownloads: async () => null,
      untilQueued: (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    },
    {
      ...{ schedule: null, recheckSchedule: null, auditSchedule: null, owner: 'a worker', leaseMs: 30_000 },
      ...{ lagMs: 0, startAt: null, accountsAtOnce: 1, longAtOnce: 1, probeEveryMs: 1_000 },
      signal: stop.signal,
    },
  );
  try {
    await until(() => begun > 0 && ticks > 2);
    expect(begun).toBe(1);
  } finally {
    release.resolve();
    stop.abort();
    await worker.ended;
  }
});

// Maintenance tasks of a worker: by two schedules, and still one run at a time.
import { expect } from 'vitest';
import { openStore, type Store } from '../../../src/store/store.ts';
import type { MaintenanceTask } from '../../../src/sync/worker/run-task.ts';
import { test } from '../../support/database/test-database.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';
import { startBareWorker } from '../../support/processes/worker.ts';
import { until } from '../../support/suite/until.ts';

const everySecond = '* * * * * *';

test('a run that lasts is not begun again by either schedule, though the lease is its own', async ({ database }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  const stop = new AbortController();
  const release = Promise.withResolvers<void>();
  let ticks = 0;
  let begun = 0;
  const verify: MaintenanceTask = {
    name: 'verify',
    schedule: everySecond,
    async run() {
      begun++;
      await release.promise;
    },
  };
  const maintenance: MaintenanceTask[] = [
    verify,
    { ...verify, restMs: 0 },
    // It ends at once and was done a moment ago, so that its next runs only tell that time passes.
    { name: 'prune', schedule: everySecond, run: async () => {} },
  ];
  const countingStore: Store = {
    ...store,
    leases: {
      ...store.leases,
      claim(request) {
        if (request.name === 'maintenance prune') ticks++;
        return store.leases.claim(request);
      },
    },
  };
  const worker = startBareWorker({ store: countingStore, accounts: [], maintenance }, stop.signal);
  try {
    await until(() => begun > 0 && ticks > 2);
    expect(begun).toBe(1);
  } finally {
    release.resolve();
    stop.abort();
    await worker.ended;
  }
});

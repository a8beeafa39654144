// The worker's maintenance tasks with their schedules, each run by one worker of many. To add a task, add it to the list.
import type { Config } from '../config.ts';
import type { Store } from '../store/store.ts';
import { verify } from '../sync/files/verify.ts';
import type { MaintenanceTask } from '../sync/worker/maintenance.ts';
import { orphanGraceMs } from './files.ts';
import { openBlobsOf } from './resources.ts';

interface MaintenanceParts {
  readonly config: Config<'source' | 'sync' | 'blobs'>;
  readonly store: Store;
}

export function createMaintenance({ config, store }: MaintenanceParts): MaintenanceTask[] {
  return [
    {
      name: 'prune',
      schedule: '23 * * * *',
      async run(signal, onStep) {
        for (;;) {
          signal.throwIfAborted();
          const pruned = (await store.events.prune()) + (await store.sweeps.prune()) + (await store.quarantine.prune());
          if (pruned === 0) return;
          onStep();
        }
      },
    },
    {
      name: 'days',
      schedule: '53 * * * *',
      async run(signal, onStep) {
        while (await store.reports.countStaleDays()) {
          signal.throwIfAborted();
          onStep();
        }
      },
    },
    {
      name: 'verify',
      schedule: '37 4 * * *',
      // Catches up if a nightly run was interrupted, or if no worker was running.
      missed: { schedule: '37 0-3,5-23 * * *', afterMs: 25 * 3_600_000 },
      async run(signal, onStep) {
        await using blobs = await openBlobsOf(config, store, signal);
        // Includes accounts that are no longer configured, because nothing else checks their bytes.
        const advertisers = await store.advertisers.loadIds();
        const amount = { withinMs: config.sync.verifyWithinMs };
        await verify(
          { store, blobs, onStep },
          { advertisers, amount, graceMs: orphanGraceMs, parallel: config.source.concurrency, signal },
        );
      },
    },
    {
      name: 'prefills',
      schedule: '*/10 * * * *',
      // Runs even if prefill is not configured here: one worker does it for all, and expired personal data must be deleted in any case.
      async run() {
        await store.prefills.lapse();
      },
    },
  ];
}

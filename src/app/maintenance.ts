// The worker's maintenance tasks with their schedules, each run by one worker of many. To add a task, add it to the list.
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import type { Store } from '../store/store.ts';
import { verify } from '../sync/files/verify.ts';
import { finishErasures, retain } from '../sync/privacy/erase.ts';
import type { MaintenanceTask } from '../sync/worker/run-task.ts';
import { createExtractErasure } from './extract.ts';
import { openBlobsOf } from './storage.ts';

export function createMaintenance(
  config: Config<'sync' | 'blobs' | 'privacy'>,
  store: Store,
  log: Log,
  now = Date.now,
): MaintenanceTask[] {
  const verifying = {
    name: 'verify',
    async run(signal, onStep) {
      await using blobs = await openBlobsOf(config, store, signal);
      // Includes accounts that are no longer configured, because nothing else checks their bytes.
      const advertisers = await store.advertisers.loadAdvertiserIds();
      const amount = { withinMs: config.sync.VERIFY_WITHIN };
      const parallel = config.blobs.SOURCE_CONCURRENCY;
      await verify({ store, blobs, onStep }, { advertisers, amount, parallel, signal });
    },
  } satisfies Omit<MaintenanceTask, 'schedule'>;
  return [
    {
      name: 'prune',
      schedule: '23 * * * *',
      async run(signal, onStep) {
        for (;;) {
          signal.throwIfAborted();
          const pruned = (await store.events.pruneEvents()) + (await store.sweeps.pruneSweeps());
          if (pruned + (await store.quarantine.pruneQuarantine()) === 0) return;
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
    { ...verifying, schedule: '37 4 * * *' },
    // Catches up if a nightly run was interrupted, or if no worker was running.
    { ...verifying, schedule: '37 0-3,5-23 * * *', restMs: 25 * 3_600_000 },
    {
      name: 'prefills',
      schedule: '*/10 * * * *',
      // Runs even if prefill is not configured here: one worker does it for all, and expired personal data must be deleted in any case.
      async run() {
        await store.prefills.lapsePrefills();
      },
    },
    {
      name: 'erasures',
      schedule: '*/2 * * * *',
      async run(signal, onStep) {
        const advertisers = await store.advertisers.loadAdvertiserIds();
        const open = (await Promise.all(advertisers.map((id) => store.erasures.loadOpenErasures(id)))).flat();
        if (open.length === 0) return;
        await using blobs = await openBlobsOf(config, store, signal, 'erase');
        const eraseExtracts = createExtractErasure(config, store);
        for (const job of await finishErasures({ store, blobs, eraseExtracts, onStep }, open, signal)) {
          const { advertiserId, jobId, counts } = job;
          log.info({ advertiserId, jobId, applications: counts.applications }, 'erasure complete');
        }
      },
    },
    {
      name: 'retention',
      schedule: '23 * * * *',
      async run(signal, onStep) {
        const { RETENTION: retentionMs } = config.privacy;
        const advertisers = await store.advertisers.loadAdvertiserIds();
        if (retentionMs === null) {
          for (const id of advertisers) await store.erasures.noteRetention(id, null);
          return;
        }
        // Uses the earlier of the two clocks: one that is ahead would erase recent applications.
        const { now: databaseNow } = await store.schema.loadServer();
        const before = new Date(Math.min(now(), databaseNow.getTime()) - retentionMs);
        const request = { advertisers, before, released: false, by: 'retention', signal };
        const { erased, braked } = await retain({ store, onStep }, request);
        if (erased > 0) log.info({ erased }, 'applications older than RETENTION were erased');
        if (braked > 0)
          log.warn({ braked }, 'retention paused: too many to erase at once; run intake status for the next step');
      },
    },
  ];
}

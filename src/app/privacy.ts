// Composes the privacy commands: erase, export and retention. Also the maintenance tasks with which a worker finishes interrupted erasures
// and applies the retention period. Opens their resources through resources.ts and makes no decisions.
import type { Config } from '../config.ts';
import { type ErasureJob, isNothing, type Sought } from '../domain/erasure.ts';
import { SeveralFit } from '../domain/trouble.ts';
import type { Log } from '../log.ts';
import type { FoundPerson } from '../store/privacy/find-and-erase.ts';
import type { Store } from '../store/store.ts';
import {
  type EraseDeps,
  erase,
  finishBegun,
  finishErasures,
  type RetentionSummary,
  retain,
} from '../sync/privacy/erase.ts';
import { type ExportSummary, exportPerson } from '../sync/privacy/export.ts';
import type { MaintenanceTask } from '../sync/worker/maintenance.ts';
import { toActor } from './actor.ts';
import { openStoreOf } from './database.ts';
import { type FilesConfig, openHeld } from './files.ts';
import { type Chosen, loadKnown, openBlobsToErase, openBlobsToRead } from './resources.ts';

export type { ErasureCounts, ErasureJob, Sought } from '../domain/erasure.ts';

/** The named advertiser, or all that may hold data. Accounts no longer configured count too: a person's rights do not end with them. */
async function loadHolders(config: Config<'source'>, store: Store, name: string | undefined): Promise<bigint[]> {
  const configured = (await loadKnown(config, store, name)).map(({ advertiserId }) => advertiserId);
  return name === undefined ? [...new Set([...configured, ...(await store.advertisers.loadIds())])] : configured;
}

/** What an erasure would delete, per advertiser. Changes nothing. */
export async function previewErasure(
  config: Config<'database' | 'source' | 'privacy'>,
  request: Chosen & { readonly sought: Sought },
): Promise<(Pick<FoundPerson, 'applicationIds' | 'counts'> & { readonly advertiserId: bigint })[]> {
  await using app = await openStoreOf(config, 'erase', request.signal);
  const { sought } = request;
  const found = [];
  for (const advertiserId of await loadHolders(config, app.store, request.advertiser)) {
    const { applicationIds, counts } = await app.store.privacy.findPerson(advertiserId, sought);
    found.push({ advertiserId, applicationIds, counts });
  }
  return found;
}

/**
 * Erases a person and waits for the receipts. An e-mail address is the same person at every advertiser; an id must match at one advertiser
 * only. If nobody matches, every advertiser that was searched has a receipt that says so.
 */
export async function eraseOnce(
  config: FilesConfig,
  request: Chosen &
    Pick<EraseDeps, 'onStep' | 'crashPoint'> & { readonly sought: Sought; readonly future?: boolean | undefined },
): Promise<ErasureJob[]> {
  await using held = await openHeld(config, 'erase', request, openBlobsToErase);
  const { sought, future, signal, onStep, crashPoint } = request;
  const receipts: ErasureJob[] = [];
  const holders = await loadHolders(config, held.store, request.advertiser);
  const fitting = sought.by === 'address' ? [] : await findHolder(held.store, holders, sought);
  const advertisers = fitting.length === 0 ? holders : fitting;
  for (const advertiserId of advertisers) {
    receipts.push(
      ...(await erase({ ...held, onStep, crashPoint }, { advertiserId, sought, future, by: toActor(), signal })),
    );
  }
  return receipts;
}

/** Writes a person's rows and files into a folder; null if no advertiser has the application. */
export async function exportOnce(
  config: FilesConfig,
  request: Chosen & { readonly applicationId: bigint; readonly folder: string },
): Promise<ExportSummary | null> {
  await using held = await openHeld(config, 'export', request, openBlobsToRead);
  const { applicationId, folder, signal } = request;
  const holders = await loadHolders(config, held.store, request.advertiser);
  const [advertiserId] = await findHolder(held.store, holders, { by: 'application', applicationId });
  if (advertiserId === undefined) return null;
  return await exportPerson(held, { advertiserId, applicationId, folder, by: toActor(), signal });
}

/**
 * The advertiser that holds data for this id, or is erasing it; none or one. The spec does not say whether ids are unique across
 * advertisers.
 */
async function findHolder(store: Store, advertisers: readonly bigint[], sought: Sought): Promise<readonly bigint[]> {
  const fitting: bigint[] = [];
  for (const id of advertisers) {
    const isHeld = !isNothing((await store.privacy.findPerson(id, sought)).counts);
    // An interrupted erasure has no rows any more. Without its job, a person at another advertiser would seem to be the only match.
    if (isHeld || (await store.erasures.loadOpen(id, sought)).length > 0) fitting.push(id);
  }
  if (fitting.length > 1) throw new SeveralFit(fitting);
  return fitting;
}

/** Everything stored before this time is older than RETENTION; null if RETENTION is off. */
export function toRetentionStart({ privacy }: Config<'privacy'>, now: number): Date | null {
  return privacy.retentionMs === null ? null : new Date(now - privacy.retentionMs);
}

/** Erases everything that is older than RETENTION, without the brake, because an operator confirmed it. Waits for the receipts. */
export async function releaseRetention(
  config: FilesConfig,
  request: Chosen & { readonly before: Date; readonly onStep?: EraseDeps['onStep'] },
): Promise<ErasureJob[]> {
  await using held = await openHeld(config, 'erase', request, openBlobsToErase);
  const { before, signal, onStep } = request;
  const { store } = held;
  const advertisers = await loadHolders(config, store, request.advertiser);
  const begun: ErasureJob[] = [];
  await retain(
    { store, onStep: (job) => begun.push(job) },
    { advertisers, before, released: true, by: toActor(), signal },
  );
  const open = await Promise.all(advertisers.map((id) => store.erasures.loadOpen(id)));
  return await finishBegun({ ...held, onStep }, begun, open.flat(), signal);
}

/** Runs retention once, with its brake. A worker does this every hour. Erases nothing if RETENTION is off. */
async function runRetention(
  config: FilesConfig,
  store: Store,
  signal: AbortSignal,
  onStep: () => void,
  now: () => number,
): Promise<RetentionSummary> {
  // Uses the earlier of the two clocks: one that is ahead would erase recent applications.
  const { now: databaseNow } = await store.schema.loadServer();
  const before = toRetentionStart(config, Math.min(now(), databaseNow.getTime()));
  const advertisers = await store.advertisers.loadIds();
  if (before === null) {
    for (const id of advertisers) await store.erasures.noteRetention(id, null);
    return { erased: 0, braked: 0 };
  }
  return await retain({ store, onStep }, { advertisers, before, released: false, by: 'retention', signal });
}

/** Finishes interrupted erasures. Opens the blob store only if there is one. */
async function runErasures(
  config: FilesConfig,
  store: Store,
  signal: AbortSignal,
  onStep: () => void,
): Promise<ErasureJob[]> {
  const advertisers = await store.advertisers.loadIds();
  const open = await Promise.all(advertisers.map((id) => store.erasures.loadOpen(id)));
  if (open.flat().length === 0) return [];
  await using blobs = await openBlobsToErase(config, store);
  return await finishErasures({ store, blobs, onStep }, { advertisers, signal });
}

/** The worker's scheduled privacy tasks. */
export function createPrivacyMaintenance(
  config: FilesConfig,
  store: Store,
  log: Log,
  now = Date.now,
): MaintenanceTask[] {
  return [
    {
      name: 'erasures',
      schedule: '*/2 * * * *',
      run: async (signal, onStep) => {
        for (const { advertiserId, jobId, counts } of await runErasures(config, store, signal, onStep)) {
          log.info({ advertiserId, jobId, applications: counts.applications }, 'erasure complete');
        }
      },
    },
    {
      name: 'retention',
      schedule: '23 * * * *',
      run: async (signal, onStep) => {
        const { erased, braked } = await runRetention(config, store, signal, onStep, now);
        if (erased > 0) log.info({ erased }, 'applications older than RETENTION were erased');
        if (braked > 0)
          log.warn({ braked }, 'retention paused: too many to erase at once; run intake status for the next step');
      },
    },
  ];
}

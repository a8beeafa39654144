// The commands that protect people, wired: erase, export, retention; and the maintenance with which a worker finishes what was interrupted,
// and lets go what has come of age. Opens what they need through resources.ts; decides nothing.
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
import { type Chosen, loadKnownIds, openBlobsOf } from './resources.ts';

export type { ErasureCounts, ErasureJob, Sought } from '../domain/erasure.ts';

/** The advertiser that was named, or all of whom something may be held: a person's rights do not end when an account is given up. */
async function loadHolders(config: Config<'source'>, store: Store, name: string | undefined): Promise<bigint[]> {
  const configured = await loadKnownIds(config, store, name);
  return name === undefined ? [...new Set([...configured, ...(await store.advertisers.loadIds())])] : configured;
}

/** What an erasure would take, per advertiser; nothing is changed. */
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
 * Erases and waits for the receipts. An address is one person everywhere; an id must fit one advertiser only. Where nobody fits, every
 * advertiser that was searched has a receipt of that.
 */
export async function eraseOnce(
  config: FilesConfig,
  request: Chosen & Pick<EraseDeps, 'onStep' | 'crashPoint'> & { readonly sought: Sought },
): Promise<ErasureJob[]> {
  await using held = await openHeld(config, 'erase', request);
  const { sought, signal, onStep, crashPoint } = request;
  const receipts: ErasureJob[] = [];
  const holders = await loadHolders(config, held.store, request.advertiser);
  const fitting = sought.by === 'address' ? [] : await findHolder(held.store, holders, sought);
  const advertisers = fitting.length === 0 ? holders : fitting;
  for (const advertiserId of advertisers) {
    receipts.push(...(await erase({ ...held, onStep, crashPoint }, { advertiserId, sought, by: toActor(), signal })));
  }
  return receipts;
}

/** Writes a person's rows and files into a folder; null when no advertiser knows the application. */
export async function exportOnce(
  config: FilesConfig,
  request: Chosen & { readonly applicationId: bigint; readonly folder: string },
): Promise<ExportSummary | null> {
  await using held = await openHeld(config, 'export', request);
  const { applicationId, folder, signal } = request;
  const holders = await loadHolders(config, held.store, request.advertiser);
  const [advertiserId] = await findHolder(held.store, holders, { by: 'application', applicationId });
  if (advertiserId === undefined) return null;
  return await exportPerson(held, { advertiserId, applicationId, folder, by: toActor(), signal });
}

/** The advertiser at which something is held by this id, or is on its way out; none, or one. */
// Spec silent: whether ids are unique beyond one advertiser.
async function findHolder(store: Store, advertisers: readonly bigint[], sought: Sought): Promise<readonly bigint[]> {
  const fitting: bigint[] = [];
  for (const id of advertisers) {
    const isHeld = !isNothing((await store.privacy.findPerson(id, sought)).counts);
    // The rows of an interrupted erasure are gone: without its job the person of another advertiser would be the only one left.
    if (isHeld || (await store.erasures.loadOpen(id, sought)).length > 0) fitting.push(id);
  }
  if (fitting.length > 1) throw new SeveralFit(fitting);
  return fitting;
}

/** The moment before which everything is older than RETENTION; null when it is off. */
export function toRetentionStart({ privacy }: Config<'privacy'>, now: number): Date | null {
  return privacy.retentionMs === null ? null : new Date(now - privacy.retentionMs);
}

/** Erases everything that is older than RETENTION, without the brake: a person said so. Waits for the receipts. */
export async function releaseRetention(
  config: FilesConfig,
  request: Chosen & { readonly before: Date; readonly onStep?: EraseDeps['onStep'] },
): Promise<ErasureJob[]> {
  await using held = await openHeld(config, 'erase', request);
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

/** One run of retention with its brake: what a worker does every hour. Nothing when RETENTION is off. */
async function runRetention(
  config: FilesConfig,
  store: Store,
  signal: AbortSignal,
  onStep: () => void,
  now: () => number,
): Promise<RetentionSummary> {
  // The earlier of both clocks: one that is ahead would erase people who came yesterday.
  const { now: databaseNow } = await store.schema.loadServer();
  const before = toRetentionStart(config, Math.min(now(), databaseNow.getTime()));
  const advertisers = await store.advertisers.loadIds();
  if (before === null) {
    for (const id of advertisers) await store.erasures.noteRetention(id, null);
    return { erased: 0, braked: 0 };
  }
  return await retain({ store, onStep }, { advertisers, before, released: false, by: 'retention', signal });
}

/** Finishes erasures that were interrupted; opens the blob store only when there is one. */
async function runErasures(
  config: FilesConfig,
  store: Store,
  signal: AbortSignal,
  onStep: () => void,
): Promise<ErasureJob[]> {
  const advertisers = await store.advertisers.loadIds();
  const open = await Promise.all(advertisers.map((id) => store.erasures.loadOpen(id)));
  if (open.flat().length === 0) return [];
  await using blobs = await openBlobsOf(config, store, signal);
  return await finishErasures({ store, blobs, onStep }, { advertisers, signal });
}

/** What a worker does by the clock for people's protection. */
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
          log.info({ advertiserId, jobId, applications: counts.applications }, 'an erasure is complete');
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
          log.warn({ braked }, 'retention paused: too many to erase at once; intake status says how to go on');
      },
    },
  ];
}

// Composes an extract: opens its target and a database connection of its own, because the snapshot is one long transaction.
import { type Config, parsePlace, toLocation } from '../config.ts';
import type { BlobStore } from '../domain/blob.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { version } from '../domain/schema.ts';
import { SettingTrouble, WrongStore } from '../domain/trouble.ts';
import { anonymousViews, personalViews } from '../store/postgres/grants.ts';
import type { Store } from '../store/store.ts';
import { erasePeople } from '../sync/extract/erase-people.ts';
import { type ExtractRequest, type ExtractSummary, extract, takeTarget } from '../sync/extract/extract.ts';
import type { WriteDeps } from '../sync/extract/write.ts';
import type { EraseExtracts } from '../sync/privacy/erase.ts';
import type { MaintenanceTask } from '../sync/worker/run-task.ts';
import { openStoreOf, toOwner } from './database.ts';
import { openConfiguredBlobs, openSpoolOf } from './storage.ts';

export type ExtractConfig = Config<'database' | 'privacy' | 'blobs' | 'sync' | 'extract'>;
type Place = NonNullable<ExtractConfig['extract']['EXTRACT_URL']>;

/** Opens a target. Its S3 settings are those of the blob store; few objects are written at once, and each is large. */
async function openTarget(config: Config<'blobs'>, place: Place): Promise<BlobStore> {
  const blobs = { ...config.blobs, SOURCE_CONCURRENCY: 4, SOURCE_TIMEOUT: 60_000, BLOBS_URL: place };
  return await openConfiguredBlobs({ ...config, blobs });
}

/** Summaries of millions of rows take longer than any other statement. The watchdog of a worker waits for fifteen minutes. */
const statementTimeoutMs = 600_000;

/** How long a dead process that erased from a target, or took it, keeps others from it. */
const shortLeaseMs = 30_000;

/** Makes this database the owner of the target in EXTRACT_URL. Returns where it is; null if there is none, or nothing there. */
export async function adoptExtracts(
  config: Config<'blobs' | 'extract'>,
  store: Store,
  signal: AbortSignal,
): Promise<string | null> {
  const { EXTRACT_URL: place } = config.extract;
  if (place === null) return null;
  const location = toLocation(place);
  await using target = await openTarget(config, place);
  const request = { location, owner: toOwner('adopt-store'), leaseMs: shortLeaseMs, signal };
  return (await takeTarget({ store, target }, request)) ? location : null;
}

/**
 * Takes the people of an erasure out of every target that may hold them; returns how many versions of files the targets keep. The trouble
 * of one target does not stop the others. One that belongs to another database, such as the original of a copy, is noted in the receipt.
 */
export function createExtractErasure(
  config: Config<'blobs'>,
  store: Store,
  crashPoint?: PassCrashPoint,
): EraseExtracts {
  return async (job, signal, onStep) => {
    const { advertiserId, applicationIds, counts } = job;
    const onDelete = (paths: readonly string[]) => store.erasures.noteExtracts(job, 'extractFiles', paths);
    const eraseAt = async (location: string) => {
      const place = parsePlace(location);
      if (place === null) throw new SettingTrouble(`The extract at ${location} cannot be opened.`);
      await using target = await openTarget(config, place);
      return await erasePeople(
        { store, target, spool: openSpoolOf(), onDelete, onStep, crashPoint },
        {
          ...{ advertiserId, location, owner: toOwner('erasure'), leaseMs: shortLeaseMs, signal },
          applicationIds: applicationIds ?? [],
          deletedBefore: counts.extractFiles ?? [],
        },
      );
    };
    let keptVersions = 0;
    const failed: unknown[] = [];
    for (const location of await store.extracts.loadPeoplePlaces()) {
      try {
        keptVersions += await eraseAt(location);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof WrongStore) await store.erasures.noteExtracts(job, 'extractsOfOthers', [location]);
        else failed.push(error);
      }
    }
    if (failed.length > 0) throw failed[0];
    return keptVersions;
  };
}

export function createExtractTask(config: ExtractConfig): MaintenanceTask[] {
  const { EXTRACT_URL: place, EXTRACT_SCHEDULE: schedule } = config.extract;
  if (place === null || schedule === null) return [];
  const run: MaintenanceTask['run'] = async (signal, onStep) => {
    await runExtract(config, { place, views: null, withPeople: false, sinceLast: true, onRows: onStep, signal });
  };
  return [{ name: 'extract', schedule, run }];
}

type ExtractRun = Pick<ExtractRequest, 'views' | 'withPeople' | 'sinceLast' | 'signal'> & Pick<WriteDeps, 'onRows'>;

export async function runExtract(
  config: ExtractConfig,
  run: ExtractRun & { readonly place: Place; readonly crashPoint?: PassCrashPoint | undefined },
): Promise<ExtractSummary> {
  const { place, onRows, crashPoint, signal, ...chosen } = run;
  const known = chosen.withPeople ? [...anonymousViews, ...personalViews] : anonymousViews;
  const unknown = chosen.views?.find((view) => !known.includes(view));
  if (unknown !== undefined) {
    const named = unknown.slice(0, 100);
    throw new SettingTrouble(`There is no view "${named}" that names nobody. People's columns need --with-people.`);
  }
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openStoreOf(config, 'extract', { statementTimeoutMs }));
  const target = stack.use(await openTarget(config, place));
  return await extract(
    { store, target, spool: openSpoolOf(), onRows, crashPoint },
    {
      ...{ ...chosen, anonymousViews, personalViews, version, signal, location: toLocation(place) },
      ...{ keep: config.extract.EXTRACT_KEEP, owner: toOwner('extract'), leaseMs: config.sync.LEASE },
    },
  );
}

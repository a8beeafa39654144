// Takes erased people out of the extracts at a target. Files of people's columns that hold one of them are written again, and every earlier
// snapshot goes with its files. Anonymous files stay: they name nobody, and the next extract leaves the erased applications out.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore, Spool } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { type ExtractFile, type Manifest, toManifestPath } from '../../domain/extract/manifest.ts';
import { LaneHeld, Trouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import { type HeldLane, holdLane, type LaneHolder } from '../accounts/held-lane.ts';
import { toLane } from './extract.ts';
import { readParquet } from './parquet.ts';
import { deleteObjects, listUnused, loadPublished, loadWhole, publish } from './publish.ts';
import { type ViewRequest, writeRows } from './write.ts';

export interface ErasePeopleDeps {
  readonly store: Pick<Store, 'blobStore' | 'extracts' | 'leases'>;
  readonly target: BlobStore;
  readonly spool: Spool;
  /** Called with the files of people's columns before they are deleted, so that the receipt names them whatever happens. */
  readonly onDelete: (paths: readonly string[]) => Promise<void>;
  /** Called when a file is written, and during the wait for an extract, which may take longer than a watchdog does. */
  readonly onStep: () => void;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface ErasePeopleRequest extends LaneHolder {
  readonly location: string;
  readonly advertiserId: bigint;
  readonly applicationIds: readonly bigint[];
  /** Files that an earlier attempt has deleted, or was about to. */
  readonly deletedBefore: readonly string[];
}

/** Returns how many versions of deleted files the store does not let Intake delete. */
export async function erasePeople(deps: ErasePeopleDeps, request: ErasePeopleRequest): Promise<number> {
  const { store, target } = deps;
  await using lane = await awaitLane(deps, request);
  const { signal } = lane;
  const published = await loadPublished(store, target, request.location, signal);
  const { pointer, chain, begunId, snapshotId } = published;
  const [latest] = chain;
  const deleteAllBut = async (kept: readonly Manifest[]) => {
    const unused = await listUnused(target, kept, snapshotId, signal, request.deletedBefore);
    await deps.onDelete(unused.filter((path) => path.startsWith('people/')));
    const keptVersions = await deleteObjects(target, unused, signal);
    deps.crashPoint?.('extractErased');
    return keptVersions;
  };
  if (latest === undefined && begunId !== '' && published.identity === null) {
    const absent = `${request.location} holds people's columns of an extract, but nothing is there for this process.`;
    const next = 'Mount or open it here; if it was deleted, delete its row in intake.extracts.';
    throw new Trouble('local', `${absent} ${next}`, { at: 'storage' });
  }
  if (latest === undefined) return await deleteAllBut([]);
  const buckets = await store.extracts.loadBuckets(request.applicationIds);
  const isSuspect = (file: ExtractFile) =>
    file.path.startsWith('people/') &&
    file.advertiser_id === String(request.advertiserId) &&
    buckets.includes(file.partition ?? '');
  const erased = new Set<unknown>(request.applicationIds);
  const rewritten = new Map<string, readonly ExtractFile[]>();
  for (const file of latest.files.filter(isSuspect)) {
    const columns = latest.columns[file.view] ?? [];
    const fresh = await writeWithout(deps, file, erased, { columns, snapshotId, signal });
    if (fresh !== undefined) rewritten.set(file.path, fresh);
  }
  const older = new Set(chain.slice(1).flatMap(({ files }) => files.filter(isSuspect).map(({ path }) => path)));
  const isClean = rewritten.size === 0 && [...older].every((path) => latest.files.some((file) => file.path === path));
  // A paused extract must not publish the files that are deleted here: it finds another pointer.
  if (isClean && begunId <= latest.snapshot_id) return await deleteAllBut(chain);
  const manifest: Manifest = {
    ...latest,
    snapshot_id: snapshotId,
    previous: isClean ? toManifestPath(latest.snapshot_id) : null,
    files: latest.files.flatMap((file) => rewritten.get(file.path) ?? [file]),
  };
  await publish(target, manifest, pointer, { signal, onManifest: () => deps.crashPoint?.('extractDescribed') });
  deps.crashPoint?.('extractPublished');
  return await deleteAllBut(isClean ? [manifest, ...chain] : [manifest]);
}

/** Waits until an extract to the same target has ended: it may be about to publish what is being erased. */
async function awaitLane({ store, onStep }: ErasePeopleDeps, request: ErasePeopleRequest): Promise<HeldLane> {
  for (;;) {
    try {
      return await holdLane(store, { ...request, ...toLane(request.location) });
    } catch (error) {
      if (!(error instanceof LaneHeld)) throw error;
      onStep();
      await sleep(1_000, undefined, { signal: request.signal });
    }
  }
}

/** Writes the rows of a file again without these applications. Undefined if it holds none of them. */
async function writeWithout(
  { target, spool, onStep, crashPoint }: ErasePeopleDeps,
  file: ExtractFile,
  erased: ReadonlySet<unknown>,
  how: Pick<ViewRequest, 'columns' | 'snapshotId' | 'signal'>,
): Promise<readonly ExtractFile[] | undefined> {
  const bytes = await loadWhole(target, file.path, how.signal);
  if (bytes === null) throw new Trouble('local', `${file.path} of the extract is not there.`, { at: 'storage' });
  let hasErased = false;
  for await (const rows of readParquet(bytes)) hasErased ||= rows.some((row) => erased.has(row.application_id));
  if (!hasErased) return undefined;
  const { view, partition } = file;
  const advertiserId = BigInt(file.advertiser_id);
  const onPut = () => {
    onStep();
    crashPoint?.('extractPut');
  };
  const others = async function* () {
    for await (const rows of readParquet(bytes))
      yield { partition, rows: rows.filter((row) => !erased.has(row.application_id)) };
  };
  const request = { ...how, view, division: 'bucket', advertiserId, earlier: [] } as const;
  return await writeRows({ target, spool, onPut }, request, others());
}

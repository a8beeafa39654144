// Takes erased people out of the extracts at a target. Files of people's columns that hold one of them are written again without them, the
// manifest is published anew, and every earlier snapshot goes with its files, because it may hold them too. Anonymous files stay: they name
// nobody, and the next extract leaves the erased applications out.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore, Spool } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import {
  type ExtractFile,
  type Manifest,
  toFilePath,
  toManifestPath,
  toSnapshotId,
} from '../../domain/extract/manifest.ts';
import { LaneHeld, Trouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import { type HeldLane, holdLane, type LaneRequest } from '../accounts/held-lane.ts';
import { toLane } from './extract.ts';
import { openParquet, readParquet } from './parquet.ts';
import { deleteObjects, listUnused, loadPublished, loadWhole, publish } from './publish.ts';

export interface ErasePeopleDeps {
  readonly store: Pick<Store, 'blobStore' | 'extracts' | 'leases'>;
  readonly target: BlobStore;
  readonly spool: Spool;
  /** Called with the files of people's columns before they are deleted, so that the receipt names them whatever happens. */
  readonly onDelete: (paths: readonly string[]) => Promise<void>;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface ErasePeopleRequest extends Omit<LaneRequest, 'name' | 'lane'> {
  readonly location: string;
  /** A snapshot was published there: a target without one is another folder under the same name. */
  readonly isPublished: boolean;
  /** The snapshot that was begun there last. A killed extract may have left files of it. */
  readonly begunId: string;
  readonly advertiserId: bigint;
  readonly applicationIds: readonly bigint[];
  /** Files that an earlier attempt has deleted, or was about to. */
  readonly deletedBefore: readonly string[];
}

/** Returns how many versions of deleted files the store does not let Intake delete. */
export async function erasePeople(deps: ErasePeopleDeps, request: ErasePeopleRequest): Promise<number> {
  const { store, target } = deps;
  const { begunId } = request;
  await using lane = await awaitLane(store, request);
  const { signal } = lane;
  const { databaseId } = await store.blobStore.ensure();
  const { pointer, chain } = await loadPublished(target, databaseId, signal);
  const [latest] = chain;
  const latestId = latest?.snapshot_id ?? '';
  const snapshotId = toSnapshotId(new Date(), begunId > latestId ? begunId : latestId);
  const deleteAllBut = async (kept: readonly Manifest[]) => {
    const unused = await listUnused(target, kept, snapshotId, signal, request.deletedBefore);
    await deps.onDelete(unused.filter((path) => path.startsWith('people/')));
    const keptVersions = await deleteObjects(target, unused, signal);
    deps.crashPoint?.('extractErased');
    return keptVersions;
  };
  if (latest === undefined) {
    if (request.isPublished) throw new Trouble('local', explainAbsence(request.location), { at: 'storage' });
    return await deleteAllBut([]);
  }
  const buckets = await store.extracts.loadBuckets(request.applicationIds);
  const isSuspect = (file: ExtractFile) =>
    file.path.startsWith('people/') &&
    file.advertiser_id === String(request.advertiserId) &&
    buckets.includes(file.partition ?? '');
  const erased = new Set(request.applicationIds);
  const rewritten = new Map<string, ExtractFile | null>();
  for (const file of latest.files.filter(isSuspect)) {
    const fresh = await writeWithout(deps, latest, file, erased, snapshotId, signal);
    if (fresh !== undefined) rewritten.set(file.path, fresh);
  }
  const older = new Set(chain.slice(1).flatMap(({ files }) => files.filter(isSuspect).map(({ path }) => path)));
  const isClean = rewritten.size === 0 && [...older].every((path) => latest.files.some((file) => file.path === path));
  // A paused extract must not publish the files that are deleted here: it finds another pointer.
  if (isClean && begunId <= latestId) return await deleteAllBut(chain);
  const manifest: Manifest = {
    ...latest,
    snapshot_id: snapshotId,
    previous: isClean ? toManifestPath(latestId) : null,
    files: latest.files.flatMap((file) => {
      const fresh = rewritten.get(file.path);
      return fresh === undefined ? [file] : fresh === null ? [] : [fresh];
    }),
  };
  await publish(target, manifest, pointer, { signal, onManifest: () => deps.crashPoint?.('extractDescribed') });
  deps.crashPoint?.('extractPublished');
  return await deleteAllBut(isClean ? [manifest, ...chain] : [manifest]);
}

const explainAbsence = (location: string) =>
  `${location} holds people's columns of an extract, but nothing is there for this process. Mount or open it here; if it was deleted, delete its row in intake.extracts.`;

/** Waits until an extract to the same target has ended: it may be about to publish what is being erased. */
async function awaitLane(store: ErasePeopleDeps['store'], request: ErasePeopleRequest): Promise<HeldLane> {
  for (;;) {
    try {
      return await holdLane(store, { ...request, ...toLane(request.location) });
    } catch (error) {
      if (!(error instanceof LaneHeld)) throw error;
      await sleep(1_000, undefined, { signal: request.signal });
    }
  }
}

/** Writes a file again without these applications. Undefined if it holds none of them; null if it holds no others. */
async function writeWithout(
  { target, spool, crashPoint }: ErasePeopleDeps,
  { columns }: Manifest,
  file: ExtractFile,
  erased: ReadonlySet<unknown>,
  snapshotId: string,
  signal: AbortSignal,
): Promise<ExtractFile | null | undefined> {
  const bytes = await loadWhole(target, file.path, signal);
  if (bytes === null) throw new Trouble('local', `${file.path} of the extract is not there.`, { at: 'storage' });
  const rows = await readParquet(bytes);
  const others = rows.filter((row) => !erased.has(row.application_id));
  if (others.length === rows.length) return undefined;
  if (others.length === 0) return null;
  await using spooled = spool.open();
  const parquet = openParquet(spooled, columns[file.view] ?? [], { statistics: false });
  for (const row of others) parquet.add(row);
  await parquet.finish();
  const { body, facts } = await spooled.finish();
  const path = toFilePath(file, true, snapshotId);
  await target.put(path, body, facts, signal);
  crashPoint?.('extractPut');
  return { ...file, path, rows: others.length, bytes: facts.sizeBytes, sha256: facts.sha256 };
}

// Takes erased people out of the extracts at a target. Files of people's columns that hold one of them are written again without them, the
// manifest is published anew, and every earlier snapshot goes with its files, because it may hold them too. Anonymous files stay: they name
// nobody, and the next extract leaves the erased applications out.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore, Spool } from '../../domain/blob.ts';
import { type ExtractFile, type Manifest, toFilePath, toSnapshotId } from '../../domain/extract/manifest.ts';
import { LaneHeld, Trouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import { type HeldLane, holdLane, type LaneRequest } from '../accounts/held-lane.ts';
import { toLane } from './extract.ts';
import { openParquet, readParquet } from './parquet.ts';
import { type DeletedObjects, deleteUnused, loadPublished, loadWhole, publish } from './publish.ts';

export interface ErasePeopleDeps {
  readonly store: Pick<Store, 'blobStore' | 'extracts' | 'leases'>;
  readonly target: BlobStore;
  readonly spool: Spool;
}

export interface ErasePeopleRequest extends Omit<LaneRequest, 'name' | 'lane'> {
  readonly location: string;
  /** A snapshot was published there: a target without one is another folder under the same name. */
  readonly isPublished: boolean;
  readonly advertiserId: bigint;
  readonly applicationIds: readonly bigint[];
}

/** Returns the files of people's columns that were deleted. */
export async function erasePeople(deps: ErasePeopleDeps, request: ErasePeopleRequest): Promise<DeletedObjects> {
  const { store, target } = deps;
  await using lane = await awaitLane(store, request);
  const { signal } = lane;
  const { databaseId } = await store.blobStore.ensure();
  const { pointer, chain } = await loadPublished(target, databaseId, signal);
  const [latest] = chain;
  if (latest === undefined) {
    if (request.isPublished) throw new Trouble('local', explainAbsence(request.location), { at: 'storage' });
    // A killed extract may have left files.
    return toPeople(await deleteUnused(target, [], toSnapshotId(new Date(), null), signal));
  }
  const snapshotId = toSnapshotId(new Date(), latest.snapshot_id);
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
  if (isClean) return toPeople(await deleteUnused(target, chain, latest.snapshot_id, signal));
  const manifest: Manifest = {
    ...latest,
    snapshot_id: snapshotId,
    previous: null,
    files: latest.files.flatMap((file) => {
      const fresh = rewritten.get(file.path);
      return fresh === undefined ? [file] : fresh === null ? [] : [fresh];
    }),
  };
  await publish(target, manifest, pointer, { signal });
  return toPeople(await deleteUnused(target, [manifest], snapshotId, signal));
}

const toPeople = ({ deleted, keptVersions }: DeletedObjects) => {
  return { deleted: deleted.filter((path) => path.startsWith('people/')), keptVersions };
};

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
  { target, spool }: ErasePeopleDeps,
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
  return { ...file, path, rows: others.length, bytes: facts.sizeBytes, sha256: facts.sha256 };
}

// Extracts a snapshot: reads the views in one transaction, writes their rows as files of a target, publishes the manifest, and deletes what
// no kept snapshot needs. One process at a time writes to a target.
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import {
  type Changed,
  type ExtractColumn,
  type ExtractFile,
  isWrittenBy,
  type Manifest,
  planPartitions,
  toDivision,
  toManifestPath,
  toMonthRanges,
} from '../../domain/extract/manifest.ts';
import { LeaseLost, Trouble } from '../../domain/trouble.ts';
import type { Snapshot, SnapshotAdvertiser } from '../../store/extract.ts';
import type { Store } from '../../store/store.ts';
import { holdLane, type LaneHolder } from '../accounts/held-lane.ts';
import {
  deleteObjects,
  discardUnpublished,
  listPaths,
  listUnused,
  loadPublished,
  ownTarget,
  type Published,
  publish,
} from './publish.ts';
import { loadChunks, type WriteDeps, writeRows } from './write.ts';

export interface ExtractDeps extends WriteDeps {
  readonly store: Pick<Store, 'blobStore' | 'extracts' | 'leases'>;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface ExtractRequest extends LaneHolder {
  /** The target as a setting names it. */
  readonly location: string;
  /** Null: all anonymous ones. */
  readonly views: readonly string[] | null;
  readonly anonymousViews: readonly string[];
  readonly personalViews: readonly string[];
  readonly withPeople: boolean;
  /** Writes only the partitions that have changed since the snapshot before. */
  readonly sinceLast: boolean;
  /** How many snapshots stay. */
  readonly keep: number;
  readonly version: string;
}

export interface ExtractSummary {
  readonly manifest: Manifest;
  /** Files that this extract wrote; the others are those of an earlier snapshot. */
  readonly written: number;
  readonly deleted: number;
}

/** The lane of a target: extracts and erasures there exclude each other. The space keeps it apart from names of advertisers. */
export const toLane = (location: string) => ({ name: `extract ${location}`, lane: 'live' }) as const;

export async function extract(deps: ExtractDeps, request: ExtractRequest): Promise<ExtractSummary> {
  const { store, target } = deps;
  const { location, keep } = request;
  await using lane = await holdLane(store, { ...request, ...toLane(location) });
  const { signal } = lane;
  const published = await loadPublished(store, target, location, signal);
  const { pointer, chain, snapshotId } = published;
  await ownTarget(target, published, signal);
  let manifest: Manifest;
  try {
    manifest = await writeSnapshot(deps, { ...request, signal }, published);
    await publish(target, manifest, pointer, { signal, onManifest: () => deps.crashPoint?.('extractDescribed') });
  } catch (error) {
    if (error instanceof LeaseLost || signal.reason instanceof LeaseLost) {
      await discardUnpublished(target, snapshotId, AbortSignal.timeout(discardTimeoutMs)).catch(() => {});
    }
    throw error;
  }
  await store.extracts.recordPublished(location);
  deps.crashPoint?.('extractPublished');
  const kept = [manifest, ...chain].slice(0, keep);
  const unused = await listUnused(target, kept, snapshotId, signal);
  await deleteObjects(target, unused, signal);
  const written = manifest.files.filter(({ path }) => isWrittenBy(path, snapshotId)).length;
  return { manifest, written, deleted: unused.length };
}

/** The process may have been told to stop by then. */
const discardTimeoutMs = 10_000;

/** Writes the files of a snapshot, and describes them. */
async function writeSnapshot(
  deps: ExtractDeps,
  request: ExtractRequest,
  { databaseId, chain, snapshotId }: Published,
): Promise<Manifest> {
  const { store } = deps;
  const { location, withPeople } = request;
  const [last = null] = chain;
  const chosen = [...(request.views ?? request.anonymousViews), ...(withPeople ? request.personalViews : [])];
  const views = [...new Set(chosen)];
  // Before anything is read: an erasure that the snapshot does not show yet must find this target.
  await store.extracts.recordExtract(location, withPeople, snapshotId);
  return await store.extracts.withSnapshot(async (snapshot): Promise<Manifest> => {
    const columns = pickColumns(snapshot, views);
    const previous = request.sinceLast ? last : null;
    const files = await writeFiles(deps, snapshot, { ...request, snapshotId, columns, previous });
    deps.crashPoint?.('extractWritten');
    return {
      format: 1,
      snapshot_id: snapshotId,
      time: snapshot.at.toISOString(),
      version: request.version,
      database: databaseId,
      previous: last && toManifestPath(last.snapshot_id),
      with_people: withPeople,
      event_position: Object.fromEntries(
        snapshot.advertisers.map(({ advertiser_id, event_position }) => [advertiser_id, event_position]),
      ),
      advertisers: snapshot.advertisers.map(({ event_position: _, ...advertiser }) => advertiser),
      columns,
      files,
    };
  });
}

/** Publishes the last snapshot as this database's own, without event positions: the next one writes every file. False: there is none. */
export async function takeTarget(
  { store, target }: Pick<ExtractDeps, 'store' | 'target'>,
  request: LaneHolder & Pick<ExtractRequest, 'location'>,
): Promise<boolean> {
  const { location } = request;
  await using lane = await holdLane(store, { ...request, ...toLane(location) });
  const { signal } = lane;
  const published = await loadPublished(store, target, location, signal, { isTaken: true });
  const { databaseId, pointer, chain, snapshotId } = published;
  const [last] = chain;
  if (last === undefined && published.identity === null) return false;
  await ownTarget(target, published, signal);
  if (last === undefined) return true;
  const withPeople = chain.some((one) => one.with_people);
  await store.extracts.recordExtract(location, withPeople, snapshotId);
  const previous = toManifestPath(last.snapshot_id);
  const manifest = { ...last, snapshot_id: snapshotId, database: databaseId, previous, event_position: {} };
  await publish(target, manifest, pointer, { signal });
  await store.extracts.recordPublished(location);
  return true;
}

function pickColumns(snapshot: Snapshot, views: readonly string[]): Record<string, readonly ExtractColumn[]> {
  return Object.fromEntries(
    views.map((view) => {
      const columns = snapshot.columns.get(view);
      if (columns === undefined) throw new Trouble('local', `There is no view ${view} in this database.`);
      return [view, columns];
    }),
  );
}

/** Files of the previous snapshot may serve again; null: none. */
async function writeFiles(
  deps: ExtractDeps,
  snapshot: Snapshot,
  request: ExtractRequest & Pick<Manifest, 'columns'> & { snapshotId: string; previous: Manifest | null },
): Promise<ExtractFile[]> {
  const { previous, snapshotId, signal, personalViews, version } = request;
  // Somebody may have deleted files of the snapshot before.
  const present = await listPaths(deps.target, signal);
  const files: ExtractFile[] = [];
  const before = Map.groupBy(previous?.files ?? [], (file) => file.advertiser_id);
  const writeDeps = { ...deps, onPut: () => deps.crashPoint?.('extractPut') };
  for (const advertiser of snapshot.advertisers) {
    const advertiserId = BigInt(advertiser.advertiser_id);
    const published = before.get(advertiser.advertiser_id) ?? [];
    const earlier = published.filter(({ path }) => present.has(path));
    // Another version may define or divide a view in another way.
    const isUsable = previous?.version === version && earlier.length === published.length;
    const changed = isUsable ? await findChanged(snapshot, previous, advertiser, earlier) : null;
    for (const [view, columns] of Object.entries(request.columns)) {
      const division = toDivision(view, personalViews.includes(view));
      const isContinued = JSON.stringify(previous?.columns[view]) === JSON.stringify(columns);
      const { write, keep } = planPartitions(view, division, earlier, isContinued ? changed : null);
      const viewRequest = { view, columns, division, advertiserId, snapshotId, earlier, signal };
      const shown = [...keep, ...(await writeRows(writeDeps, viewRequest, loadChunks(snapshot, viewRequest, write)))];
      // Readers of a view of which there are no rows find its columns.
      const nothing = { partition: null, rows: [] };
      files.push(...(shown.length > 0 ? shown : await writeRows(writeDeps, viewRequest, [nothing])));
    }
  }
  return files;
}

/** Null where the snapshot before does not tell what has changed since: another name is in every row. */
async function findChanged(
  snapshot: Snapshot,
  previous: Manifest,
  { advertiser_id, name }: SnapshotAdvertiser,
  earlier: readonly ExtractFile[],
): Promise<Changed | null> {
  const known = previous.advertisers.some((one) => one.advertiser_id === advertiser_id && one.name === name);
  if (!known) return null;
  const position = BigInt(previous.event_position[advertiser_id] ?? 0);
  return await snapshot.loadChanged(BigInt(advertiser_id), {
    position,
    time: previous.time,
    ranges: toMonthRanges(earlier),
  });
}

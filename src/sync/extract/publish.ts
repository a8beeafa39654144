// What a reader of a target sees: `latest.json` names a manifest, the manifest names files that are all there. The manifest is written
// after its files and the pointer after the manifest, so a killed extract shows nothing of itself. What it left is deleted by the next one.
import { hash, randomUUID } from 'node:crypto';
import type { BlobStore } from '../../domain/blob.ts';
import {
  type ExtractFile,
  findUnused,
  folders,
  isWrittenBy,
  latestName,
  type Manifest,
  parseLatest,
  parseManifest,
  renderLatest,
  toManifestPath,
  toSnapshotId,
} from '../../domain/extract/manifest.ts';
import { isOwnId, parseIdentity, renderIdentity } from '../../domain/store-owner.ts';
import { isMissing, LeaseLost, Trouble, WrongStore } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';

export interface Published {
  readonly databaseId: string;
  /** The text that names the target's owner; null before anything was written there. */
  readonly identity: string | null;
  /** The snapshot that was begun there last, which a killed extract may have left files of; empty where none was. */
  readonly begunId: string;
  /** The text of the pointer; null before the first snapshot. */
  readonly pointer: string | null;
  /** The latest snapshot and those before it, newest first. */
  readonly chain: readonly Manifest[];
  /** The id of the next snapshot: greater than those of all that was published or begun. */
  readonly snapshotId: string;
}

/** What was published at a target, and begun. Throws if it is another database's, unless this one is about to take it. Needs its lane. */
export async function loadPublished(
  store: Pick<Store, 'blobStore' | 'extracts'>,
  target: BlobStore,
  location: string,
  signal: AbortSignal,
  { isTaken = false } = {},
): Promise<Published> {
  const { databaseId } = await store.blobStore.ensureRecordedStore();
  const begunId = (await store.extracts.findExtract(location))?.snapshot_id ?? '';
  const identity = await target.loadIdentity(signal);
  const pointer = await target.loadText(latestName, signal);
  const chain: Manifest[] = [];
  // Snapshots share most of their files, so memory grows with the files of the target, not with the snapshots that are kept.
  const known = new Map<string, ExtractFile>();
  for (let path = pointer === null ? null : parseLatest(pointer); path !== null; ) {
    const text = await loadWhole(target, path, signal);
    // Expired manifests are gone. The latest one must be there.
    if (text === null && chain.length > 0) break;
    if (text === null)
      throw new Trouble('local', `${latestName} names ${path}, which is not there.`, { at: 'storage' });
    const manifest = parseManifest(text.toString(), path);
    for (const file of manifest.files) if (!known.has(file.path)) known.set(file.path, file);
    chain.push({ ...manifest, files: manifest.files.map((file) => known.get(file.path) ?? file) });
    path = manifest.previous;
  }
  const owners = [parseIdentity(identity)?.databaseId, chain[0]?.database];
  const other = owners.find((owner) => owner !== undefined && !isOwnId(owner, databaseId));
  if (!isTaken && other !== undefined) {
    const whose = `${target.location} holds the extracts of the database ${other}; this is the database ${databaseId}.`;
    const next = 'To take its place there, run intake adopt-store with this target as EXTRACT_URL.';
    throw new WrongStore('local', `${whose} ${next}`, { at: 'storage' });
  }
  const ids = [begunId, chain[0]?.snapshot_id ?? ''].sort();
  return { databaseId, identity, begunId, pointer, chain, snapshotId: toSnapshotId(new Date(), ids.at(-1) ?? '') };
}

/** Names this database as the owner before anything else is written: a copy of it finds another one, an empty folder none. */
export async function ownTarget(
  target: BlobStore,
  { databaseId, identity }: Published,
  signal: AbortSignal,
): Promise<void> {
  const owner = parseIdentity(identity);
  if (owner?.databaseId === databaseId) return;
  const next = renderIdentity({ databaseId, epoch: (owner?.epoch ?? 0) + 1 }, randomUUID());
  if (!(await target.replaceIdentity(identity, next, signal))) throw toLost(target);
}

const toLost = ({ location }: BlobStore) => new LeaseLost(`the extract to ${location}`, 'live');

/** The bytes of an object; null if it is not there. */
export async function loadWhole(target: BlobStore, path: string, signal: AbortSignal): Promise<Buffer | null> {
  return await Array.fromAsync(target.get(path, signal)).then(Buffer.concat, (error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
}

/** Publishes a snapshot in place of the one `before` points to. Throws if another process has published: it deletes what this one wrote. */
export async function publish(
  target: BlobStore,
  manifest: Manifest,
  before: string | null,
  { signal, onManifest }: { readonly signal: AbortSignal; readonly onManifest?: (() => void) | undefined },
): Promise<void> {
  const path = toManifestPath(manifest.snapshot_id);
  const body = Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`);
  await target.put(path, body, { sizeBytes: body.length, sha256: hash('sha256', body) }, signal);
  onManifest?.();
  signal.throwIfAborted();
  if (await target.replaceText(latestName, before, renderLatest(path), signal)) return;
  throw toLost(target);
}

/** Objects of a target that no kept snapshot refers to. `known`: deleted earlier, but their versions may still be there. */
export async function listUnused(
  target: BlobStore,
  kept: readonly Manifest[],
  own: string,
  signal: AbortSignal,
  known: readonly string[] = [],
): Promise<string[]> {
  return findUnused([...(await listPaths(target, signal)).union(new Set(known))], kept, own);
}

/** The objects of all snapshots, kept or not. */
export async function listPaths(target: BlobStore, signal: AbortSignal): Promise<Set<string>> {
  const paths = new Set<string>();
  for (const folder of folders) for await (const { key } of target.list(folder, signal)) paths.add(key);
  return paths;
}

/** Deletes what a snapshot has not published: a process that lost its lane may have written people's files after an erasure had ended. */
export async function discardUnpublished(target: BlobStore, snapshotId: string, signal: AbortSignal): Promise<void> {
  if ((await target.loadText(latestName, signal)) === renderLatest(toManifestPath(snapshotId))) return;
  const written = [...(await listPaths(target, signal))].filter((path) => isWrittenBy(path, snapshotId));
  await deleteObjects(target, written, signal);
}

const deletesAtOnce = 10;

/** Deletes these objects with their versions. Returns how many versions the store does not let Intake delete. */
export async function deleteObjects(target: BlobStore, paths: readonly string[], signal: AbortSignal): Promise<number> {
  let kept = 0;
  for (let at = 0; at < paths.length; at += deletesAtOnce) {
    const some = paths.slice(at, at + deletesAtOnce);
    for (const { keptVersions, refusal } of await Promise.all(some.map((path) => target.delete(path, signal)))) {
      if (refusal) throw refusal;
      kept += keptVersions;
    }
  }
  return kept;
}

// The manifest of a snapshot: what an extract writes last, and what a reader reads first. Its members are published (docs/extract.md), so
// they are only ever added. Ids are text, because they may exceed 2^53. Also how rows are divided into files, and which files serve again.

import { Trouble } from '../trouble.ts';

export interface Manifest {
  readonly format: 1;
  readonly snapshot_id: string;
  /** When the snapshot was taken: every file shows the database as it was then. */
  readonly time: string;
  readonly version: string;
  /** The database that owns the target: no other one extracts there. */
  readonly database: string;
  /** The path of the manifest before this one; null for the first. */
  readonly previous: string | null;
  readonly with_people: boolean;
  /** By advertiser id, the last event that the snapshot includes: a consumer of intake.events continues after it. */
  readonly event_position: Readonly<Record<string, string>>;
  readonly advertisers: readonly ExtractedAdvertiser[];
  /** By view. */
  readonly columns: Readonly<Record<string, readonly ExtractColumn[]>>;
  readonly files: readonly ExtractFile[];
}

export interface ExtractedAdvertiser {
  readonly name: string;
  readonly advertiser_id: string;
  readonly certificate: string;
  readonly risk: string;
  readonly reason: string;
  readonly assumptions: string;
  readonly as_of: string | null;
  readonly complete_through: string | null;
  /** Ranges of ids that no proof covers; `to` null is unbounded. */
  readonly open_ranges: readonly { readonly from: string; readonly to: string | null }[];
  /** The last hash of each sweep behind the certificate, as SWEEP:HASH. */
  readonly evidence: readonly string[];
}

export interface ExtractColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** The column's place in the view, which never changes. */
  readonly field_id: number;
}

export type ScalarType = 'bigint' | 'integer' | 'boolean' | 'double' | 'date' | 'timestamp' | 'timestamptz' | 'text';
export type ColumnType = ScalarType | 'text[]';

export interface ExtractFile {
  /** Relative to the target. */
  readonly path: string;
  readonly view: string;
  readonly advertiser_id: string;
  /** A month of submission (2026-07, or `none`), a bucket of application ids (00 to 63), or null where the view is not divided. */
  readonly partition: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** The smallest and the largest application id; null where the view has none. */
  readonly min_id: string | null;
  readonly max_id: string | null;
}

/** The name of the pointer: the only object of a target that is ever replaced. */
export const latestName = 'latest.json';
export const renderLatest = (manifestPath: string) => JSON.stringify({ manifest: manifestPath });

export function parseLatest(text: string): string {
  return parse<{ manifest: string }>(text, latestName, ({ manifest }) => typeof manifest === 'string').manifest;
}

export function parseManifest(text: string, path: string): Manifest {
  return parse<Manifest>(text, path, ({ format, files, advertisers, columns }) => {
    return format === 1 && Array.isArray(files) && Array.isArray(advertisers) && typeof (columns ?? 0) === 'object';
  });
}

function parse<T>(text: string, path: string, isWhole: (value: Partial<T>) => boolean): T {
  let cause: unknown;
  try {
    const value = Object(JSON.parse(text)) as Partial<T>;
    if (isWhole(value)) return value as T;
  } catch (error) {
    cause = error;
  }
  const what = `${path} at the target of the extract cannot be read by this version. Nothing was written.`;
  throw new Trouble('local', what, { at: 'storage', cause });
}

/** The time, or just above `before` (the greatest id so far) where the clock was set back: a snapshot deletes only what has a smaller id. */
export function toSnapshotId(at: Date, before: string): string {
  const toId = (time: Date) => time.toISOString().replaceAll(/[-:.]/g, '');
  if (toId(at) > before) return toId(at);
  const last = before.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)(\d{3})Z$/, '$1-$2-$3:$4:$5.$6Z');
  return toId(new Date(new Date(last).getTime() + 1));
}

export const toManifestPath = (snapshotId: string) => `snapshots/${snapshotId}.json`;

/** People's columns lie in a folder of their own, so that access can be granted apart. The hash tells the files of a partition apart. */
export function toFilePath(
  { view, advertiser_id, partition, sha256 }: Omit<ExtractFile, 'path'>,
  isPersonal: boolean,
  snapshotId: string,
): string {
  const folder = [isPersonal ? 'people' : 'data', view, advertiser_id, ...(partition === null ? [] : [partition])];
  return `${folder.join('/')}/${snapshotId}-${sha256.slice(0, 8)}.parquet`;
}

/** The snapshot that wrote an object; null for a name that no extract gives. */
function toWriter(path: string): string | null {
  const name = /^(?:data|people)\/.+\/(\d{8}T\d{9}Z)(?:-\w{8})?\.parquet$|^snapshots\/(\d{8}T\d{9}Z)\.json$/.exec(path);
  return name?.[1] ?? name?.[2] ?? null;
}

/** The folders of a target that hold objects of snapshots, in the order of deletion: a manifest goes before its files. */
export const folders = ['snapshots/', 'data/', 'people/'] as const;

export const isWrittenBy = (path: string, snapshotId: string) => toWriter(path) === snapshotId;

/** Objects that no kept snapshot refers to: of killed extracts and of expired snapshots. Leaves all that a later snapshot has written. */
export function findUnused(paths: readonly string[], kept: readonly Manifest[], own: string): string[] {
  const used = new Set(kept.flatMap((one) => [toManifestPath(one.snapshot_id), ...one.files.map(({ path }) => path)]));
  return paths.filter((path) => {
    const writer = toWriter(path);
    return writer !== null && writer <= own && !used.has(path);
  });
}

/** By month of submission; by a hash of the application id, so that an erasure rewrites a 64th; or not at all. */
export type Division = 'month' | 'bucket' | 'none';

/** Views with a row per application, file, screen or answer. All others are summaries: small, and written whole every time. */
const monthly: readonly string[] = ['applications_anonymous', 'attachments', 'screening_outcomes', 'screening_answers'];

export function toDivision(view: string, isPersonal: boolean): Division {
  if (isPersonal) return 'bucket';
  return monthly.includes(view) ? 'month' : 'none';
}

/** Which partitions of an advertiser have changed since the snapshot before. */
export type Changed = Readonly<Record<Exclude<Division, 'none'>, readonly string[]>>;

/** The partitions to write, and the files of the snapshot before that stay. `changed`, `write` null: all partitions. */
export function planPartitions(
  view: string,
  division: Division,
  earlier: readonly ExtractFile[],
  changed: Changed | null,
): { readonly write: readonly string[] | null; readonly keep: readonly ExtractFile[] } {
  if (changed === null || division === 'none') return { write: null, keep: [] };
  const write = changed[division];
  const isKept = ({ partition }: ExtractFile) => partition !== null && !write.includes(partition);
  return { write, keep: earlier.filter((file) => file.view === view && isKept(file)) };
}

/** The ids of each month in earlier files: an application that is erased, or has another time now, was in a month whose range holds it. */
export function toMonthRanges(files: readonly ExtractFile[]): { month: string; low: bigint; high: bigint }[] {
  const ranges = new Map<string, { month: string; low: bigint; high: bigint }>();
  for (const { view, partition, min_id, max_id } of files) {
    if (!monthly.includes(view) || partition === null || min_id === null || max_id === null) continue;
    const [low, high] = [BigInt(min_id), BigInt(max_id)];
    const range = ranges.get(partition) ?? { month: partition, low, high };
    if (low < range.low) range.low = low;
    if (high > range.high) range.high = high;
    ranges.set(partition, range);
  }
  return [...ranges.values()];
}

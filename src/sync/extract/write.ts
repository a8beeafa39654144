// Writes the rows of one view and advertiser as files of a target: one for each partition. A file is encoded into the spool first, because
// a store takes bytes of known size and hash.
import type { BlobFacts, BlobStore, Spool } from '../../domain/blob.ts';
import { type ExtractColumn, type ExtractFile, toFilePath } from '../../domain/extract/manifest.ts';
import type { Division } from '../../domain/extract/partitions.ts';
import type { Snapshot } from '../../store/extract.ts';
import type { Row } from '../../store/postgres/database.ts';
import { openParquet } from './parquet.ts';

export interface WriteDeps {
  readonly target: BlobStore;
  readonly spool: Spool;
  /** Called after each batch with the rows that it added. */
  readonly onRows?: ((view: string, rows: number) => void) | undefined;
  /** Called when an object has been written. */
  readonly onPut?: (() => void) | undefined;
}

export interface ViewRequest {
  readonly view: string;
  readonly columns: readonly ExtractColumn[];
  readonly division: Division;
  readonly advertiserId: bigint;
  readonly snapshotId: string;
  /** The partitions to write; null is all. */
  readonly partitions: readonly string[] | null;
  /** Files of the snapshot before: one with equal bytes serves again. */
  readonly earlier: readonly ExtractFile[];
  readonly signal: AbortSignal;
}

/** A source of rows for one file. */
interface Part {
  readonly partition: string | null;
  readonly batches: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>;
}

export async function writeView(deps: WriteDeps, snapshot: Snapshot, request: ViewRequest): Promise<ExtractFile[]> {
  const files: ExtractFile[] = [];
  for await (const part of findParts(snapshot, request)) {
    const file = await writePart(deps, request, part);
    // The month has lost its last application, or this view knows nothing of it.
    if (file.rows > 0 || file.partition === null) files.push(file);
  }
  return files;
}

async function* findParts(
  snapshot: Snapshot,
  { view, division, advertiserId, partitions }: ViewRequest,
): AsyncGenerator<Part> {
  if (division === 'none') {
    yield { partition: null, batches: snapshot.loadRows(view, advertiserId, { by: 'none' }) };
    return;
  }
  if (division === 'month') {
    for (const month of partitions ?? (await snapshot.loadMonths(advertiserId))) {
      yield { partition: month, batches: snapshot.loadRows(view, advertiserId, { by: 'month', month }) };
    }
    return;
  }
  yield* byBucket(snapshot.loadRows(view, advertiserId, { by: 'bucket', buckets: partitions }));
}

/** A file without rows, for a view of which there are none: readers find its columns. */
export async function writeEmpty(deps: WriteDeps, request: ViewRequest): Promise<ExtractFile> {
  return await writePart(deps, request, { partition: null, batches: [] });
}

/** Splits rows that come bucket by bucket. Each part must be read to its end before the next one is requested. */
async function* byBucket(batches: AsyncIterable<readonly Row[]>): AsyncGenerator<Part> {
  const source = batches[Symbol.asyncIterator]();
  let rest: readonly Row[] = [];
  const refill = async () => {
    while (rest.length === 0) {
      const { done, value } = await source.next();
      if (done) return false;
      rest = value;
    }
    return true;
  };
  async function* take(bucket: unknown): AsyncGenerator<readonly Row[]> {
    while (await refill()) {
      const end = rest.findIndex((row) => row.bucket !== bucket);
      const own = end === -1 ? rest : rest.slice(0, end);
      rest = end === -1 ? [] : rest.slice(end);
      if (own.length > 0) yield own;
      if (rest.length > 0) return;
    }
  }
  try {
    while (await refill()) {
      const bucket = String(rest[0]?.bucket);
      yield { partition: bucket, batches: take(bucket) };
    }
  } finally {
    await source.return?.();
  }
}

/** Writes one file. A month without rows has none. */
export async function writePart(
  deps: WriteDeps,
  request: Omit<ViewRequest, 'partitions'>,
  { partition, batches }: Part,
): Promise<ExtractFile> {
  const { view, columns, division, snapshotId, earlier, signal } = request;
  await using spooled = deps.spool.open();
  const parquet = openParquet(spooled, columns, { statistics: division !== 'bucket' });
  const ids = trackIds();
  for await (const rows of batches) {
    signal.throwIfAborted();
    for (const row of rows) ids.add(row.application_id);
    await parquet.write(rows);
    deps.onRows?.(view, rows.length);
  }
  await parquet.finish();
  const { body, facts } = await spooled.finish();
  const named = { view, advertiser_id: String(request.advertiserId), partition };
  const described = { ...named, rows: parquet.rows, ...toSizes(facts), ...ids.range() };
  const same = earlier.find(
    (file) => file.view === view && file.partition === partition && file.sha256 === facts.sha256,
  );
  if (same) return { path: same.path, ...described };
  const path = toFilePath(named, division === 'bucket', snapshotId);
  if (parquet.rows > 0 || division !== 'month' || partition === null) {
    await deps.target.put(path, body, facts, signal);
    deps.onPut?.();
  }
  return { path, ...described };
}

const toSizes = ({ sizeBytes, sha256 }: BlobFacts) => ({ bytes: sizeBytes, sha256 });

function trackIds() {
  let low: bigint | null = null;
  let high: bigint | null = null;
  return {
    add(id: unknown) {
      if (typeof id !== 'bigint') return;
      if (low === null || id < low) low = id;
      if (high === null || id > high) high = id;
    },
    range: () => ({ min_id: low?.toString() ?? null, max_id: high?.toString() ?? null }),
  };
}

// Writes the rows of one view and advertiser as files of a target, by partition. A file is encoded into the spool first, because
// a store takes bytes of known size and hash.
import type { BlobStore, Spool, Spooled } from '../../domain/blob.ts';
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

/** A source of rows for the files of one partition. */
interface Part {
  readonly partition: string | null;
  readonly batches: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>;
}

export async function writeView(deps: WriteDeps, snapshot: Snapshot, request: ViewRequest): Promise<ExtractFile[]> {
  const files: ExtractFile[] = [];
  for await (const part of findParts(snapshot, request)) files.push(...(await writePart(deps, request, part)));
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

/**
 * Most batches of a file, each of which becomes a row group: 200,000 rows. What a footer says of them stays in memory until the file ends
 * (20 kB for a row group of 19 columns, measured), so without a limit the memory would grow with the account.
 */
const mostGroups = 100;

/** A file with long texts ends here: an erasure reads files of people's columns whole. */
const fullFileBytes = 32 * 1024 * 1024;

/** Writes the files of a partition. A month without rows has none. */
export async function writePart(
  deps: WriteDeps,
  request: Omit<ViewRequest, 'partitions'>,
  { partition, batches }: Part,
): Promise<ExtractFile[]> {
  const source = iterate(batches);
  let next = await source.next();
  async function* takeGroups(into: Spooled): AsyncGenerator<readonly Row[]> {
    for (let groups = 0; groups < mostGroups && into.sizeBytes < fullFileBytes && !next.done; groups++) {
      yield next.value;
      next = await source.next();
    }
  }
  const files: ExtractFile[] = [];
  try {
    if (next.done && request.division === 'month' && partition !== null) return [];
    do {
      await using spooled = deps.spool.open();
      files.push(await writeFile(deps, request, partition, spooled, takeGroups(spooled)));
    } while (!next.done);
    return files;
  } finally {
    await source.return();
  }
}

async function* iterate(batches: Part['batches']): AsyncGenerator<readonly Row[], void> {
  yield* batches;
}

async function writeFile(
  deps: WriteDeps,
  request: Omit<ViewRequest, 'partitions'>,
  partition: string | null,
  spooled: Spooled,
  batches: AsyncIterable<readonly Row[]>,
): Promise<ExtractFile> {
  const { view, columns, division, snapshotId, earlier, signal } = request;
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
  const file = {
    ...{ view, advertiser_id: String(request.advertiserId), partition },
    ...{ rows: parquet.rows, bytes: facts.sizeBytes, sha256: facts.sha256, ...ids.range() },
  };
  const same = earlier.find((one) => one.view === view && one.partition === partition && one.sha256 === file.sha256);
  if (same) return { path: same.path, ...file };
  const path = toFilePath(file, division === 'bucket', snapshotId);
  await deps.target.put(path, body, facts, signal);
  deps.onPut?.();
  return { path, ...file };
}

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

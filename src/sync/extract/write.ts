// Writes the rows of one view and advertiser as files of a target, by partition; a store takes bytes of known size and hash.
import type { BlobStore, Spool } from '../../domain/blob.ts';
import type { Division } from '../../domain/extract/manifest.ts';
import { type ExtractColumn, type ExtractFile, toFilePath } from '../../domain/extract/manifest.ts';
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
  /** Files of the snapshot before: one with equal bytes serves again. */
  readonly earlier: readonly ExtractFile[];
  readonly signal: AbortSignal;
}

/** Rows of one partition. */
export interface Chunk {
  readonly partition: string | null;
  readonly rows: readonly Row[];
}

/** The rows of a view, one partition after the other; `partitions` null is all. */
export async function* loadChunks(
  snapshot: Snapshot,
  { view, division, advertiserId }: ViewRequest,
  partitions: readonly string[] | null,
): AsyncGenerator<Chunk> {
  if (division === 'none') {
    for await (const rows of snapshot.loadRows(view, advertiserId, { by: 'none' })) yield { partition: null, rows };
  } else if (division === 'bucket') {
    for await (const rows of snapshot.loadRows(view, advertiserId, { by: 'bucket', buckets: partitions })) {
      for (const [partition, some] of Map.groupBy(rows, ({ bucket }) => String(bucket)))
        yield { partition, rows: some };
    }
  } else {
    for (const month of partitions ?? (await snapshot.loadMonths(advertiserId))) {
      const found = snapshot.loadRows(view, advertiserId, { by: 'month', month });
      for await (const rows of found) yield { partition: month, rows };
    }
  }
}

/** Each chunk becomes a row group of a file; what its footer says of one stays in memory (20 kB for 19 columns, measured). */
const mostGroups = 100;

/** A file with long texts ends here: an erasure reads files of people's columns whole. */
const fullFileBytes = 32 * 1024 * 1024;

/** Writes the rows as files. A partition without a chunk has none. */
export async function writeRows(
  deps: WriteDeps,
  request: ViewRequest,
  chunks: AsyncIterable<Chunk> | Iterable<Chunk>,
): Promise<ExtractFile[]> {
  const files: ExtractFile[] = [];
  let file: ReturnType<typeof openFile> | null = null;
  try {
    for await (const { partition, rows } of chunks) {
      request.signal.throwIfAborted();
      if (file !== null && (file.partition !== partition || file.isFull())) {
        files.push(await file.finish());
        file = null;
      }
      file ??= openFile(deps, request, partition);
      await file.write(rows);
    }
    if (file !== null) files.push(await file.finish());
    return files;
  } finally {
    await file?.[Symbol.asyncDispose]();
  }
}

function openFile(deps: WriteDeps, request: ViewRequest, partition: string | null) {
  const { view, columns, division, snapshotId, earlier, signal } = request;
  const spooled = deps.spool.open();
  const parquet = openParquet(spooled, columns, { statistics: division !== 'bucket' });
  let groups = 0;
  let low: bigint | null = null;
  let high: bigint | null = null;
  return {
    partition,
    isFull: () => groups >= mostGroups || spooled.sizeBytes >= fullFileBytes,
    async write(rows: readonly Row[]): Promise<void> {
      groups++;
      for (const { application_id: id } of rows) {
        if (typeof id !== 'bigint') continue;
        if (low === null || id < low) low = id;
        if (high === null || id > high) high = id;
      }
      await parquet.write(rows);
      deps.onRows?.(view, rows.length);
    },
    async finish(): Promise<ExtractFile> {
      await parquet.finish();
      await using _bytes = spooled;
      const { body, facts } = await spooled.finish();
      const file = {
        ...{ view, advertiser_id: String(request.advertiserId), partition, rows: parquet.rows },
        ...{ bytes: facts.sizeBytes, sha256: facts.sha256 },
        ...{ min_id: low?.toString() ?? null, max_id: high?.toString() ?? null },
      };
      const same = earlier.find(
        (one) => one.view === view && one.partition === partition && one.sha256 === file.sha256,
      );
      if (same) return { path: same.path, ...file };
      const path = toFilePath(file, division === 'bucket', snapshotId);
      await deps.target.put(path, body, facts, signal);
      deps.onPut?.();
      return { path, ...file };
    },
    [Symbol.asyncDispose]: () => spooled[Symbol.asyncDispose](),
  };
}

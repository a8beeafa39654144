// Encodes rows as one Parquet file, into a spool. Memory holds one batch of rows, which becomes a row group.
import { type AsyncBuffer, parquetMetadata, parquetReadObjects, type SchemaElement } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { Spooled } from '../../domain/blob.ts';
import type { ExtractColumn, ScalarType } from '../../domain/extract/manifest.ts';

/** Values as Parquet holds them: times are microseconds, dates are days since 1970. */
export type ParquetRow = Readonly<Record<string, unknown>>;

const elements: Readonly<Record<ScalarType, Partial<SchemaElement>>> = {
  bigint: { type: 'INT64' },
  integer: { type: 'INT32' },
  boolean: { type: 'BOOLEAN' },
  double: { type: 'DOUBLE' },
  date: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
  timestamp: { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MICROS' } },
  timestamptz: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
};

/** Field ids are kept, so that a table format over the same files can rename columns later. */
function toSchema(columns: readonly ExtractColumn[]): SchemaElement[] {
  const fields = columns.flatMap(({ name, type, field_id }): SchemaElement[] => {
    const repetition_type = 'OPTIONAL';
    if (type !== 'text[]') return [{ name, repetition_type, field_id, ...elements[type] }];
    return [
      { name, repetition_type, field_id, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', repetition_type, ...elements.text },
    ];
  });
  return [{ name: 'root', num_children: columns.length }, ...fields];
}

/** Collects the bytes of a row group, and hands them to the spool. */
class SpoolWriter extends ByteWriter {
  readonly #spooled: Spooled;

  constructor(spooled: Spooled) {
    super();
    this.#spooled = spooled;
  }

  async flush(): Promise<void> {
    const bytes = this.getBytes().slice();
    this.index = 0;
    await this.#spooled.write(bytes);
  }

  override finish(): void {}

  /** In a file without rows, hyparquet-writer does not type the list of row groups, and readers in Rust refuse it: types it as structs. */
  typeNoGroups(): void {
    const bytes = this.getBytes();
    const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).lastIndexOf(noGroups);
    if (at !== -1) bytes[at + noGroups.length - 1] = 0x0c;
  }
}

/** In Thrift's compact protocol: no rows (field 3), then a list (field 4) of nothing, without a type. */
const noGroups = Buffer.from([0x16, 0x00, 0x19, 0x00]);

/** Beyond U+FFFF, hyparquet-writer compares UTF-16 and Parquet bytes: by such statistics, readers would skip rows that they look for. */
const surrogate = /[\ud800-\udfff]/;

/** Begins a file. By statistics (the least and greatest values of a column) readers skip rows; of people's columns they would be names. */
export function openParquet(
  spooled: Spooled,
  columns: readonly ExtractColumn[],
  { statistics }: { readonly statistics: boolean },
) {
  const writer = new SpoolWriter(spooled);
  const parquet = new ParquetWriter({ writer, schema: toSchema(columns), statistics });
  const texts = columns.filter(({ type }) => type.startsWith('text'));
  let rows = 0;
  return {
    get rows() {
      return rows;
    },
    async write(batch: readonly ParquetRow[]): Promise<void> {
      if (batch.length === 0) return;
      rows += batch.length;
      parquet.statistics = statistics && !batch.some((row) => texts.some(({ name }) => surrogate.test(`${row[name]}`)));
      const columnData = columns.map(({ name }) => ({ name, data: batch.map((row) => row[name] ?? null) }));
      await parquet.write({ columnData, rowGroupSize: batch.length });
    },
    async finish(): Promise<void> {
      await parquet.finish();
      if (rows === 0) writer.typeNoGroups();
      await writer.flush();
    },
  };
}

/** The rows of a file in memory, group by group, with the values that `openParquet` takes. */
export async function* readParquet(bytes: Uint8Array): AsyncGenerator<ParquetRow[]> {
  const { buffer, byteOffset, byteLength } = bytes;
  const whole = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  const file: AsyncBuffer = { byteLength, slice: (start, end) => whole.slice(start, end) };
  const same = <T>(value: T) => value;
  const parsers = { timestampFromMicroseconds: same, dateFromDays: same };
  const metadata = parquetMetadata(whole);
  let rowStart = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows);
    yield await parquetReadObjects({ file, metadata, parsers, rowStart, rowEnd });
    rowStart = rowEnd;
  }
}

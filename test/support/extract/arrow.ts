// Reads an extract with another implementation than DuckDB's: parquet-wasm, which is Rust's arrow and parquet. It hands over Arrow, and
// flechette turns that into values.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Table, tableFromIPC } from '@uwdata/flechette';
import { readParquet } from 'parquet-wasm';
import type { ColumnType, Manifest } from '../../../src/domain/extract/manifest.ts';

/** The files of a view, each as a table. Integers of 64 bits are BigInts; times are milliseconds with a fraction. */
export function openTables(folder: string, { files }: Manifest, view: string): Table[] {
  return files.filter((file) => file.view === view).map(({ path }) => openTable(join(folder, path)));
}

export function openTable(path: string): Table {
  return tableFromIPC(readParquet(readFileSync(path)).intoIPCStream(), { useBigInt: true });
}

/** Every row of a view, in the texts of `inPostgres`. */
export function readTexts(folder: string, manifest: Manifest, view: string): (string | null)[][] {
  const columns = manifest.columns[view] ?? [];
  return openTables(folder, manifest, view)
    .flatMap((table) => table.toArray() as Record<string, unknown>[])
    .map((row) => columns.map(({ name, type }) => (row[name] === null ? null : inArrow[type](row[name]))));
}

const toTime = (ms: unknown) => {
  const micros = Math.round(Number(ms) * 1_000);
  const rest = String(((micros % 1_000_000) + 1_000_000) % 1_000_000).padStart(6, '0');
  const seconds = new Date(Math.floor(micros / 1_000_000) * 1_000).toISOString();
  return `${seconds.slice(0, 19).replace('T', ' ')}.${rest}`;
};

const inArrow: Record<ColumnType, (value: unknown) => string> = {
  bigint: String,
  integer: String,
  boolean: String,
  double: (value) => (value as number).toFixed(6),
  date: (ms) => new Date(ms as number).toISOString().slice(0, 10),
  timestamp: toTime,
  timestamptz: toTime,
  text: (value) => value as string,
  'text[]': (value) => [...(value as Iterable<string | null>)].filter((one) => one !== null).join(' '),
};

// Reads an extract with DuckDB, as an analyst would: a view for each view of intake_analytics, over the files that the manifest names.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import type { ColumnType, Manifest } from '../../../src/domain/extract/manifest.ts';

export interface Duck extends Disposable {
  /** The rows of a query, every value as DuckDB writes it. */
  query(sql: string): Promise<{ columns: string[]; rows: (string | null)[][] }>;
}

/** The manifest that `latest.json` of a folder names. */
export function loadLatest(folder: string): Manifest {
  const { manifest } = JSON.parse(readFileSync(join(folder, 'latest.json'), 'utf8')) as { manifest: string };
  return JSON.parse(readFileSync(join(folder, manifest), 'utf8')) as Manifest;
}

export async function openDuck(folder: string, { files, columns }: Pick<Manifest, 'files' | 'columns'>): Promise<Duck> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run(`SET TimeZone = 'UTC'; CREATE SCHEMA IF NOT EXISTS intake_analytics`);
  for (const view of Object.keys(columns)) {
    const paths = files.filter((file) => file.view === view).map(({ path }) => `'${join(folder, path)}'`);
    await connection.run(`CREATE VIEW intake_analytics.${view} AS SELECT * FROM read_parquet([${paths.join()}])`);
  }
  return {
    async query(sql) {
      const reader = await connection.runAndReadAll(sql);
      const rows = reader.getRows().map((row) => row.map((value) => (value === null ? null : String(value))));
      return { columns: reader.columnNames(), rows };
    },
    [Symbol.dispose]() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** A column as text that means the same in both databases, without the expressions of the extract. */
export const inDuck: Record<ColumnType, (name: string) => string> = {
  bigint: (name) => `${name}::VARCHAR`,
  integer: (name) => `${name}::VARCHAR`,
  boolean: (name) => `${name}::VARCHAR`,
  double: (name) => `printf('%.6f', ${name})`,
  date: (name) => `strftime(${name}, '%Y-%m-%d')`,
  timestamp: (name) => `strftime(${name}, '%Y-%m-%d %H:%M:%S.%f')`,
  timestamptz: (name) => `strftime(${name} AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f')`,
  text: (name) => name,
  'text[]': (name) => `array_to_string(${name}, ' ')`,
};

export const inPostgres: Record<ColumnType, (name: string) => string> = {
  bigint: (name) => `${name}::text`,
  integer: (name) => `${name}::text`,
  boolean: (name) => `${name}::text`,
  double: (name) => `round(${name}, 6)::numeric(30, 6)::text`,
  date: (name) => `to_char(${name}, 'YYYY-MM-DD')`,
  timestamp: (name) => `to_char(${name}, 'YYYY-MM-DD HH24:MI:SS.US')`,
  timestamptz: (name) => `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')`,
  text: (name) => `${name}::text`,
  'text[]': (name) => `array_to_string(${name}, ' ')`,
};

// Runs `intake extract` into a folder, and compares every row of it with Postgres.
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Manifest } from '../../../src/domain/extract/manifest.ts';
import { type TestDatabase, test } from '../database/test-database.ts';
import { callIntake } from '../processes/intake.ts';
import { testPrivacyKey } from '../processes/syncing.ts';
import { openScratch } from '../stores/blob-stores.ts';
import { readTexts } from './arrow.ts';
import { inDuck, inPostgres, loadLatest, openDuck } from './duck.ts';

/** `test` with a folder to extract to. */
// biome-ignore lint/correctness/noEmptyPattern: vitest reads a fixture's dependencies from the pattern; this one has none.
export const extractTest = test.extend('target', async ({}, { onCleanup }) => {
  const scratch = await openScratch();
  onCleanup(() => scratch[Symbol.asyncDispose]());
  return scratch.path;
});

/** Extracts, and returns the manifest that the command tells. */
export async function extract(database: TestDatabase, folder: string, ...more: string[]): Promise<Manifest> {
  const env = { DATABASE_URL: database.url, PRIVACY_KEY: testPrivacyKey };
  const { code, stdout, stderr } = await callIntake(['extract', '--to', `file:${folder}`, '--json', ...more], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Manifest;
}

/** The latest snapshot of a folder. Fails unless each of its files is there, whole. */
export function readWhole(folder: string): Manifest {
  const manifest = loadLatest(folder);
  for (const { path, sha256 } of manifest.files) {
    expect(hash('sha256', readFileSync(join(folder, path))), path).toBe(sha256);
  }
  return manifest;
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Every row of every view of the manifest, in Postgres and in two readers of Parquet that share no code. */
export async function compareRows(database: TestDatabase, folder: string, manifest: Manifest): Promise<void> {
  using duck = await openDuck(folder, manifest);
  for (const [view, columns] of Object.entries(manifest.columns)) {
    const select = (texts: typeof inDuck) =>
      columns.map(({ name, type }) => `${texts[type](`"${name}"`)} AS "${name}"`).join();
    const read = await duck.query(`SELECT ${select(inDuck)} FROM intake_analytics.${view}`);
    const stored = await database.query<Record<string, string | null>>(
      `SELECT ${select(inPostgres)} FROM intake_analytics.${view} WHERE advertiser_id IS NOT NULL`,
    );
    const expected = stored.map((row) => JSON.stringify(columns.map(({ name }) => row[name] ?? null)));
    expected.sort(byText);
    const readers = { duckdb: read.rows, arrow: readTexts(folder, manifest, view) };
    for (const [reader, found] of Object.entries(readers)) {
      const rows = found.map((row) => JSON.stringify(row)).sort(byText);
      expect({ view, reader, rows }).toEqual({ view, reader, rows: expected });
    }
  }
}

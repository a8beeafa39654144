// Whether a copy is complete: the ids in which it differs are found by three statements, in DuckDB over the extract and in Postgres.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Manifest } from '../../../src/domain/extract/manifest.ts';
import { test as base, type TestDatabase } from '../../support/database/test-database.ts';
import { type Duck, openDuck } from '../../support/extract/duck.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

const ids = Array.from({ length: 3_000 }, (_, nth) => BigInt(nth + 1) * 1_301n + (nth > 2_000 ? 2n ** 53n : 0n));

/** Applications as pages leave them, of two advertisers, with ids beyond 2^53, and texts and times that engines write differently. */
const test = base
  .extend('filled', { scope: 'file' }, async ({ database }) => {
    await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('one', 1), ('two', 2)`);
    await database.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, job_reference, raw, content_hash, observed_seq, first_seen_at, changed_at)
       SELECT 1 + nth % 2, id, CASE WHEN nth % 7 > 0 THEN timestamptz '2026-01-01 00:00:00.123456+11' + nth * interval '3 hours' END,
         CASE nth % 3 WHEN 0 THEN 'Ελληνικά|' || nth WHEN 1 THEN 'REQ-' || nth END, '{}', '', 1, now(), timestamptz '2026-02-01 00:00:00.000001+00' + nth * interval '1 second'
       FROM unnest($1::bigint[]) WITH ORDINALITY AS given (id, nth)`,
      [ids],
    );
    return true;
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads a fixture's dependencies from the pattern; this one has none.
  .extend('folder', async ({}, { onCleanup }) => {
    const scratch = await openScratch();
    onCleanup(() => scratch[Symbol.asyncDispose]());
    return scratch.path;
  });

const toEnv = (database: TestDatabase) => ({ DATABASE_URL: database.url, PRIVACY_KEY: testPrivacyKey });

interface Compared {
  readonly equal: boolean;
  readonly statement: string | null;
  readonly missing: readonly { applicationId: string }[];
  readonly changed: readonly { applicationId: string }[];
  readonly extra: readonly { applicationId: string }[];
}

/** Compares step by step until nothing is left to narrow down; returns the last result and the number of statements. */
async function narrow(
  database: TestDatabase,
  folder: string,
  args: readonly string[],
  run: (sql: string) => Promise<string>,
) {
  const first = await callIntake(['compare', ...args], toEnv(database));
  let statement: string | null = first.stdout;
  for (let statements = 1; ; statements++) {
    const file = join(folder, `answer-${statements}`);
    writeFileSync(file, await run(statement ?? ''));
    const { stdout, code } = await callIntake(['compare', ...args, '--with', file, '--json'], toEnv(database));
    const result = JSON.parse(stdout) as Compared;
    expect(code).toBe(result.equal ? 0 : 3);
    statement = result.statement;
    if (statement === null) return { statements, result };
  }
}

const asCsv = ({ columns, rows }: Awaited<ReturnType<Duck['query']>>) =>
  [columns, ...rows].map((row) => row.join()).join('\n');
const toCsv = (rows: readonly object[]) =>
  asCsv({ columns: Object.keys(rows[0] ?? {}), rows: rows.map(Object.values) });
const toIds = (some: readonly { applicationId: string }[]) => some.map(({ applicationId }) => applicationId);
const inOrder = (some: readonly bigint[]) => some.toSorted((a, b) => Number(a - b)).map(String);

test('ten missing or changed applications are found by three statements', async ({ database, filled: _, folder }) => {
  const { stdout } = await callIntake(
    ['extract', '--to', `file:${folder}`, '--views', 'applications_anonymous', '--json'],
    toEnv(database),
  );
  using duck = await openDuck(folder, JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Manifest);
  await duck.query('CREATE TABLE copy AS SELECT * FROM intake_analytics.applications_anonymous');
  const args = ['--sql', 'duckdb', '--table', 'copy'];
  const run = async (sql: string) => asCsv(await duck.query(sql));
  expect(await narrow(database, folder, args, run)).toMatchObject({ statements: 1, result: { equal: true } });

  const missing = [ids[3], ids[700], ids[701], ids[2_100], ids[2_999]].map((id) => id ?? 0n);
  const changed = [ids[0], ids[9], ids[1_500], ids[2_500], ids[2_600]].map((id) => id ?? 0n);
  await duck.query(`DELETE FROM copy WHERE application_id IN (${missing.join()})`);
  await duck.query(`UPDATE copy SET job_reference = 'another' WHERE application_id IN (${changed.slice(0, 2).join()})`);
  await duck.query(`UPDATE copy SET submitted_at = '1999-01-01' WHERE application_id IN (${changed.slice(2).join()})`);
  const found = await narrow(database, folder, args, run);
  expect({ ...found, result: { ...found.result, ranges: [] } }).toEqual({
    statements: 3,
    result: expect.objectContaining({ equal: false }),
  });
  expect(toIds(found.result.missing).toSorted(byNumber)).toEqual(inOrder(missing));
  expect(toIds(found.result.changed).toSorted(byNumber)).toEqual(inOrder(changed));
  expect(found.result.extra).toEqual([]);
});

const byNumber = (a: string, b: string) => Number(BigInt(a) - BigInt(b));

test('a table in Postgres is compared by the same fingerprints', async ({ database, filled: _, folder }) => {
  await database.query(
    'CREATE SCHEMA ats; CREATE TABLE ats.copy AS SELECT * FROM intake_analytics.applications_anonymous',
  );
  await database.query(`DELETE FROM ats.copy WHERE application_id = ${ids[42]}`);
  await database.query(`UPDATE ats.copy SET application_id = 5 WHERE application_id = ${ids[43]}`);
  const args = ['--sql', 'postgres', '--table', 'ats.copy'];
  const { statements, result } = await narrow(database, folder, args, async (sql) => toCsv(await database.query(sql)));
  expect(statements).toBe(3);
  expect([toIds(result.missing).toSorted(byNumber), toIds(result.extra), toIds(result.changed)]).toEqual([
    inOrder([ids[42] ?? 0n, ids[43] ?? 0n]),
    ['5'],
    [],
  ]);
  await database.query('DROP SCHEMA ats CASCADE');
});

test('the view of fingerprints has those of the first statement', async ({ database, filled: _, folder }) => {
  const file = join(folder, 'view');
  const seen = await database.query(
    `SELECT 1 AS step, 65536 AS width, advertiser_id, from_id, applications, fingerprint FROM intake_analytics.fingerprints`,
  );
  expect(seen.length).toBeGreaterThan(50);
  writeFileSync(file, toCsv(seen));
  expect(await callIntake(['compare', '--with', file], toEnv(database))).toMatchObject({ code: 0 });
  writeFileSync(file, toCsv(seen.slice(1)));
  expect(await callIntake(['compare', '--with', file], toEnv(database))).toMatchObject({ code: 3 });
});

test('an answer that no statement gave is refused', async ({ database, filled: _, folder }) => {
  const file = join(folder, 'answer');
  writeFileSync(file, 'id,name\n1,x\n');
  expect(await callIntake(['compare', '--with', file], toEnv(database))).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('it is not the result'),
  });
});

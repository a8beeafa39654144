// Every statement of the product, prepared on a migrated database: a wrong table, column, type or operator is found without a test that
// happens to run the statement.
import { expect } from 'vitest';
import { loadQueryCalls, type QueryCall } from '../support/sql-texts.ts';
import { test } from '../support/test-database.ts';

/** Calls whose text depends on more than the source, each with the reason and with texts that stand for it. */
const samples: readonly { file: string; written: RegExp; reason: string; texts: readonly string[] }[] = [
  {
    file: 'src/app.ts',
    written: /^sql$/,
    reason: 'the output of `intake grants`, which roles.test.ts runs',
    texts: [],
  },
  {
    file: 'src/store/postgres/copy.ts',
    written: /^query$/,
    reason: 'a COPY, whose columns are type-checked',
    texts: [],
  },
  {
    file: 'src/store/postgres/copy.ts',
    written: /^this\.#copies\.map/,
    reason: 'COPY cannot be prepared, and its columns are type-checked',
    texts: [],
  },
  {
    file: 'src/store/postgres/database.ts',
    written: /^\[begin, /,
    reason: 'the locks are those of the caller',
    texts: ['SELECT pg_advisory_xact_lock(1, hashint8(1))', 'SELECT pg_advisory_xact_lock_shared(1, hashint8(1))'],
  },
  { file: 'src/store/postgres/database.ts', written: /^sql$/, reason: 'passes on what `query` is given', texts: [] },
  {
    file: 'src/store/privacy/find-and-erase.ts',
    written: /^`UPDATE intake\.applications SET \$\{emptied\}/,
    reason: 'empties the columns that the catalog names',
    texts: [
      `UPDATE intake.applications SET email = NULL, content_hash = '', observed_seq = observed_seq, changed_at = now(),
         erased_at = coalesce(erased_at, now()) WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[])`,
    ],
  },
];

/** Statements that Postgres does not prepare. */
const utility = /^(?:BEGIN|COMMIT|ROLLBACK|LISTEN|ANALYZE)\b/;

test('every statement of the product can be prepared', async ({ database }) => {
  const calls = loadQueryCalls('src/**/*.ts', (file) => !file.startsWith('src/dev/')).filter((call) => !isOfHono(call));
  const untold = calls.filter(({ texts }) => texts === null);
  expect(untold.filter((call) => !samples.some((sample) => isOf(sample, call)))).toEqual([]);
  expect(samples.filter((sample) => !untold.some((call) => isOf(sample, call)))).toEqual([]);

  const told = calls.flatMap(({ place, texts }) => (texts ?? []).map((text) => ({ place, text })));
  const sampled = samples.flatMap(({ file, texts }) => texts.map((text) => ({ place: file, text })));
  const statements = [...told, ...sampled].filter(({ text }) => !utility.test(text));
  expect(statements.length).toBeGreaterThan(220);
  const refused: string[] = [];
  for (const [nth, { place, text }] of statements.entries()) {
    await database.query(`PREPARE statement_${nth} AS ${text}`).catch((error: Error) => {
      refused.push(`${place}: ${error.message}\n${text}`);
    });
  }
  expect(refused).toEqual([]);
});

function isOf(sample: (typeof samples)[number], { place, written }: QueryCall): boolean {
  return place.startsWith(`${sample.file}:`) && sample.written.test(written);
}

/** `request.query(name)` is a parameter of a URL. */
function isOfHono({ place }: QueryCall): boolean {
  return place.startsWith('src/web/');
}

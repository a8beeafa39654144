// Every statement of the product, prepared on a migrated database: a wrong table, column, type or operator is found without a test that
// happens to run the statement.
import { globSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { expect } from 'vitest';
import { renderFingerprintSql } from '../../../src/domain/extract/fingerprints.ts';
import { loadQueryCalls, type QueryCall } from '../../support/database/sql-texts.ts';
import { test } from '../../support/database/test-database.ts';

/** Calls whose text depends on more than the source, each with the reason and with texts that stand for it. */
const samples: readonly { file: string; written: RegExp; reason: string; texts: readonly string[] }[] = [
  {
    file: 'src/store/extract.ts',
    written: /^sql$/,
    reason: 'the statement that intake compare prints',
    texts: [
      renderFingerprintSql('postgres', 'intake_analytics.applications_anonymous', 1, []),
      renderFingerprintSql('postgres', 'intake_analytics.applications_anonymous', 2, [
        { advertiserId: 1n, fromId: 65_536n, width: 65_536n },
      ]),
    ],
  },
  { file: 'src/store/postgres/migrations.ts', written: /^sql$/, reason: 'a migration', texts: [] },
  {
    file: 'src/store/postgres/batches.ts',
    written: /^Object\.assign\(query/,
    reason: 'passes on what `read` is given: views of an extract, whose columns the catalog names',
    texts: [
      `SELECT v."submitted_at" FROM intake_analytics."applications" v
       WHERE v.advertiser_id = $1 AND lpad((get_byte(decode(md5(v.application_id::text), 'hex'), 0) & 63)::text, 2, '0') = ANY ($2)`,
    ],
  },
  {
    file: 'src/store/postgres/copy.ts',
    written: /^query$/,
    reason: 'a COPY, which every load runs',
    texts: [],
  },
  {
    file: 'src/store/postgres/copy.ts',
    written: /^this\.#copies\.map/,
    reason: 'COPY cannot be prepared; every load runs it',
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
const utility = /^(?:BEGIN|COMMIT|ROLLBACK|LISTEN|ANALYZE|SET LOCAL|SET TRANSACTION)\b/;

const calls = loadQueryCalls('src/store/**/*.ts');

test('every statement of the product can be prepared, and returns the columns of its type', async ({ database }) => {
  const dynamic = calls.filter(({ texts }) => texts === null);
  expect(dynamic.filter((call) => !samples.some((sample) => isOf(sample, call)))).toEqual([]);
  expect(samples.filter((sample) => !dynamic.some((call) => isOf(sample, call)))).toEqual([]);

  const fixed = calls.flatMap(({ texts, ...call }) => (texts ?? []).map((text) => ({ ...call, text })));
  const sampled = samples.flatMap(({ file, texts }) =>
    texts.map((text) => ({ place: file, text, columns: new Map<string, string>() })),
  );
  const statements = [...fixed, ...sampled].filter(({ text }) => !utility.test(text));
  expect(statements.length).toBeGreaterThan(220);
  const client = new pg.Client(database.url);
  await client.connect();
  const wrong: string[] = [];
  for (const { place, text, columns } of statements) {
    try {
      const fields = await describeStatement(client, text);
      for (const [name, type] of columns) {
        const field = fields.find((one) => one.name === name);
        const returned = field ? (returnedTypes[field.dataTypeID] ?? `a type of oid ${field.dataTypeID}`) : 'no column';
        if (returned !== (narrower[type] ?? type) && returned !== 'any')
          wrong.push(`${place}: ${name}: ${type}, but it is ${returned}`);
      }
    } catch (error) {
      wrong.push(`${place}: ${(error as Error).message}\n${text}`);
    }
  }
  await client.end();
  expect(wrong).toEqual([]);
});

test('no other part of the product makes statements', () => {
  const others = globSync('src/**/*.ts').filter((file) => !/^src\/(?:store|dev)\//.test(file));
  const asking = others.filter((file) => /(?<!\breq)\.query[(<]/.test(readFileSync(file, 'utf8')));
  // `intake grants --apply` runs what grants.ts renders; roles.test.ts runs it too.
  expect(asking).toEqual(['src/cli/commands/schema.ts']);
});

function isOf(sample: (typeof samples)[number], { place, written }: QueryCall): boolean {
  return place.startsWith(`${sample.file}:`) && sample.written.test(written);
}

const { builtins } = pg.types;
/** The types that the driver returns, by the types of columns. It returns JSON as any value. */
const returnedTypes: Readonly<Record<number, string>> = {
  [builtins.INT8]: 'bigint',
  [builtins.INT2]: 'number',
  [builtins.INT4]: 'number',
  [builtins.FLOAT8]: 'number',
  [builtins.TEXT]: 'string',
  [builtins.UUID]: 'string',
  [builtins.BOOL]: 'boolean',
  [builtins.TIMESTAMPTZ]: 'Date',
  [builtins.JSON]: 'any',
  [builtins.JSONB]: 'any',
  [builtins.BYTEA]: 'Buffer<ArrayBufferLike>',
  // name, text[], bigint[], float8[]
  19: 'string',
  1009: 'string[]',
  1016: 'bigint[]',
  1022: 'number[]',
};

/** Row types that promise less than the driver returns, with what it returns. */
const narrower: Readonly<Record<string, string>> = {
  'readonly string[]': 'string[]',
  'readonly bigint[]': 'bigint[]',
  'Uint8Array<ArrayBufferLike>': 'Buffer<ArrayBufferLike>',
};

interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/** What node-postgres' connections can do and their types leave out. */
interface DescribingConnection extends pg.Connection {
  parse(message: { readonly text: string }): void;
  describe(message: { readonly type: 'S' }): void;
  sync(): void;
}

/** Prepares a statement as the driver does before it runs one; gives the columns that it would return. */
async function describeStatement(client: pg.Client, text: string): Promise<readonly Field[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Field[]>();
  let fields: readonly Field[] = [];
  client.query({
    submit(plain: pg.Connection) {
      const connection = plain as DescribingConnection;
      connection.parse({ text });
      connection.describe({ type: 'S' });
      connection.sync();
    },
    handleRowDescription(message: { readonly fields: readonly Field[] }) {
      fields = message.fields;
    },
    handleError: reject,
    handleReadyForQuery: () => resolve(fields),
  } as pg.Submittable);
  return await promise;
}

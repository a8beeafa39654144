// @module-tag slow
// The extract of the demo's account in other engines: the questions of docs/analyse.md have the answers of Postgres, and every value has its
// type and its digits.
import { readFileSync } from 'node:fs';
import { TimeUnit, Type } from '@uwdata/flechette';
import { expect } from 'vitest';
import { fillFromDemoBoard } from '../support/database/demo-board.ts';
import { loadRecipes, type Recipe, runRecipe } from '../support/documents/cookbook.ts';
import { openTables } from '../support/extract/arrow.ts';
import { openDuck } from '../support/extract/duck.ts';
import { compareRows, extract, extractTest } from '../support/extract/extracting.ts';

/** What DuckDB says otherwise. */
const dialect: readonly (readonly [string, string])[] = [
  ['WHERE at >', 'WHERE "at" >'],
  [`timestamptz '2026-08-01 00:00+10'`, `timestamptz '2026-08-01 00:00:00+10'`],
  [`c.as_of AT TIME ZONE interval '10 hours'`, `c.as_of AT TIME ZONE 'UTC' + interval '10 hours'`],
];

const toDuck = ({ sql }: Recipe) => dialect.reduce((text, [from, to]) => text.replace(from, to), sql);

/** Values as both engines mean them: 0.5 is 0.50, and t is true. */
function toValue(cell: string | null): string | number | boolean | null {
  if (cell === 't' || cell === 'true') return true;
  if (cell === 'f' || cell === 'false') return false;
  return cell === null || cell === '' || Number.isNaN(Number(cell)) ? cell : Number(cell);
}

extractTest(
  'the twenty-two questions have the same answers in DuckDB, and every row is the same',
  async ({ database, target }) => {
    await fillFromDemoBoard(database);
    const manifest = await extract(database, target, '--with-people');
    await compareRows(database, target, manifest);
    using duck = await openDuck(target, manifest);
    await duck.query('SET integer_division = true');
    const recipes = loadRecipes();
    expect(recipes).toHaveLength(22);
    for (const recipe of recipes) {
      const [theirs, ours] = [await duck.query(toDuck(recipe)), await runRecipe(database.url, recipe.sql)];
      expect({ question: recipe.question, rows: theirs.rows.map((row) => row.map(toValue)) }).toEqual({
        question: recipe.question,
        rows: ours.rows.map((row) => row.map(toValue)),
      });
    }
    // The example for DuckDB, which names only the folder.
    using fresh = await openDuck(target, { ...manifest, columns: {} });
    await fresh.query(`SET VARIABLE extract = '${target}'`);
    const statements = readFileSync('examples/extract/duckdb.sql', 'utf8').split(/;$/m);
    for (const statement of statements) if (/^\w/m.test(statement.trim())) await fresh.query(statement);
    const count = 'SELECT count(*) AS n FROM intake_analytics.applications_anonymous';
    expect((await fresh.query(count)).rows).toEqual([['2000']]);
  },
);

extractTest(
  'another reader finds ids beyond 2^53, microseconds with their zone, nulls, Unicode and lists',
  async ({ emptied, target }) => {
    const advertiserId = '9223372036854775806';
    await emptied.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('größte 雇用', ${advertiserId})`);
    await emptied.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, source_offset, job_reference, raw, content_hash, observed_seq, changed_at)
       VALUES (${advertiserId}, 9007199254740993, '2026-07-01 09:59:59.123457+10', '+10:00', 'Ελληνικά 🦜', '{}', '', 1, '2026-07-02 00:00:00.000001+00'),
         (${advertiserId}, 9223372036854775807, NULL, NULL, NULL, '{}', '', 1, '1969-12-31 23:59:59.999999+00')`,
    );
    // A certificate with its evidence, which is a list.
    await emptied.query(
      `INSERT INTO intake.coverage (advertiser_id, axis, low, high, certificate, risk, reason, as_of, complete_through, sweep_id, evidence_hash)
       VALUES (${advertiserId}, 'id', 1, NULL, 'proven', 'none', 'read', now(), now(), 7, '\\xabcd')`,
    );
    const manifest = await extract(emptied, target);
    await compareRows(emptied, target, manifest);
    const open = (view: string, partition: string | null) => {
      const files = manifest.files.filter((each) => each.view === view && each.partition === partition);
      const [table] = openTables(target, { ...manifest, files }, view);
      return { rows: table?.toArray(), fields: table?.schema.fields ?? [] };
    };
    const june = open('applications_anonymous', '2026-06');
    const submittedMs = 1782863999123.457;
    expect(june.rows).toMatchObject([
      {
        ...{ advertiser_id: 9223372036854775806n, application_id: 9007199254740993n, advertiser: 'größte 雇用' },
        ...{ job_reference: 'Ελληνικά 🦜', submitted_at: submittedMs, changed_at: 1782950400000.001 },
        // The same moment on the clock of the source.
        ...{ submitted_local: submittedMs + 36_000_000, missing_since: null },
      },
    ]);
    expect(open('applications_anonymous', 'none').rows).toMatchObject([
      { application_id: 9223372036854775807n, submitted_at: null, job_reference: null, changed_at: -0.001 },
    ]);
    const toField = (name: string) => june.fields.find((field) => field.name === name);
    const micros = { typeId: Type.Timestamp, unit: TimeUnit.MICROSECOND };
    expect(toField('submitted_at')).toMatchObject({
      type: { ...micros, timezone: 'UTC' },
      metadata: new Map([['PARQUET:field_id', '5']]),
    });
    expect(toField('submitted_local')).toMatchObject({ type: { ...micros, timezone: null } });
    expect(open('completeness', null).rows).toMatchObject([{ evidence: ['7:abcd'], certificate: 'proven' }]);
    // A view without rows has its columns all the same.
    expect(open('screening_answers', null).fields.map(({ name }) => name)).toContain('answer_text');
  },
);

// Screens as rows: what bytes of the source become in the database.
import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { Screen } from '../../../src/domain/application.ts';
import { parseScreens, screenParserVersion } from '../../../src/source/parse/screen.ts';
import { replaceScreens } from '../../../src/store/files/complete-download.ts';
import { type Database, openDatabase, type Queryable } from '../../../src/store/postgres/database.ts';
import { test as base, emptyDatabase } from '../../support/database/test-database.ts';
import { screenLists } from '../../support/screens.ts';

const advertiserId = 7n;

const test = base
  .extend('opened', { scope: 'file' }, async ({ database }, { onCleanup }) => {
    const db = openDatabase({ url: database.url, role: 'test' });
    onCleanup(() => db[Symbol.asyncDispose]());
    return db;
  })
  .extend('db', { scope: 'test' }, async ({ database, opened }): Promise<Database> => {
    await emptyDatabase(database);
    await opened.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT $1, id, '', 1 FROM generate_series(1, 3) AS id`,
      [advertiserId],
    );
    return opened;
  });

/** Reads the bytes and writes what they say, as a completed download does. */
async function keep(db: Database, applicationId: bigint, text: string): Promise<void> {
  const body = Buffer.from(text);
  const parsed = parseScreens(body, undefined);
  await db.transaction((tx) =>
    replaceScreens(tx, advertiserId, [{ applicationId, sha256: hash('sha256', body), parsed }]),
  );
}

/** The screens of an application as its rows tell them. */
async function loadScreens(db: Queryable, applicationId: bigint): Promise<Screen[]> {
  const answers = `SELECT coalesce(jsonb_agg(jsonb_build_object('id', answer_id, 'text', text, 'selected', selected) ORDER BY answer_no), '[]')
    FROM intake.screen_answers a WHERE (a.advertiser_id, a.application_id, a.screen_no, a.question_no)
      = (q.advertiser_id, q.application_id, q.screen_no, q.question_no)`;
  const questions = `SELECT coalesce(jsonb_agg(jsonb_build_object('id', question_id, 'type', type, 'text', text, 'answers', (${answers}))
      ORDER BY question_no), '[]')
    FROM intake.screen_questions q WHERE (q.advertiser_id, q.application_id, q.screen_no)
      = (s.advertiser_id, s.application_id, s.screen_no)`;
  return await db.query<Screen & Record<string, unknown>>(
    `SELECT screen_id AS id, name, outcome, (${questions}) AS questions, coalesce(notes, '[]') AS notes
     FROM intake.screens s WHERE advertiser_id = $1 AND application_id = $2 ORDER BY screen_no`,
    [advertiserId, applicationId],
  );
}

const answerRows = `SELECT question_no, type, answer_no, answer_id, a.text, selected
  FROM intake.screen_questions q JOIN intake.screen_answers a USING (advertiser_id, application_id, screen_no, question_no)
  WHERE application_id = $1 ORDER BY screen_no, question_no, answer_no`;

const bothForms = {
  JSON: `{"screen":{"@id":"77","@name":"Bar staff","@successful":"False","question":[
    {"@id":"3","@type":"Text","@text":"Phone?","answer":{"@id":"a","@selected":"True","#text":"0412345678"}},
    {"@id":"4","@type":"True/False","@text":"Licence?","answer":[
      {"@id":"a","#text":"True"},{"@id":"b","@selected":"True","#text":"False"}]}]}}`,
  XML: `<screen id="77" name="Bar staff" successful="False">
    <question id="3" type="Text" text="Phone?"><answer id="a" selected="True">0412345678</answer></question>
    <question id="4" type="True/False" text="Licence?">
      <answer id="a">True</answer><answer id="b" selected="True">False</answer></question>
  </screen>`,
};

describe('the rows of a screen', () => {
  test.for(['JSON', 'XML'] as const)('hold every question and every offered answer, from %s', async (form, { db }) => {
    await keep(db, 1n, bothForms[form]);
    expect(await db.query(`SELECT screen_id, name, outcome, sha256, parser_version FROM intake.screens`)).toEqual([
      {
        ...{ screen_id: '77', name: 'Bar staff', outcome: 'fail' },
        ...{ sha256: hash('sha256', bothForms[form]), parser_version: screenParserVersion },
      },
    ]);
    const rows = await db.query(answerRows, [1n]);
    expect(rows.map((row) => Object.values(row).join(' | '))).toEqual([
      '1 | Text | 1 | a | 0412345678 | true',
      '2 | True/False | 1 | a | True | false',
      '2 | True/False | 2 | b | False | true',
    ]);
  });

  test.for([
    ['JSON', '{"screen":{"@id":"1","question":{"@text":"a\\u0000b","answer":"\\ud800"}}}'],
    ['XML', '<screen id="1"><question text="a&#0;b"><answer>&#xD800;</answer></question></screen>'],
  ] as const)('hold U+FFFD for what Postgres cannot, and say so, from %s', async ([, text], { db }) => {
    await keep(db, 1n, text);
    const [screen] = await loadScreens(db, 1n);
    expect(screen?.questions[0]?.text).toBe('a\ufffdb');
    expect(screen?.questions[0]?.answers[0]?.text).toBe('\ufffd');
    expect(screen?.notes).toHaveLength(2);
  });

  test('tell every value that can be read', async ({ db }) => {
    await fc.assert(
      fc.asyncProperty(screenLists, async (screens) => {
        await db.transaction((tx) =>
          replaceScreens(tx, advertiserId, [{ applicationId: 1n, sha256: 'x', parsed: { screens, parserVersion: 1 } }]),
        );
        expect(await loadScreens(db, 1n)).toEqual(screens);
      }),
      { numRuns: 50 },
    );
  });
});

describe('screens parsed again', () => {
  test('takes the place of the earlier rows, and of no other application', async ({ db }) => {
    await keep(db, 1n, bothForms.JSON);
    await keep(db, 2n, bothForms.XML);
    const others = await loadScreens(db, 2n);
    await keep(
      db,
      1n,
      '<screen id="2" successful="True"><question id="1"><answer id="n">new</answer></question></screen>',
    );
    expect(await loadScreens(db, 1n)).toEqual([
      {
        id: '2',
        name: null,
        outcome: 'pass',
        questions: [{ id: '1', type: null, text: null, answers: [{ id: 'n', text: 'new', selected: false }] }],
        notes: [],
      },
    ]);
    expect(await loadScreens(db, 2n)).toEqual(others);
  });

  test('of an empty screen leaves no row behind', async ({ db }) => {
    await keep(db, 1n, bothForms.JSON);
    await keep(db, 1n, '{"screen":null}');
    for (const table of ['screens', 'screen_questions', 'screen_answers']) {
      expect(await db.query(`SELECT 1 FROM intake.${table}`)).toEqual([]);
    }
  });

  test('that fails midway leaves the earlier rows', async ({ db }) => {
    await keep(db, 1n, bothForms.JSON);
    const before = await loadScreens(db, 1n);
    const broken = { id: '1', name: null, outcome: 'maybe' as 'pass', questions: [], notes: [] };
    await expect(
      db.transaction((tx) =>
        replaceScreens(tx, advertiserId, [
          { applicationId: 1n, sha256: 'x', parsed: { screens: [broken], parserVersion: 1 } },
        ]),
      ),
    ).rejects.toThrow(/screens_outcome/);
    expect(await loadScreens(db, 1n)).toEqual(before);
  });
});

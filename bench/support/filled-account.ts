// Fills an empty database with one account as the worker would leave it after a year: applications, files, screens and events, generated in
// SQL. The indexes are built afterwards, because rows come several times as fast without them. A million takes about 5 GB of disk.

import pg from 'pg';
import { markAllDays } from '../../src/store/reports/counts.ts';

/** A year of applications, distributed as in an account with 5,000 ads: the busiest ad gets one application in thirty. */
export async function fillAccount(
  url: string,
  applications: number,
  onStep: (said: string) => void = () => {},
): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  await client.connect();
  try {
    const step = async (what: string, sql: string) => {
      const begunAt = performance.now();
      const { rowCount } = await client.query(sql);
      onStep(
        `${what}: ${rowCount === null ? '' : `${rowCount} rows, `}${((performance.now() - begunAt) / 1000).toFixed(1)} s`,
      );
    };
    await client.query(`SET session_replication_role = replica; SET synchronous_commit = off; SELECT setseed(0.5)`);
    await client.query(`SET maintenance_work_mem = '1GB'`);
    const indexes = await dropIndexes(client);
    for (const [what, sql] of Object.entries(steps)) await step(what, sql.replaceAll(':n', String(applications)));
    for (const sql of indexes) await step(sql.slice(0, 100), sql);
    await client.query('ANALYZE');
    await client.query('SET session_replication_role = origin');
    // An earlier schema counts nothing.
    const { rows } = await client.query(`SELECT 1 FROM pg_class WHERE oid = to_regclass('intake.stale_days')`);
    if (rows.length > 0) {
      await client.query(
        `INSERT INTO intake.tallies (advertiser_id, what, n) SELECT advertiser_id, what, n FROM intake.recounted`,
      );
      await markAllDays({ query: async (sql, values) => (await client.query(sql, [...(values ?? [])])).rows });
      await client.query('SELECT intake.count_stale_days(1000000)');
    }
    await client.query('VACUUM (ANALYZE)');
  } finally {
    await client.end();
  }
}

/** Drops the keys and indexes of the tables that are filled. Returns the statements that make them again. */
async function dropIndexes(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ drop: string; make: string }>(
    `WITH filled AS (SELECT unnest($1::text[])::regclass AS oid)
     SELECT * FROM (
       -- The references are valid by construction. Checking those of ten million applications would take most of the time.
       SELECT CASE contype WHEN 'f' THEN 1 ELSE 3 END AS no, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop,
         format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
           || CASE contype WHEN 'f' THEN ' NOT VALID' ELSE '' END AS make
       FROM pg_constraint WHERE contype IN ('p', 'u') AND conrelid IN (TABLE filled)
         OR contype = 'f' AND (conrelid IN (TABLE filled) OR confrelid IN (TABLE filled))
       UNION ALL
       SELECT 2, format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
       FROM pg_index i WHERE indrelid IN (TABLE filled) AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid
         AND c.contype IN ('p', 'u'))) AS dropped
     ORDER BY no`,
    [filled.map((table) => `intake.${table}`)],
  );
  for (const { drop } of rows) await client.query(drop);
  return rows.map(({ make }) => make).reverse();
}

const filled = [
  'applications',
  'primary_job_seeking_info',
  'attachments',
  'blobs',
  'screens',
  'screen_questions',
  'screen_answers',
];

/** Rows as the worker would write them. The three busiest ads have the references that the cookbook's queries use. */
const steps = {
  advertiser: `INSERT INTO intake.advertisers (name, advertiser_id, created_at) VALUES ('default', 7, '2026-10-19')`,
  cursor: `INSERT INTO intake.cursors (advertiser_id, after_id, after_date, as_of) VALUES (7, :n, '2026-11-02', '2026-11-02')`,
  coverage: `
    INSERT INTO intake.coverage (advertiser_id, axis, low, high, certificate, risk, reason, as_of, complete_through, sweep_id)
    VALUES (7, 'id', 1, NULL, 'proven', 'none', 'bench', '2026-11-02', '2026-11-02', 1)`,
  applications: `
    INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, source_offset, email, first_name, last_name, phone,
      job_seeker_id, job_reference, raw, person_key, content_hash, observed_seq, first_seen_at, changed_at, ready_at)
    SELECT 7, id, at, '+10:00', email, 'First' || person % 900, 'Last' || person % 1100, '0491 570 006', md5('seeker' || person),
      CASE job WHEN 0 THEN '002015' WHEN 1 THEN 'REQ-2026-8888' WHEN 2 THEN 'GDE-1218-VIC' WHEN 3 THEN NULL ELSE 'JOB-' || job END,
      jsonb_build_object('ID', id, 'Email', email, 'DateSubmitted', at, 'JobSeekerID', md5('seeker' || person),
        'Attachments', jsonb_build_array(jsonb_build_object('Hash', md5(id::text), 'Type', 'resume', 'Size', 40000, 'HasVirus', false,
          'Href', 'advertiser/applications/resume/' || id))),
      md5('key' || person), sha256(id::text::bytea), id, at + '4 minutes', at + '4 minutes', at + '5 minutes'
    FROM (
      SELECT g AS id, timestamptz '2025-11-03' + g * (interval '364 days' / :n) AS at, floor(5000 * random() ^ 2.5)::int AS job,
        CASE WHEN random() < 0.3 THEN floor(random() * g)::int ELSE g END AS person
      FROM generate_series(1, :n) AS g
    ) AS drawn, LATERAL (SELECT 'person' || person || '@example.com' AS email) AS mail`,
  events: `
    INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
    SELECT 7, 2 * g - t.no, g, t.type, now() - (:n - g) * (interval '364 days' / :n)
    FROM generate_series(:n - :n / 12, :n) AS g, (VALUES (1, 'application.received'), (0, 'application.ready')) AS t (no, type)`,
  info: `
    INSERT INTO intake.primary_job_seeking_info (advertiser_id, application_id, job_title, company_name, time_in_role_months, is_new_to_workforce)
    SELECT 7, g, 'Title ' || g % 300, 'Company ' || g % 400, g % 120, g % 9 = 0 FROM generate_series(1, :n) AS g WHERE g % 10 < 7`,
  attachments: `
    INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, reason, source_hash, size_bytes, has_virus, uploaded_at,
      href, sha256, content_type, detected_type, file_name, stored_at)
    SELECT 7, a.application_id, k.kind, fate.state, CASE WHEN fate.state = 'missing' THEN 'not there for a day (404)' END,
      md5(a.application_id || k.kind), 40000, fate.state = 'infected', a.submitted_at, 'advertiser/applications/' || k.kind || '/' || a.application_id,
      CASE WHEN fate.state = 'stored' THEN encode(sha256((a.application_id || k.kind)::bytea), 'hex') END, 'application/pdf', 'application/pdf',
      'Resume.pdf', CASE WHEN fate.state = 'stored' THEN a.ready_at END
    FROM intake.applications a
    JOIN (VALUES ('resume', 100), ('coverLetter', 62), ('selectionCriteria', 12), ('screen', 50)) AS k (kind, share)
      ON a.application_id % 100 < k.share
    CROSS JOIN LATERAL (SELECT CASE a.application_id % 500 WHEN 11 THEN 'infected' WHEN 12 THEN 'missing' ELSE 'stored' END AS state) AS fate`,
  blobs: `
    INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, verified_at)
    SELECT 7, sha256, size_bytes, 'blobs/' || sha256, 'stored', stored_at FROM intake.attachments WHERE sha256 IS NOT NULL`,
  screens: `
    INSERT INTO intake.screens (advertiser_id, application_id, screen_no, screen_id, name, outcome, sha256, parser_version)
    SELECT 7, application_id, 1, 'S' || coalesce(job_reference, ''), 'Screen', CASE WHEN application_id % 8 = 0 THEN 'fail' ELSE 'pass' END, '00', 1
    FROM intake.applications WHERE application_id % 100 < 50`,
  questions: `
    INSERT INTO intake.screen_questions (advertiser_id, application_id, screen_no, question_no, question_id, type, text)
    SELECT 7, s.application_id, 1, q.no, s.screen_id || '-' || q.no, q.type, q.text
    FROM intake.screens s, (VALUES (1, 'MultipleChoiceOneAnswer', 'Your right to work?'), (2, 'MultipleChoiceManyAnswers', 'Which days?'),
      (3, 'MultipleChoiceOneAnswer', 'Years of experience?'), (4, 'True/False', 'I hold a licence.'), (5, 'Text', 'Why us?')) AS q (no, type, text)`,
  answers: `
    INSERT INTO intake.screen_answers (advertiser_id, application_id, screen_no, question_no, answer_no, answer_id, text, selected)
    SELECT 7, q.application_id, 1, q.question_no, n, q.question_id || '-' || n, 'Answer ' || n,
      CASE WHEN q.question_no = 4 THEN (n = 2) = (q.application_id % 8 = 0) ELSE n = 1 + q.application_id % 4 END
    FROM intake.screen_questions q, generate_series(1, CASE q.question_no WHEN 4 THEN 2 WHEN 5 THEN 1 ELSE 4 END) AS n`,
};

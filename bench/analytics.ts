// Measures the cookbook's queries on a large account: npm run bench:analytics -- [applications, default 1000000].
// Fills a scratch Postgres with a year of applications, generated in SQL. Then runs every query of docs/analyse.md five times and prints
// the best time and the CPU time on one core, most expensive first.
// A million applications take some minutes and about 5 GB of disk.

import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openEmbedded } from '../src/dev/embedded/embedded.ts';
import { migrate } from '../src/store/postgres/migrations.ts';
import { loadRecipes } from '../test/support/cookbook.ts';

const applications = Number(process.argv[2] ?? 1_000_000);
const runs = 5;
const name = `bench_${process.pid}`;

/** A year of applications, distributed as in an account with 5,000 ads: the busiest ad gets one application in thirty. */
async function fill(url: string): Promise<void> {
  await using bench = await open(url);
  const { client } = bench;
  // The references are valid by construction; checking ten million foreign keys would take most of the time.
  await client.query(`SET session_replication_role = replica; SET synchronous_commit = off; SELECT setseed(0.5)`);
  for (const [what, sql] of Object.entries(steps)) {
    const begunAt = performance.now();
    const { rowCount } = await client.query(sql.replaceAll(':n', String(applications)));
    console.log(`${what}: ${rowCount} rows, ${((performance.now() - begunAt) / 1000).toFixed(1)} s`);
  }
  await client.query('VACUUM (ANALYZE)');
}

async function measure(url: string): Promise<void> {
  await using bench = await open(url);
  const timings: { number: number; question: string; bestMs: number; cpuMs: number; rows: number }[] = [];
  for (const { number, question, sql } of loadRecipes()) {
    const tookMs: number[] = [];
    let rows = 0;
    for (let run = 0; run < runs; run++) {
      const begunAt = performance.now();
      rows = (await bench.client.query(sql)).rows.length;
      tookMs.push(performance.now() - begunAt);
    }
    timings.push({ number, question, bestMs: Math.min(...tookMs), cpuMs: await measureCpu(url, sql), rows });
  }
  timings.sort((a, b) => b.cpuMs - a.cpuMs);
  console.log(`\n| question | best of ${runs}, ms | CPU on one core, ms | rows |\n|---|---|---|---|`);
  for (const { number, question, bestMs, cpuMs, rows } of timings) {
    console.log(`| ${number}. ${question} | ${bestMs.toFixed(0)} | ${cpuMs.toFixed(0)} | ${rows} |`);
  }
  const count = (limitMs: number) => timings.filter(({ cpuMs }) => cpuMs < limitMs).length;
  console.log(
    `\n${applications} applications: ${count(300)} of ${timings.length} under 300 ms of CPU, ${count(2_000)} under 2 s.`,
  );
}

/** CPU time of the query in one server process without parallel workers. Unlike wall time, it excludes other load on the machine. */
async function measureCpu(url: string, sql: string): Promise<number> {
  await using bench = await open(url);
  const cpuMs: number[] = [];
  bench.client.on('notice', ({ detail }) => {
    const used = /([\d.]+) s user, ([\d.]+) s system/.exec(detail ?? '');
    if (used) cpuMs.push(1000 * (Number(used[1]) + Number(used[2])));
  });
  await bench.client.query(
    `SET max_parallel_workers_per_gather = 0; SET client_min_messages = log; SET log_statement_stats = on`,
  );
  cpuMs.length = 0;
  for (let run = 0; run < 2; run++) await bench.client.query(sql);
  return Math.min(...cpuMs);
}

async function open(to: string): Promise<{ readonly client: pg.Client } & AsyncDisposable> {
  const client = new pg.Client({ connectionString: to, application_name: 'bench' });
  await client.connect();
  return { client, [Symbol.asyncDispose]: () => client.end() };
}

async function query(to: string, sql: string): Promise<void> {
  await using bench = await open(to);
  await bench.client.query(sql);
}

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

await using server = await openEmbedded({ root: fileURLToPath(new URL('..', import.meta.url)), scratch: true });
await query(server.url, `CREATE DATABASE ${name}`);
const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
try {
  await migrate(url);
  await fill(url);
  await measure(url);
} finally {
  await query(server.url, `DROP DATABASE ${name} WITH (FORCE)`);
}

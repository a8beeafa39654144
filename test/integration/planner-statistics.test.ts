// What Postgres keeps of columns for its planner: no value of a person, however often and by whomever the tables are analysed.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { openSmallIntake } from '../support/small-intake.ts';
import { openTestDatabase, type TestDatabase, test } from '../support/test-database.ts';

/** Columns of texts, JSON, bytes and lists that say nothing of a person: words of ours and of the advertiser, and ids that stay anyway. */
const harmless = [
  ...[
    'advertisers.*',
    'audit.*',
    'blob_store.*',
    'coverage.*',
    'events.*',
    'leases.*',
    'migrations.*',
    'paces.*',
    'ranges.*',
    'waits.*',
  ],
  ...['readings.*', 'sweeps.*', 'screen_questions.*', 'screens.*'],
  ...['applications.job_reference', 'applications.notes', 'applications.source_offset'],
  ...['attachments.kind', 'attachments.state', 'attachments.reason', 'attachments.notes', 'attachments.detected_type'],
  ...[
    'attachment_versions.kind',
    'attachment_versions.state',
    'attachment_versions.reason',
    'attachment_versions.detected_type',
  ],
  ...[
    'blobs.state',
    'blobs.delete_token',
    'downloads.kind',
    'downloads.trouble',
    'downloads.trouble_kind',
    'downloads.lease_token',
  ],
  ...[
    'erasure_jobs.job_id',
    'erasure_jobs.counts',
    'erasure_jobs.requested_by',
    'erasure_jobs.sought_by',
    'erasure_jobs.step',
    'erasure_jobs.trouble',
  ],
  // A tombstone stays in its table, so it may stay here.
  ...[
    'erasures.job_id',
    'erasures.tombstone',
    'oauth_states.prefill_id',
    'quarantine.reason',
    'screen_answers.answer_id',
  ],
  ...[
    'prefills.country_code',
    'prefills.notes',
    'prefills.outcome',
    'prefills.prefill_id',
    'prefills.reason',
    'prefills.resume_reason',
  ],
];
/** Fingerprints of files, without whose distribution every look at the queue would read all files: see docs/privacy.md. */
const ofFiles = [
  ...['attachments.sha256', 'attachments.source_hash', 'attachment_versions.sha256', 'attachment_versions.source_hash'],
  ...['attachments_hash.left', 'blobs.sha256', 'blobs.key', 'downloads.sha256', 'screens.sha256'],
];

test('every column is judged: it names nobody, or Postgres keeps no values of it', async ({ database }) => {
  const kept = await database.query<{ name: string; all: string }>(
    `SELECT c.relname || '.' || a.attname AS name, c.relname || '.*' AS all
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
     WHERE n.nspname = 'intake' AND c.relkind IN ('r', 'p', 'm', 'i') AND a.attnum > 0 AND NOT a.attisdropped
       AND (c.relkind <> 'i' OR EXISTS (SELECT 1 FROM pg_index i WHERE i.indexrelid = c.oid AND i.indexprs IS NOT NULL))
       AND t.typcategory NOT IN ('N', 'B', 'D') AND a.attstattarget IS DISTINCT FROM 0`,
  );
  const judged = new Set([...harmless, ...ofFiles]);
  expect(kept.filter(({ name, all }) => !judged.has(name) && !judged.has(all)).map(({ name }) => name)).toEqual([]);
  expect(await database.query(`SELECT stxname FROM pg_statistic_ext`)).toEqual([]);
});

const sha256 = createHash('sha256').update('zeldas resume').digest('hex');
const words = ['quarlesworth', 'zeldabeth', '0491 570 737', 'seeker-zq-7788', 'zelda-cv', sha256];

/** Somebody in every table that can hold a person, an erasure under way included; many rows, so that there are common values. */
async function fill(database: TestDatabase): Promise<void> {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  const person = {
    firstName: 'Zeldabeth',
    lastName: 'Quarlesworth',
    phone: '0491 570 737',
    jobSeekerId: 'seeker-zq-7788',
  };
  const email = 'zelda.quarlesworth@example.com';
  const resume = { kind: 'resume', content: 'zeldas resume', fileName: 'zelda-cv.pdf' } as const;
  const ids = intake.board.add(Array.from({ length: 5 }, () => ({ ...person, email, attachments: [resume] })));
  intake.board.fault({ kind: 'poison', on: 'list', times: null, json: `{"ID":"none","Email":"${email}"}` });
  await intake.sweep();
  await intake.runDownloads();
  await database.query(
    `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, form_url, return_url, profile, email, resume_sha256, resume_content_type, person_keys)
     SELECT $1, gen_random_uuid(), 'redeemed', 'https://x/?Quarlesworth', 'https://x', '{"name":"Quarlesworth"}', 'zelda.quarlesworth@example.com',
       $2, 'application/pdf; name=zelda-cv.pdf', '{quarlesworth}' FROM generate_series(1, 5)`,
    [advertiserId, sha256],
  );
  for (const applicationId of ids.slice(0, 3)) {
    await intake.store.beginErasure({ advertiserId, sought: { by: 'application', applicationId }, by: 'test' });
  }
}

/** What is kept of the words, by column. */
async function findKept(database: TestDatabase): Promise<string[]> {
  const kept = await database.query<{ place: string; text: string }>(
    `SELECT tablename || '.' || attname AS place, concat_ws(' ', most_common_vals, histogram_bounds, most_common_elems) AS text
     FROM pg_stats WHERE schemaname LIKE 'intake%'
     UNION ALL SELECT statistics_name, concat_ws(' ', most_common_vals) FROM pg_stats_ext WHERE schemaname LIKE 'intake%'
     UNION ALL SELECT statistics_name, concat_ws(' ', most_common_vals, histogram_bounds, most_common_elems)
     FROM pg_stats_ext_exprs WHERE schemaname LIKE 'intake%'`,
  );
  const names = kept.filter(({ text }) => words.some((word) => text.toLowerCase().includes(word)));
  return names.map(({ place }) => place).filter((place) => !ofFiles.includes(place));
}

const loadHashes = (database: TestDatabase) =>
  database.query(
    `SELECT tablename || '.' || attname AS place FROM pg_stats WHERE schemaname = 'intake'
     AND attname IN ('person_key', 'person_keys', 'content_hash', 'fingerprint', 'hashes', 'sought', 'application_ids')
     AND concat_ws(' ', most_common_vals, histogram_bounds, most_common_elems) <> ''`,
  );

test('ANALYZE keeps nothing of a person, nor what stands for one', async () => {
  await using database = await openTestDatabase();
  await fill(database);
  await database.query('ANALYZE');
  expect(await findKept(database)).toEqual([]);
  expect(await loadHashes(database)).toEqual([]);
});

/** The newest statement that judges columns. */
const statement = () =>
  readdirSync('migrations')
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .flatMap((name) => readFileSync(`migrations/${name}`, 'utf8').split('--> statement-breakpoint'))
    .findLast((one) => one.includes('SET STATISTICS 0') && one.includes('pg_clear_attribute_stats')) ?? '';

test.for([
  ['as this server does it', statement()],
  ['as Postgres 15 to 17 do it', statement().replaceAll('pg_clear_attribute_stats', 'no_such_function')],
] as const)('an upgrade clears what was kept before, %s, and leaves every view as it was', async ([, sql]) => {
  await using database = await openTestDatabase();
  const role = `reader_${createHash('sha256').update(database.url).digest('hex').slice(0, 8)}`;
  await database.query(`CREATE ROLE ${role}`);
  try {
    await database.query(`GRANT SELECT ON intake_analytics.applications, intake_analytics.jobs TO ${role}`);
    await fill(database);
    // As before the columns were judged.
    await database.query(
      `DO $$ DECLARE c record; BEGIN
         FOR c IN SELECT attrelid::regclass AS t, attname FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
           WHERE relnamespace = 'intake'::regnamespace AND relkind = 'r' AND attstattarget = 0 AND attnum > 0
         LOOP EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS -1', c.t, c.attname); END LOOP;
       END $$`,
    );
    await database.query('ANALYZE');
    expect((await findKept(database)).length).toBeGreaterThan(12);
    expect((await loadHashes(database)).length).toBeGreaterThan(3);
    // As migration 0011 left the columns that it knew.
    await database.query(
      readFileSync('migrations/0011_statistics_and_clocks.sql', 'utf8')
        .split('--> statement-breakpoint')[0]
        ?.replaceAll('pg_clear_attribute_stats', 'no_such_function') ?? '',
    );
    const before = await loadViews(database);
    const files = await loadFiles(database);
    await database.query(sql);
    expect(await findKept(database)).toEqual([]);
    expect(await loadHashes(database)).toEqual([]);
    expect(await loadViews(database)).toEqual(before);
    // No table is written anew.
    expect(await loadFiles(database)).toEqual(files);
    await database.query('ANALYZE');
    expect(await findKept(database)).toEqual([]);
  } finally {
    await database.query(`DROP OWNED BY ${role}`);
    await database.query(`DROP ROLE ${role}`);
  }
});

test('an upgrade goes on where somebody has a view upon ours, and says what is left to do', async () => {
  await using database = await openTestDatabase();
  await fill(database);
  await database.query('ALTER TABLE intake.applications ALTER COLUMN email SET STATISTICS -1');
  await database.query('ANALYZE');
  await database.query('ALTER TABLE intake.applications ALTER COLUMN email SET STATISTICS 0');
  await database.query('CREATE VIEW public.theirs AS SELECT email FROM intake_analytics.applications');
  await database.query(statement().replaceAll('pg_clear_attribute_stats', 'no_such_function'));
  expect(await database.query('SELECT count(*)::int AS n FROM public.theirs')).toEqual([{ n: 2 }]);
  expect(await findKept(database)).toEqual(['applications.email']);
});

const loadViews = (database: TestDatabase) =>
  database.query(
    `SELECT c.relname, c.relowner::regrole::text AS owner, pg_get_viewdef(c.oid) AS definition, c.reloptions,
       ARRAY(SELECT a::text FROM unnest(c.relacl) AS a ORDER BY 1) AS acl,
       (SELECT jsonb_object_agg(d.objsubid, d.description) FROM pg_description d WHERE d.objoid = c.oid AND d.classoid = 'pg_class'::regclass) AS comments
     FROM pg_class c WHERE c.relnamespace IN ('intake'::regnamespace, 'intake_analytics'::regnamespace) AND c.relkind = 'v' ORDER BY 1`,
  );

const loadFiles = (database: TestDatabase) =>
  database.query(
    `SELECT relname, relfilenode FROM pg_class WHERE relnamespace = 'intake'::regnamespace AND relkind = 'r' ORDER BY 1`,
  );

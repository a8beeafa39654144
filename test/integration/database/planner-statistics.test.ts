// What Postgres keeps of columns for its planner: no value of a person, however often and by whomever the tables are analysed.
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { openSmallIntake } from '../../support/small-intake.ts';

/** Columns of texts, JSON, bytes and lists that say nothing of a person: words of ours and of the advertiser, and ids that stay anyway. */
const harmless = [
  ...[
    'advertisers.*',
    'audit_log.*',
    'blob_store.*',
    'coverage.*',
    'events.*',
    // Lines of ids and counts; the ids stay in their own rows.
    'evidence.*',
    'extracts.*',
    'leases.*',
    'processes.*',
    'migrations.*',
    'rate_limits.*',
    'ranges.*',
    'tallies.*',
    'unreadable.*',
    'volatile_members.*',
    'webhooks.*',
  ],
  ...['recent_pages.*', 'screen_questions.*', 'screens.*'],
  ...['lane', 'purpose', 'axis', 'state', 'certificate', 'risk', 'reason'].map((name) => `sweeps.${name}`),
  ...['applications.job_reference', 'applications.notes', 'applications.source_offset'],
  ...['job_days.job_reference', 'job_months.job_reference'],
  ...['attachments.kind', 'attachments.state', 'attachments.reason', 'attachments.notes', 'attachments.detected_type'],
  'attachments.uploaded_offset',
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
/** Fingerprints of files, without whose distribution every look at the queue would read all files: see docs/protect-people.md. */
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
  expect(
    kept.filter(({ name, all }) => !judged.has(name) && !judged.has(all)).map(({ name }) => name),
    'does it tell of a person? Then ALTER COLUMN .. SET STATISTICS 0 in its migration; else add it to `harmless` in this file',
  ).toEqual([]);
  expect(await database.query(`SELECT stxname FROM pg_statistic_ext`)).toEqual([]);
});

const sha256 = createHash('sha256').update('zeldas resume').digest('hex');
const words = ['quarlesworth', 'zeldabeth', '0491 570 737', 'seeker-zq-7788', 'zelda-cv', sha256];

/** Somebody in every table that can hold a person, an erasure under way included; many rows, so that there are common values. */
async function fill(database: TestDatabase): Promise<void> {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
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
  await intake.syncWithFiles();
  await database.query(
    `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, form_url, return_url, profile, email, resume_sha256, resume_content_type, person_keys)
     SELECT $1, gen_random_uuid(), 'redeemed', 'https://x/?Quarlesworth', 'https://x', '{"name":"Quarlesworth"}', 'zelda.quarlesworth@example.com',
       $2, 'application/pdf; name=zelda-cv.pdf', '{quarlesworth}' FROM generate_series(1, 5)`,
    [advertiserId, sha256],
  );
  for (const applicationId of ids.slice(0, 3)) {
    await intake.store.erasures.begin({ advertiserId, sought: { by: 'application', applicationId }, by: 'test' });
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

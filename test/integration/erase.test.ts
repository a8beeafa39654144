import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMaintenance } from '../../src/app/maintenance.ts';
import { loadConfig } from '../../src/config.ts';
import type { Sought } from '../../src/domain/erasure.ts';
import { adoptStore } from '../../src/sync/files/store-owner.ts';
import { finishErasures, retain } from '../../src/sync/privacy/erase.ts';
import { exportPerson } from '../../src/sync/privacy/export.ts';
import { findTraces } from '../support/database/dump.ts';
import { shareDatabase } from '../support/database/test-database.ts';
import { visit } from '../support/prefill/prefill-visit.ts';
import { callIntake } from '../support/processes/intake.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { eraseAt, openSmallIntake, type SmallIntake, type SmallIntakeOptions } from '../support/small-intake.ts';
import { quietLog } from '../support/suite/quiet-log.ts';
import { findZelda, zelda, zeldaResume } from '../support/zelda.ts';

const database = shareDatabase();

const signal = () => AbortSignal.timeout(600_000);

const screens = [
  {
    id: 'S1',
    name: 'Screen',
    successful: true,
    questions: [
      { id: 'Q1', type: 'Text', text: 'Why?', answers: [{ id: 'A1', text: 'Because Quarlesworth', selected: true }] },
    ],
  },
];

/** A small Intake with Zelda and somebody else; `id` is her application, `sought` asks for it. */
async function openWithZelda(options: SmallIntakeOptions = {}) {
  const intake = await openSmallIntake({ database, ...options });
  const [id = 0n] = await intake.receive([
    { ...zelda, attachments: [zeldaResume, { kind: 'screen' }], screens },
    { attachments: [{ kind: 'resume', content: 'somebody else' }] },
  ]);
  return { ...intake, id, sought: { by: 'application', applicationId: id } as const };
}

/** The list shows this element, which cannot be stored, in every answer. */
const show = ({ board }: SmallIntake, json: string) => board.fault({ kind: 'poison', on: 'list', times: null, json });
const begin = ({ store, board }: SmallIntake, sought: Sought) =>
  store.erasures.begin({ advertiserId: board.advertiserId, sought, by: 'test' });

function toConfig(intake: SmallIntake, settings: Record<string, string>) {
  const env = { ...toEnvironment(database, intake.board, join(intake.folder, 'blobs')), ...settings };
  return loadConfig(env, { needs: ['database', 'source', 'sync', 'privacy', 'blobs'] });
}

/** Runs what a worker does for people's protection, once; returns the names of its tasks. */
async function runMaintenance(
  intake: SmallIntake,
  settings: Record<string, string>,
  { now, onStep }: { now?: () => number; onStep?: (task: string) => void } = {},
): Promise<string[]> {
  await adoptStore(intake, signal());
  const all = createMaintenance(toConfig(intake, settings), intake.store, quietLog, now);
  const tasks = all.filter(({ name }) => name === 'erasures' || name === 'retention');
  for (const { name, run } of tasks) await run(signal(), () => onStep?.(name));
  return tasks.map(({ name }) => name);
}

describe('an erased person', () => {
  test('is in no table and in no file, and only advertiser, id and the date stay', async () => {
    await using intake = await openWithZelda({ rigor: 'proof' });
    await intake.runDownloads();
    await database.query(`ANALYZE`);
    expect(await findZelda(intake)).not.toEqual([]);
    const [receipt] = await eraseAt(intake, intake.sought);
    expect(receipt).toMatchObject({
      closedAt: expect.any(Date),
      applicationIds: null,
      hashes: null,
      counts: { applications: 1, files: 2, shared: 0 },
    });
    expect(await findZelda(intake)).toEqual([]);
    const [row] = await database.query(`SELECT * FROM intake.applications WHERE application_id = $1`, [intake.id]);
    const { advertiser_id, application_id, erased_at, content_hash, observed_seq, first_seen_at, changed_at, ...rest } =
      row ?? {};
    expect({ advertiser_id, application_id }).toEqual({
      advertiser_id: String(intake.board.advertiserId),
      application_id: String(intake.id),
    });
    expect(first_seen_at).toEqual(erased_at);
    expect(changed_at).toEqual(erased_at);
    expect([content_hash.length, Number(observed_seq) > 0]).toEqual([0, true]);
    expect(Object.values(rest).filter((value) => value !== null)).toEqual([]);
    expect(
      await database.query(`SELECT type FROM intake.events WHERE application_id = $1 ORDER BY event_id DESC LIMIT 1`, [
        intake.id,
      ]),
    ).toEqual([{ type: 'application.erased' }]);
    expect(await database.query(`SELECT action, application_id, by FROM intake.audit_log`)).toEqual([
      { action: 'erase', application_id: String(intake.id), by: 'test' },
    ]);
  });

  test('does not come back when the row is lost and only the tombstone is left', async () => {
    await using intake = await openWithZelda();
    await eraseAt(intake, intake.sought);
    await database.query(`DELETE FROM intake.applications WHERE application_id = $1`, [intake.id]);
    await intake.sweep(true);
    expect(await findZelda(intake)).toEqual([]);
    expect(
      await database.query(
        `SELECT erased_at IS NOT NULL AS erased FROM intake.applications WHERE application_id = $1`,
        [intake.id],
      ),
    ).toEqual([{ erased: true }]);
  });

  test('leaves a file that others hold too to them', async () => {
    await using intake = await openWithZelda();
    await intake.receiveWithFiles([
      { attachments: [{ kind: 'resume', content: 'zeldas resume', fileName: 'twin.pdf' }] },
    ]);
    const [receipt] = await eraseAt(intake, intake.sought);
    expect(receipt?.counts).toMatchObject({ files: 2, shared: 1 });
    const files = await intake.files();
    expect(files.map((file) => file.state)).toEqual(['stored', 'stored']);
    expect(await intake.keys()).toHaveLength(2);
  });

  test('leaves nothing of how they named a file at those whose equal file was linked to it', async () => {
    await using intake = await openSmallIntake({ database });
    const template = { kind: 'coverLetter', content: 'the same template' } as const;
    const named = 'application/pdf; name="Zelda_Quarlesworth.pdf"';
    const [id = 0n] = await intake.receive([
      { attachments: [{ ...template, fileName: 'Zelda_Quarlesworth.pdf', contentType: named }] },
    ]);
    await intake.runDownloads({ hash: 'always' });
    await intake.receive([{ attachments: [{ ...template, fileName: 'Other.pdf' }] }]);
    await intake.runDownloads({ hash: 'always' });
    expect((await intake.files())[1]).toMatchObject({
      ...{ linked: true, file_name: null, content_type: 'application/pdf' },
    });
    await eraseAt(intake, { by: 'application', applicationId: id });
    expect(await findTraces({ database, folders: [intake.folder], words: ['quarlesworth'] })).toEqual([]);
  });
});

test('a receipt does not wait for downloads and leases of the person: what they bring meets the tombstones', async () => {
  await using intake = await openWithZelda();
  const { store, board } = intake;
  await store.leases.claim({ name: 'default', lane: 'live', owner: 'a dead process', leaseMs: 600_000 });
  const token = '00000000-0000-4000-8000-000000000001';
  const claim = { advertisers: [board.advertiserId], tier: 'usual', limit: 5, token, leaseMs: 600_000 } as const;
  expect(await store.downloads.claimDownloads(claim)).not.toEqual([]);
  const before = performance.now();
  await eraseAt(intake, intake.sought);
  expect(performance.now() - before).toBeLessThan(300_000);
  expect(await findZelda(intake)).toEqual([]);
});

describe('an erasure that is interrupted', () => {
  test('and asked for again by the application leaves no tombstone of the request: it would keep nothing out', async () => {
    await using intake = await openWithZelda();
    await begin(intake, intake.sought);
    const tombstones = () => database.query(`SELECT tombstone FROM intake.erasures ORDER BY tombstone`);
    const before = await tombstones();
    expect(await begin(intake, intake.sought)).toMatchObject({ closedAt: expect.any(Date) });
    expect(await tombstones()).toEqual(before);
  });

  test('is finished by the worker, and by the same request', async () => {
    for (const finish of ['worker', 'request'] as const) {
      await using intake = await openWithZelda();
      await intake.runDownloads();
      const { advertiserId } = intake.board;
      await begin(intake, intake.sought);
      expect(await findZelda(intake)).not.toEqual([]);
      const receipts =
        finish === 'worker'
          ? await finishErasures(intake, await intake.store.erasures.loadOpenErasures(advertiserId), signal())
          : await eraseAt(intake, intake.sought);
      expect(receipts[0]).toMatchObject({ closedAt: expect.any(Date), counts: { applications: 1 } });
      expect(await findZelda(intake)).toEqual([]);
    }
  });

  test('empties columns that a later migration brings, which no list in the product names', async () => {
    await using intake = await openWithZelda();
    await database.query(`ALTER TABLE intake.applications ADD COLUMN "Preferred name" text`);
    try {
      await database.query(`UPDATE intake.applications SET "Preferred name" = 'quarlesworth'`);
      await eraseAt(intake, intake.sought);
      const rows = await database.query(
        `SELECT "Preferred name" AS name FROM intake.applications WHERE application_id = $1`,
        [intake.id],
      );
      expect(rows).toEqual([{ name: null }]);
    } finally {
      await database.query(`ALTER TABLE intake.applications DROP COLUMN "Preferred name"`);
    }
  });

  test('refuses to begin with another PRIVACY_KEY', async () => {
    await using intake = await openWithZelda();
    await database.query(
      `UPDATE intake.applications SET person_key = 'made with another key' WHERE application_id = $1`,
      [intake.id],
    );
    await expect(eraseAt(intake, intake.sought)).rejects.toMatchObject({
      name: 'SettingTrouble',
      message: expect.stringContaining('PRIVACY_KEY'),
    });
    expect(await database.query(`SELECT 1 FROM intake.erasures`)).toEqual([]);
  });
});

test('what a candidate lent to a careers site goes with their address, with its resume and whatever stood in the addresses of the site', async () => {
  await using intake = await openWithZelda();
  const { advertiserId } = intake.board;
  const { email } = zelda;
  const home = 'https://careers.example.com/';
  const site = `${home}apply/zeldabeth`;
  const link = '/v2/resumes/00000000-0000-4000-8000-000000000001';
  await visit(intake, {
    profile: { lastName: zelda.lastName, emailAddress: email, jobSeekerId: zelda.jobSeekerId, link },
    request: {
      ...{ formUrl: `${site}?who=Quarlesworth`, returnUrl: `${site}#Quarlesworth` },
      ...{ positionTitle: 'for Quarlesworth', positionUri: `${site}?who=Quarlesworth` },
      ...{ countryCode: 'AU', postalCode: 'Zeldabeth' },
    },
  });
  const folder = join(intake.folder, 'export');
  const request = { advertiserId, applicationId: intake.id, folder, by: 'test', signal: signal() };
  expect(await exportPerson(intake, request)).toMatchObject({ prefills: 1, files: 1, missing: 0 });
  const text = readFileSync(join(folder, 'export.json'), 'utf8');
  expect(text).toContain(`${site}?who=Quarlesworth`);
  const [file] = (JSON.parse(text) as { files: { path: string }[] }).files;
  expect(readFileSync(join(folder, file?.path ?? ''), 'utf8')).toBe(zeldaResume.content);
  rmSync(folder, { recursive: true });

  const [receipt] = await eraseAt(intake, { by: 'address', email });
  expect(receipt?.counts).toMatchObject({ applications: 1, prefills: 1 });
  expect(await findZelda(intake)).toEqual([]);
  expect(await intake.keys()).toEqual([]);
  expect(await database.query(`SELECT outcome, form_url, return_url, country_code FROM intake.prefills`)).toEqual([
    { outcome: 'erased', form_url: home, return_url: home, country_code: 'AU' },
  ]);
});

test('every column of prefills is judged: it is emptied with the person, or says nothing of one', async () => {
  const harmless = [
    ...['advertiser_id', 'prefill_id', 'outcome', 'reason', 'country_code', 'resume_reason'],
    ...['created_at', 'authorized_at', 'prefilled_at', 'expires_at', 'redeemed_at', 'ended_at'],
    ...['resume_stored_at', 'resume_put_until'],
  ];
  const source = readFileSync('src/store/prefill/prefills.ts', 'utf8');
  const columns = await database.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = 'intake.prefills'::regclass AND attnum > 0 AND NOT attisdropped`,
  );
  const unjudged = columns.filter(
    ({ name }) => !harmless.includes(name) && !new RegExp(`\\b${name} = NULL|'${name}'`).test(source),
  );
  expect(unjudged, 'add it to `emptied` in src/store/prefill/prefills.ts, or to `harmless` here').toEqual([]);
});

test('a prefill that came to nothing does not keep what the careers site wrote into its addresses: nobody could find it there', async () => {
  await using intake = await openSmallIntake({ database });
  const site = 'https://careers.example.com/';
  await database.query(
    `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, form_url, return_url, profile, created_at, prefilled_at, expires_at, ended_at)
     SELECT 1, gen_random_uuid(), o, $1 || 'apply?who=Quarlesworth', $1 || '#Quarlesworth', CASE WHEN o = 'prefilled' THEN '{}'::jsonb END,
       now() - interval '2 days', now() - interval '2 days', now() - interval '1 day', CASE WHEN o IN ('denied', 'failed') THEN now() - interval '2 days' END
     FROM unnest('{prefilled,denied,failed,started}'::text[]) AS o`,
    [site],
  );
  await intake.store.prefills.lapsePrefills();
  expect(await database.query(`SELECT outcome, form_url, return_url FROM intake.prefills`)).toEqual([
    { outcome: 'lapsed', form_url: site, return_url: site },
  ]);
  expect(await findZelda(intake)).toEqual([]);
});

/** Everything that is held was first seen so many days earlier than it was. */
const age = (days: number) =>
  database.query(`UPDATE intake.applications SET first_seen_at = first_seen_at - $1 * interval '1 day'`, [days]);

describe('retention', () => {
  test('erases what has come of age, and is braked when that is more than the days passing explain', async () => {
    await using intake = await openSmallIntake({ database });
    const old = Date.UTC(2020, 1, 1);
    intake.board.add(Array.from({ length: 120 }, (_, at) => ({ attachments: [], submittedAt: old + at * 1_000 })));
    await intake.receive([{ attachments: [] }]);
    await age(10_000);
    const advertisers = [intake.board.advertiserId];
    const request = { advertisers, before: new Date(Date.UTC(2025, 0, 1)), by: 'retention', signal: signal() };
    expect(await retain(intake, { ...request, released: false })).toEqual({ erased: 0, braked: 120 });
    const due = () => database.query(`SELECT retention_due FROM intake.advertisers`);
    expect(await due()).toEqual([{ retention_due: '120' }]);
    const few = { ...request, before: new Date(old + 99_500) };
    expect(await retain(intake, { ...few, released: false })).toEqual({ erased: 100, braked: 0 });
    expect(await due()).toEqual([{ retention_due: null }]);
    expect(await retain(intake, { ...request, released: true })).toEqual({ erased: 20, braked: 0 });
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications WHERE erased_at IS NULL`)).toEqual([
      { n: 1 },
    ]);
    await intake.sweep(true);
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications WHERE erased_at IS NULL`)).toEqual([
      { n: 1 },
    ]);
  });

  test.for([
    ['1970', 0],
    ['2999', Date.UTC(2999, 0, 1)],
  ] as const)(
    'keeps an application that arrived today with a date of %s, until it has been here as long',
    async ([_, submittedAt]) => {
      await using intake = await openSmallIntake({ database });
      await intake.receive([{ attachments: [], submittedAt }]);
      const advertisers = [intake.board.advertiserId];
      const before = new Date(Date.now() - 365 * 86_400_000);
      const request = { advertisers, before, released: false, by: 'retention', signal: signal() };
      expect(await retain(intake, request)).toEqual({ erased: 0, braked: 0 });
      await age(366);
      expect(await retain(intake, request)).toEqual({ erased: 1, braked: 0 });
    },
  );

  test.for([
    ['worker', 365 * 86_400_000, 0],
    ['database', 0, 365],
  ] as const)('erases nothing because the clock of the %s is a year ahead', async ([_, aheadMs, days]) => {
    await using intake = await openSmallIntake({ database });
    await intake.receive([{ attachments: [], submittedAt: Date.now() - 86_400_000 }]);
    // A database whose clock is ahead has times that lie further back.
    await age(days);
    await database.query(`UPDATE intake.applications SET submitted_at = submitted_at - make_interval(days => $1)`, [
      days,
    ]);
    const now = () => Date.now() + aheadMs - days * 86_400_000;
    await runMaintenance(intake, { RETENTION: '30d' }, { now });
    expect(await database.query(`SELECT 1 FROM intake.applications WHERE erased_at IS NULL`)).toHaveLength(1);
  });

  test('reaches what waits in quarantine and prefills that were redeemed', async () => {
    await using intake = await openSmallIntake({ database });
    const { advertiserId } = intake.board;
    intake.board.add([{ attachments: [] }]);
    for (const email of [zelda.email, 'fresh@example.com']) {
      show(intake, `{"ID":"none","Email":"${email}"}`);
    }
    await intake.sweep();
    await database.query(
      `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, form_url, return_url, profile, created_at, prefilled_at, redeemed_at)
       SELECT $1, gen_random_uuid(), 'redeemed', 'https://x', 'https://x', p.profile, p.at, p.at, p.at
       FROM (VALUES ('{"name":"Quarlesworth"}'::jsonb, now() - interval '400 days'), ('{}', now())) AS p (profile, at)`,
      [advertiserId],
    );
    const before = new Date(Date.now() - 365 * 86_400_000);
    const request = { advertisers: [advertiserId], before, released: false, by: 'retention', signal: signal() };
    expect(await retain(intake, request)).toEqual({ erased: 0, braked: 0 });
    const names = () => database.query(`SELECT outcome, profile FROM intake.prefills ORDER BY created_at`);
    expect(await names()).toEqual([
      { outcome: 'erased', profile: null },
      { outcome: 'redeemed', profile: {} },
    ]);
    await database.query(
      `UPDATE intake.quarantine SET first_seen_at = first_seen_at - interval '366 days' WHERE raw->>'Email' = $1`,
      [zelda.email],
    );
    await retain(intake, request);
    await intake.sweep(true);
    expect(await database.query(`SELECT raw->>'Email' AS email FROM intake.quarantine`)).toEqual([
      { email: 'fresh@example.com' },
    ]);
    expect(await findZelda(intake)).toEqual([]);
  });
});

test('retention by the command and by the worker reaches accounts that are no longer configured, unless one is named', async () => {
  await using intake = await openSmallIntake({ database });
  await intake.receive([{ attachments: [], submittedAt: Date.UTC(2020, 1, 1) }]);
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('given-up', 8)`);
  await database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, content_hash, observed_seq)
     VALUES (8, 1, '2020-02-01', '\\x00', 1)`,
  );
  await age(10_000);
  const env = { ...toEnvironment(database, intake.board, join(intake.folder, 'blobs')), RETENTION: '365d' };
  const { stdout } = await callIntake(['erase', '--retention', '--dry-run', '--json'], env);
  const found = (advertiserId: bigint) => ({ advertiserId: String(advertiserId), counts: { applications: 1 } });
  expect(JSON.parse(stdout)).toMatchObject({ advertisers: [found(intake.board.advertiserId), found(8n)] });
  const left = () =>
    database.query<{ id: string }>(`SELECT advertiser_id AS id FROM intake.applications WHERE erased_at IS NULL`);
  expect(await callIntake(['erase', '--retention', '--yes', '--advertiser', 'default'], env)).toMatchObject({
    code: 0,
  });
  expect(await left()).toEqual([{ id: '8' }]);
  await runMaintenance(intake, { RETENTION: '365d' });
  expect(await left()).toEqual([]);
});

test('an account that is configured wrongly keeps no other’s people from being erased', async () => {
  await using intake = await openWithZelda();
  await intake.runDownloads();
  const { advertiserId, credential } = intake.board;
  const wrong = advertiserId + 1n;
  await intake.store.advertisers.ensure('other', wrong);
  await database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq, submitted_at, first_seen_at)
     VALUES ($1, 1, '', 0, '2020-01-01Z', '2020-01-01Z')`,
    [wrong],
  );
  await begin(intake, intake.sought);
  const accounts = [
    { name: 'default', credential, advertiserId: String(wrong + 1n) },
    { name: 'other', credential, advertiserId: String(wrong) },
  ];
  const file = join(intake.folder, 'advertisers.json');
  writeFileSync(file, JSON.stringify(accounts));
  await runMaintenance(intake, { SOURCE_CREDENTIAL: '', ADVERTISERS_FILE: file, RETENTION: '365d' });
  expect(await findZelda(intake)).toEqual([]);
  expect(await database.query(`SELECT erased_at FROM intake.applications WHERE advertiser_id = $1`, [wrong])).toEqual([
    { erased_at: expect.any(Date) },
  ]);
});

// The copies are ranked by their hashes, so either of them may come first.
test.for(['a', 'b', 'c', 'd'])('an erased id does not come back as that of a second person: %s', async (x) => {
  await using intake = await openSmallIntake({ database });
  const { firstName, lastName, phone } = zelda;
  const [id = 0n] = intake.board.add([{ firstName, lastName, phone, email: '', jobSeekerId: '', attachments: [] }]);
  await intake.sweep();
  await eraseAt(intake, { by: 'application', applicationId: id });
  show(intake, `{"ID":${id},"FirstName":"Jo ${x}"}`);
  await intake.sweep(true);
  expect(await findZelda(intake)).toEqual([]);
});

describe('an element in quarantine', () => {
  test('does not come back when a member of it changes', async () => {
    await using intake = await openSmallIntake({ database });
    intake.board.add([{ attachments: [] }]);
    const read = (members: string) => {
      intake.board.clearFaults();
      show(intake, `{"ID":"x-1",${members}}`);
      return intake.sweep(true);
    };
    const stable = `"JobSeekerID":"${zelda.jobSeekerId}","DateSubmitted":"/Date(1700000000000+1000)/"`;
    await read(`${stable},"Email":"${zelda.email}","LastName":"Quarlesworth"`);
    await eraseAt(intake, { by: 'address', email: zelda.email });
    await read(`${stable},"Email":"${zelda.email}","LastName":"Quarlesworth-Smith"`);
    await read(`${stable},"Email":"zelda@quarlesworth.example","Phone":"${zelda.phone}","Token":"{{volatile}}"`);
    expect(await findZelda(intake)).toEqual([]);
    // Another application of the same account is another element.
    await read(`"JobSeekerID":"${zelda.jobSeekerId}","DateSubmitted":"/Date(1800000000000+1000)/"`);
    expect(await database.query(`SELECT seen FROM intake.quarantine`)).toEqual([{ seen: 1 }]);
  });

  test('is erased with the application that it became, even if its address changed', { tags: ['slow'] }, async () => {
    await using intake = await openSmallIntake({ database });
    const { store, board } = intake;
    const { advertiserId } = board;
    board.add([{ email: 'new@example.com', jobSeekerId: '7788', attachments: [] }]);
    show(intake, `{"ID":"none","Email":"${zelda.email}"}`);
    await intake.sweep();
    await database.query(
      `UPDATE intake.quarantine SET resolved_at = now(), application_id = (SELECT application_id FROM intake.applications)`,
    );
    for (const sought of [
      { by: 'address', email: 'new@example.com' },
      { by: 'jobseeker', jobSeekerId: '7788' },
    ] as const) {
      const { counts } = await store.privacy.findPerson(advertiserId, sought);
      expect(counts, sought.by).toMatchObject({ applications: 1, quarantined: 1 });
    }
    await begin(intake, { by: 'address', email: 'new@example.com' });
    expect(await database.query(`SELECT 1 FROM intake.quarantine`)).toEqual([]);
  });
});

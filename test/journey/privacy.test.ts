// A person's rights as an operator serves them: erased for good while a worker runs, exported, and never shown without being asked for.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { findTraces } from '../support/database/dump.ts';
import { callIntake, type Ended, runIntake, startIntake } from '../support/processes/intake.ts';
import { test, toResult } from '../support/processes/site.ts';
import { testPrivacyKey, toEnvironment } from '../support/processes/syncing.ts';
import { openSettings } from '../support/processes/worker.ts';
import { zelda, zeldaWords } from '../support/zelda.ts';

describe('a person who is erased', () => {
  test('during a download, before three sweeps and a backfill, is gone', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, database, env, folder, intake } = await openSite({ applications: 24 });
    // Large enough for the spool; its second piece does not come while the test runs.
    const content = 'zeldas resume '.repeat(700_000);
    const [id] = board.add([{ ...zelda, attachments: [{ kind: 'resume', content, fileName: 'zelda-cv.pdf' }] }]);
    const slowly = { pieceBytes: 9_000_000, everyMs: 600_000 };
    board.fault({ kind: 'drip', on: 'resume', applicationId: id, times: null, ...slowly });
    const temporary = join(folder, 'temporary');
    mkdirSync(temporary);
    Object.assign(env, { LEASE: '3s', TMPDIR: temporary });
    const texts: Record<string, string> = {};
    const keep = (name: string, { stdout, stderr }: Ended) => {
      texts[name] = stdout + stderr;
    };

    const worker = startIntake(['worker'], { ...env, LOG_LEVEL: 'trace' });
    await expect
      .poll(() =>
        database.query(`SELECT 1 FROM intake.downloads WHERE application_id = $1 AND lease_token IS NOT NULL`, [id]),
      )
      .toHaveLength(1);
    await expect.poll(() => board.requests().some(({ path }) => path.endsWith(`/resume/${id}`))).toBe(true);
    const erased = await intake(`erase --email ${zelda.email} --yes --json`);
    expect(erased.code, erased.stderr).toBe(0);
    expect(toResult(erased)).toMatchObject({
      erased: true,
      receipts: [{ soughtBy: 'address', counts: { applications: 1 } }],
    });
    keep('erase', erased);
    worker.child.kill('SIGTERM');
    const ended = await worker.ended;
    expect(ended.code).toBe(0);
    keep('worker', ended);

    for (const line of ['sync', 'sync --recheck', 'sync --recheck']) {
      const read = await (line === 'sync' ? runIntake(['sync'], env) : intake(line));
      expect(read.code, read.stderr).toBe(0);
      keep(line, read);
    }
    const backfilled = await intake('backfill --json');
    keep('backfill', backfilled);
    expect(toResult(backfilled)).toMatchObject({ advertisers: [{ certificate: 'proven', added: 0, changed: 0 }] });
    expect(await findTraces({ database, folders: [folder], words: zeldaWords, texts })).toEqual([]);
    expect(readdirSync(temporary, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())).toEqual([]);
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications WHERE erased_at IS NULL`)).toEqual([
      { n: 24 },
    ]);
  });

  test('is shown first, and goes only when told twice', async ({ openSite }) => {
    const { board, database, folder, intake, fill } = await openSite({ applications: 0 });
    const [first, second] = board.add([
      { ...zelda, attachments: [{ kind: 'resume', content: 'zeldas resume' }] },
      { ...zelda, email: 'other.address@example.com', attachments: [] },
    ]);
    await fill();
    for (const how of ['', ' --application 1 --email a@example.com', ' --email nobody', ' --retention']) {
      expect((await intake(`erase${how}`)).code, how).toBe(2);
    }
    const shown = await intake(`erase --job-seeker ${zelda.jobSeekerId}`);
    expect(shown).toMatchObject({ code: 2, stdout: expect.stringContaining('2 applications, 1 file.') });
    expect(shown.stdout).toContain(`${first}, ${second}`);
    expect(shown.stdout).toContain('--yes');
    const dry = await intake(`erase --email ${zelda.email} --dry-run --json`);
    expect(dry.code).toBe(0);
    expect(toResult(dry)).toMatchObject({ erased: false, advertisers: [{ applicationIds: [String(first)] }] });
    expect(await database.query(`SELECT 1 FROM intake.applications WHERE erased_at IS NOT NULL`)).toEqual([]);

    const done = await intake(`erase --job-seeker ${zelda.jobSeekerId} --yes`);
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Receipt [\w-]{36}, closed 2\d{3}-.*2 applications/),
    });
    const again = await intake(`erase --job-seeker ${zelda.jobSeekerId} --yes`);
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^No matching data is stored\. Receipt [\w-]{36}, closed 2\d{3}-/),
    });
    const nobody = await intake('erase --email nobody@example.com --yes --json');
    const [receipt] = toResult(nobody).receipts;
    expect(receipt).toMatchObject({ soughtBy: 'address', counts: { applications: 0, prefills: 0 } });
    expect(await database.query(`SELECT step FROM intake.erasure_jobs WHERE job_id = $1`, [receipt.jobId])).toEqual([
      { step: 'closed' },
    ]);
    expect(await findTraces({ database, folders: [folder], words: ['nobody@example.com'] })).toEqual([]);
    expect(await findTraces({ database, folders: [folder], words: zeldaWords, texts: { said: done.stdout } })).toEqual(
      [],
    );

    const doctor = await intake('doctor', { PRIVACY_KEY: 'another key than the one before' });
    expect(doctor).toMatchObject({
      code: 2,
      stdout: expect.stringContaining('bad  PRIVACY_KEY: is not the key'),
    });
    expect((await intake('doctor')).stdout).toContain('ok   PRIVACY_KEY: matches this database');
  });
});

test('with another PRIVACY_KEY nothing is read: who was erased would return', async ({ openSite }) => {
  const { board, database, folder, intake, fill } = await openSite({ applications: 0 });
  board.add([{ ...zelda, attachments: [] }]);
  // In one answer: an element without an id in every one of them takes fourteen times as many requests.
  const poison = () =>
    board.fault({ kind: 'poison', on: 'list', json: JSON.stringify({ ID: 'none', Email: zelda.email }) });
  poison();
  await fill();
  const erased = await intake(`erase --email ${zelda.email} --yes`);
  expect(erased.stdout).toContain('1 application, 1 element in quarantine');
  const prefill = {
    ...{
      AUTH_URL: board.url,
      OAUTH_CLIENT_ID: 'c',
      OAUTH_CLIENT_SECRET: 's',
      OAUTH_REDIRECT_URI: 'http://127.0.0.1/prefill/callback',
    },
    ...{
      PREFILL_KEY: 'a-key-of-sixteen',
      PREFILL_RETURN_URLS: 'http://127.0.0.1/',
      SESSION_SECRET: 'a-session-secret',
      PORT: '0',
    },
  };

  // Nobody else is held: the tombstones alone have to tell.
  const asked = board.requests().length;
  for (const line of ['sync --recheck', 'backfill', 'quarantine replay', 'worker', 'prefill']) {
    const refused = await intake(line, {
      ...(line === 'prefill' && prefill),
      PRIVACY_KEY: 'another key than the one before',
    });
    expect(refused, line).toMatchObject({ code: 2, stderr: expect.stringContaining('PRIVACY_KEY is not') });
  }
  expect(board.requests()).toHaveLength(asked);
  poison();
  await fill();
  expect(board.requests().length).toBeGreaterThan(asked);
  expect(await findTraces({ database, folders: [folder], words: [...zeldaWords, zelda.email] })).toEqual([]);
});

test('an id of two advertisers is erased and exported when somebody says whose it is', async ({ openSite }) => {
  const others = { applications: 0, firstId: 500_001n };
  const { board, database, folder } = await openSite({ ...others, advertisers: [others] });
  const [mine, yours] = board.advertisers;
  const [id] = mine?.add([{ ...zelda, attachments: [] }]) ?? [];
  expect(yours?.add([{ ...zelda, email: 'somebody.else@example.com', attachments: [] }])).toEqual([id]);
  await using settings = await openSettings(database, board);
  const intake = (line: string) => callIntake(line.split(' '), settings.env);
  const request = join(folder, 'request');
  expect((await intake('backfill --from 2000-01-01')).code).toBe(3);
  const loadHolders = () =>
    database.query(`SELECT advertiser_id FROM intake.applications WHERE erased_at IS NULL ORDER BY advertiser_id`);

  const eraseIt = `erase --application ${id} --yes`;
  const exportIt = `export ${id} --to ${request}`;
  for (const line of [eraseIt, `erase --job-seeker ${zelda.jobSeekerId} --yes`, exportIt]) {
    expect(await intake(line), line).toMatchObject({ code: 2, stderr: expect.stringContaining('--advertiser') });
  }
  expect(await loadHolders()).toHaveLength(2);
  expect(existsSync(request)).toBe(false);
  const dry = await intake(`erase --application ${id} --dry-run --json`);
  expect(toResult(dry).advertisers).toMatchObject([{ counts: { applications: 1 } }, { counts: { applications: 1 } }]);

  // Begun at one and interrupted: the other is the only one held by now, and still not meant.
  const sought = { by: 'application', applicationId: id ?? 0n } as const;
  {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
    await store.erasures.begin({ advertiserId: mine?.advertiserId ?? 0n, sought, by: 'test' });
  }
  expect((await intake(eraseIt)).code).toBe(2);
  const done = await intake(`${eraseIt} --advertiser account-1`);
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('1 application') });
  expect(await loadHolders()).toEqual([{ advertiser_id: String(yours?.advertiserId) }]);
  expect((await intake(exportIt)).code).toBe(0);

  // The accounts were given up, what was read from them is still held.
  const later = toEnvironment(database, board, settings.blobsPath);
  const gone = await callIntake(['erase', '--email', 'somebody.else@example.com', '--yes'], later);
  expect(gone).toMatchObject({ code: 0, stdout: expect.stringContaining('1 application') });
  expect(await loadHolders()).toEqual([]);
});

test('a person who asks gets a folder with every row and file of theirs, and nobody else’s', async ({ openSite }) => {
  const { board, database, folder, intake, fill } = await openSite({ applications: 5 });
  const screens = [
    {
      id: 'S1',
      name: 'Screen',
      successful: false,
      questions: [
        { id: 'Q', type: 'Text', text: 'Why?', answers: [{ id: 'A', text: 'For Quarlesworth', selected: true }] },
      ],
    },
  ];
  const [first, second] = board.add([
    {
      ...zelda,
      attachments: [{ kind: 'resume', content: 'zeldas resume', fileName: '../zelda cv.pdf' }, { kind: 'screen' }],
      screens,
    },
    { ...zelda, attachments: [] },
  ]);
  const poison = (json: string) => board.fault({ kind: 'poison', on: 'list', times: null, json });
  poison(`{"ID":"none","LastName":"Q","JobSeekerID":"${zelda.jobSeekerId}"}`);
  poison('{"ID":"none","LastName":"R","JobSeekerID":"somebody-else"}');
  await fill();
  board.change(first ?? 0n, { attach: [{ kind: 'resume', content: 'zeldas newer resume', fileName: 'new.pdf' }] });
  await fill();

  const request = join(folder, 'request');
  const exported = await intake(`export ${first} --to ${request} --json`);
  expect(exported.code, exported.stderr).toBe(0);
  expect(toResult(exported)).toEqual({
    exports: [
      {
        folder: request,
        applicationIds: [String(first), String(second)],
        leftOut: 0,
        prefills: 0,
        prefillsLeftOut: 0,
        files: 3,
        missing: 0,
      },
    ],
  });
  expect(statSync(request).mode & 0o777).toBe(0o700);
  const { files, rows } = JSON.parse(readFileSync(join(request, 'export.json'), 'utf8'));
  expect(rows.applications).toHaveLength(2);
  expect(rows.applications[0]).toMatchObject({
    application: { email: zelda.email, phone: zelda.phone, raw: { LastName: 'Quarlesworth' } },
    attachments: [{ kind: 'resume', version: 2 }, { kind: 'screen' }],
    attachment_versions: [{ kind: 'resume', version: 1 }],
    screen_answers: [{ text: 'For Quarlesworth', selected: true }],
  });
  expect(rows.applications[0].events.length).toBeGreaterThan(2);
  expect(rows.quarantine).toMatchObject([{ raw: { LastName: 'Q' } }]);
  expect(rows.quarantine).toHaveLength(1);
  for (const { path, sha256 } of files) {
    expect(
      createHash('sha256')
        .update(readFileSync(join(request, path)))
        .digest('hex'),
    ).toBe(sha256);
  }
  expect(readdirSync(join(request, 'files', String(first))).sort()).toEqual([
    'resume-1-zelda_cv.pdf',
    'resume-2-new.pdf',
    expect.stringMatching(/^screen-1-/),
  ]);
  const others = [...board.truth()].filter(({ email }) => email !== zelda.email).map(({ email }) => email ?? '');
  expect(await findTraces({ database: { query: async () => [] }, folders: [request], words: others })).toEqual([]);

  expect(await intake(`export ${first} --to ${request}`)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('already exists'),
  });
  expect((await intake(`export 999999999 --to ${join(folder, 'x')}`)).code).toBe(2);
  expect(existsSync(join(folder, 'x'))).toBe(false);

  await intake(`url ${first} resume`);
  await intake('retry');
  const audit = await database.query(
    `SELECT action, application_id, by, facts FROM intake.audit_log ORDER BY audit_id`,
  );
  expect(audit[0]).toMatchObject({
    action: 'export',
    application_id: String(first),
    facts: { applications: 2, files: 3 },
  });
  expect(audit.at(-1)).toMatchObject({ action: 'url', facts: { kind: 'resume' } });
  expect(JSON.stringify(audit)).not.toMatch(/quarlesworth|zelda/i);
});

test('quarantine tells reasons and ids, shows elements on request, and is read again', async ({ openSite }) => {
  const { board, database, intake, fill } = await openSite({ applications: 3 });
  const [held] = [...board.truth()];
  const poison = (json: string) => board.fault({ kind: 'poison', on: 'list', times: null, json });
  poison('{"ID":"none","Email":"quarles@example.com","JobSeekerID":"s1"}');
  poison('{"ID":"neither","Email":"late@example.com"}');
  await fill();
  board.clearFaults();

  const listed = await intake('quarantine list --json');
  expect(listed.stdout).not.toContain('quarles');
  const elements: { id: string; reason: string }[] = toResult(listed).elements;
  expect(elements).toHaveLength(2);
  const told = await intake('quarantine list');
  expect(told.stdout).toContain(elements[0]?.id.slice(0, 12));
  expect(told.stdout).not.toContain('quarles');
  const shown = await Promise.all(elements.map(({ id }) => intake(`quarantine list --show ${id}`)));
  expect(shown.map(({ stdout }) => stdout).join('')).toContain('quarles@example.com');
  // Not the id of the element: it is a hash of what the element says of a person.
  const entry = { action: 'quarantine', facts: { shown: 1 } };
  expect(await database.query(`SELECT action, facts FROM intake.audit_log`)).toEqual([entry, entry]);

  const still = await intake('quarantine replay');
  expect(still).toMatchObject({ code: 3, stdout: expect.stringContaining('0 parsed') });
  // As if the parser had learned to read them: one is new, the other is an older copy of one that is held.
  await database.query(
    `UPDATE intake.quarantine SET raw = raw || CASE WHEN raw->>'ID' = 'none' THEN '{"ID":"4711"}' ELSE jsonb_build_object(
       'ID', $1::text, 'Email', (SELECT email FROM intake.applications WHERE application_id = $1::bigint)) END`,
    [held?.id],
  );
  const replayed = await intake('quarantine replay --json');
  expect(replayed.code, replayed.stderr).toBe(0);
  expect(toResult(replayed)).toEqual({ advertisers: [{ name: 'default', read: 2, added: 1, unusable: 0 }] });
  expect(
    await database.query(`SELECT application_id, email FROM intake.applications ORDER BY application_id LIMIT 2`),
  ).toEqual([
    { application_id: '4711', email: 'quarles@example.com' },
    { application_id: String(held?.id), email: held?.email },
  ]);
  expect(await database.query(`SELECT 1 FROM intake.quarantine WHERE resolved_at IS NULL`)).toEqual([]);
  expect((await intake('quarantine list')).stdout).toContain('The quarantine is empty');
});

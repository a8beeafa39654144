// What happens to an extract later: the next one writes only what has changed, and an erasure takes people out of it.
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Manifest } from '../../src/domain/extract/manifest.ts';
import { personalViews } from '../../src/store/postgres/grants.ts';
import { fillFromDemoBoard } from '../support/demo-board.ts';
import { loadLatest } from '../support/duck.ts';
import { compareRows, extract, extractTest } from '../support/extracting.ts';
import { callIntake } from '../support/intake.ts';
import { testPrivacyKey } from '../support/syncing.ts';
import type { TestDatabase } from '../support/test-database.ts';

const test = extractTest.extend('demo', { scope: 'file' }, async ({ database }) => {
  return await fillFromDemoBoard(database, { applications: 200 });
});

const views = ['--views', 'applications_anonymous,attachments,screening_answers,jobs,fingerprints'];

/** Files that the snapshot itself has written. */
const ownFiles = ({ files, snapshot_id }: Manifest) => files.filter(({ path }) => path.includes(snapshot_id));

async function noteEvent(database: TestDatabase, applicationId: string): Promise<void> {
  await database.query(
    `INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
     SELECT advertiser_id, nextval('intake.event_seq'), application_id, 'application.changed', now()
     FROM intake.applications WHERE application_id = $1`,
    [applicationId],
  );
}

async function findReady(database: TestDatabase, month: string): Promise<string> {
  const [row] = await database.query<{ id: string }>(
    `SELECT application_id AS id FROM intake.applications WHERE ready_at IS NOT NULL AND erased_at IS NULL
       AND to_char(submitted_at AT TIME ZONE 'UTC', 'YYYY-MM') = $1 ORDER BY application_id LIMIT 1`,
    [month],
  );
  return row?.id ?? '';
}

describe('--since-last', () => {
  test('writes the partitions with an event, old and new, and refers to earlier files for the rest', async ({
    database,
    demo: _,
    target,
  }) => {
    // A month with an application that waits for files is written every time.
    await database.query(`UPDATE intake.applications SET ready_at = now() WHERE ready_at IS NULL`);
    const first = await extract(database, target, ...views);
    // One application changes in place, another one moves from June to July.
    const [changed, moved] = [await findReady(database, '2026-03'), await findReady(database, '2026-06')];
    await database.query(`UPDATE intake.applications SET job_reference = 'other' WHERE application_id = $1`, [changed]);
    await database.query(
      `UPDATE intake.applications SET submitted_at = '2026-07-15 12:00+00' WHERE application_id = $1`,
      [moved],
    );
    for (const id of [changed, moved]) await noteEvent(database, id);
    const second = await extract(database, target, '--since-last');
    await compareRows(database, target, second);
    const months = new Set(
      ownFiles(second)
        .filter(({ view }) => view === 'applications_anonymous')
        .map((one) => one.partition),
    );
    expect([...months]).toEqual(expect.arrayContaining(['2026-03', '2026-06', '2026-07']));
    expect(ownFiles(second).length).toBeLessThan(first.files.length / 1.5);
    expect(second.files.filter(({ path }) => path.includes(first.snapshot_id)).length).toBeGreaterThan(5);
    expect(second.previous).toBe(`snapshots/${first.snapshot_id}.json`);
  });

  test('writes everything where the events since then are gone', { tags: ['slow'] }, async ({
    database,
    demo: _,
    target,
  }) => {
    await extract(database, target, '--views', 'applications_anonymous');
    await database.query(`INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
      SELECT advertiser_id, nextval('intake.event_seq'), 1, 'application.received', now() FROM intake.advertisers`);
    await database.query(`DELETE FROM intake.events e WHERE event_id < (SELECT max(event_id) FROM intake.events)`);
    const quiet = await findReady(database, '2026-04');
    await database.query(`UPDATE intake.applications SET job_reference = 'unseen' WHERE application_id = $1`, [quiet]);
    const second = await extract(database, target, '--since-last');
    // Equal bytes are not written twice.
    expect(ownFiles(second).map(({ partition }) => partition)).toEqual(['2026-04']);
    expect(second.files.length).toBeGreaterThan(5);
    await compareRows(database, target, second);
  });

  test('keeps as many snapshots as EXTRACT_KEEP says', { tags: ['slow'] }, async ({ database, demo: _, target }) => {
    for (let times = 0; times < 4; times++) await extract(database, target, '--views', 'jobs');
    const env = { DATABASE_URL: database.url, PRIVACY_KEY: testPrivacyKey, EXTRACT_KEEP: '2' };
    const args = ['extract', '--to', `file:${target}`, '--since-last'];
    expect(await callIntake(args, env)).toMatchObject({ code: 0 });
    expect(await readdir(join(target, 'snapshots'))).toHaveLength(2);
  });
});

describe('an erasure', () => {
  /** Every object of a target whose bytes hold this text. */
  async function findText(folder: string, text: string): Promise<string[]> {
    const names = (await readdir(folder, { recursive: true })).filter((name) => /\.(?:parquet|json)$/.test(name));
    return names.filter((name) => readFileSync(join(folder, name)).includes(text));
  }

  test('reaches every snapshot of an extract with people, and leaves the others in it', async ({
    database,
    demo,
    target,
  }) => {
    const person = demo.truth.find(({ email, screens }) => (email ?? '').length > 12 && screens.length > 0);
    const { id, email } = { id: person?.id ?? 0n, email: person?.email ?? '' };
    // The demo's files have rows, but no bytes to erase.
    await database.query(`DELETE FROM intake.attachments WHERE application_id = $1`, [id]);
    const people = ['--views', 'applications_anonymous', '--with-people'];
    await extract(database, target, ...people);
    const before = await extract(database, target, ...people);
    expect((await findText(target, email)).length).toBeGreaterThanOrEqual(2);
    expect((await findText(target, email)).filter((name) => !name.startsWith('people/'))).toEqual([]);

    const env = {
      ...{
        DATABASE_URL: database.url,
        PRIVACY_KEY: testPrivacyKey,
        SOURCE_URL: 'http://127.0.0.1:1',
        SOURCE_CREDENTIAL: 'x',
      },
      BLOBS_URL: `file:${target}-blobs`,
    };
    const { code, stdout, stderr } = await callIntake(['erase', '--application', String(id), '--yes', '--json'], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(await findText(target, email)).toEqual([]);
    const { receipts } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as {
      receipts: { counts: { extractFiles: string[] } }[];
    };
    const after = loadLatest(target);
    const gone = before.files.filter(({ path }) => !after.files.some((file) => file.path === path));
    expect(gone.length).toBeGreaterThanOrEqual(1);
    expect(receipts[0]?.counts.extractFiles).toEqual(expect.arrayContaining(gone.map(({ path }) => path)));
    // The rows of all others are as they were.
    const count = ({ files }: Manifest) =>
      files.filter(({ view }) => view === 'applications').reduce((sum, { rows }) => sum + rows, 0);
    expect(count(after)).toBe(count(before) - 1);
    await compareRows(database, target, { ...after, columns: pickPeople(after) });
    // The next snapshot leaves the application out of the anonymous files as well.
    await compareRows(database, target, await extract(database, target, '--since-last'));
  });

  const pickPeople = ({ columns }: Manifest) =>
    Object.fromEntries(Object.entries(columns).filter(([view]) => personalViews.includes(view)));
});

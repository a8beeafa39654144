// What happens to an extract later: the next one writes only what has changed, and an erasure takes people out of it.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, expect } from 'vitest';
import { openDiskBlobs } from '../../../src/blobs/disk.ts';
import type { Manifest } from '../../../src/domain/extract/manifest.ts';
import { anonymousViews, personalViews } from '../../../src/store/postgres/grants.ts';
import { openStore } from '../../../src/store/store.ts';
import { loadPublished } from '../../../src/sync/extract/publish.ts';
import { type DemoTruth, fillFromDemoBoard } from '../../support/database/demo-board.ts';
import { openTestDatabase, type TestDatabase } from '../../support/database/test-database.ts';
import { openTable } from '../../support/extract/arrow.ts';
import { loadLatest } from '../../support/extract/duck.ts';
import { compareRows, extract, extractTest, readWhole } from '../../support/extract/extracting.ts';
import { callIntake, runIntake } from '../../support/processes/intake.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';

const test = extractTest.extend('demo', { scope: 'file' }, async ({ database }) => {
  return await fillFromDemoBoard(database, { applications: 80 });
});

interface Fixtures {
  readonly database: TestDatabase;
  readonly demo: DemoTruth;
  readonly target: string;
}

const views = ['--views', 'applications_anonymous,attachments,jobs,fingerprints'];

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
  test('writes the partitions with an event, and refers to earlier files', async ({ database, demo: _, target }) => {
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
    const second = await extract(database, target, '--since-last', ...views);
    await compareRows(database, target, second);
    const months = new Set(
      ownFiles(second)
        .filter(({ view }) => view === 'applications_anonymous')
        .map((one) => one.partition),
    );
    expect([...months]).toEqual(expect.arrayContaining(['2026-03', '2026-06', '2026-07']));
    expect(ownFiles(second).length).toBeLessThan(first.files.length / 1.5);
    // Their descriptions are held in memory once.
    const blobs = await openDiskBlobs(target);
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
    const { chain } = await loadPublished(store, blobs, `file:${target}`, AbortSignal.timeout(60_000));
    const [latest = [], before = []] = chain.map(({ files }) => files);
    expect(latest.filter((file) => before.includes(file))).toHaveLength(latest.length - ownFiles(second).length);
    expect(second.files.filter(({ path }) => path.includes(first.snapshot_id)).length).toBeGreaterThan(5);
    expect(second.previous).toBe(`snapshots/${first.snapshot_id}.json`);
  });

  test('writes every view that is asked for, whatever there was before', async ({ database, demo: _, target }) => {
    await extract(database, target, '--views', 'jobs', '--with-people');
    const second = await extract(database, target, '--since-last');
    expect(Object.keys(second.columns)).toEqual(anonymousViews);
  });

  test('refers to files of snapshots that have expired', async ({ database, demo: _, target }) => {
    const env = { DATABASE_URL: database.url, PRIVACY_KEY: testPrivacyKey, EXTRACT_KEEP: '2' };
    const only = ['--views', 'applications_anonymous'];
    const args = ['extract', '--to', `file:${target}`, '--since-last', ...only];
    const first = await extract(database, target, ...only);
    for (let times = 0; times < 3; times++) expect(await callIntake(args, env)).toMatchObject({ code: 0 });
    const last = readWhole(target);
    expect(await readdir(join(target, 'snapshots'))).toHaveLength(2);
    expect(last.files.filter(({ path }) => path.includes(first.snapshot_id)).length).toBeGreaterThan(5);
  });

  const edits = {
    'the events since then are gone': ({ database }: Fixtures) =>
      database.query(
        `INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
         SELECT advertiser_id, nextval('intake.event_seq'), 1, 'application.received', now() FROM intake.advertisers;
         DELETE FROM intake.events e WHERE event_id < (SELECT max(event_id) FROM intake.events)`,
      ),
    // What the restore took back has no event, and the event of that number is another one.
    'a restored database has given the last number again': ({ database }: Fixtures) =>
      database.query(
        `UPDATE intake.events SET at = clock_timestamp() WHERE event_id = (SELECT max(event_id) FROM intake.events)`,
      ),
    // Its views may have had other definitions.
    'another version wrote the snapshot before': async ({ target }: Fixtures) => {
      const before = loadLatest(target);
      const path = join(target, `snapshots/${before.snapshot_id}.json`);
      writeFileSync(path, JSON.stringify({ ...before, version: '0.9.0' }));
    },
  };

  test.for(Object.entries(edits))('writes everything where %s', async ([, edit], { database, demo, target }) => {
    await database.query(`UPDATE intake.applications SET ready_at = now() WHERE ready_at IS NULL`);
    await extract(database, target, '--views', 'applications_anonymous');
    await edit({ database, demo, target });
    const quiet = await findReady(database, '2026-04');
    await database.query(
      `UPDATE intake.applications SET job_reference = concat('not ', job_reference) WHERE application_id = $1`,
      [quiet],
    );
    const second = await extract(database, target, '--views', 'applications_anonymous', '--since-last');
    // Equal bytes are not written twice.
    expect(ownFiles(second).map(({ partition }) => partition)).toEqual(['2026-04']);
    expect(second.files.length).toBeGreaterThan(5);
    await compareRows(database, target, second);
  });

  test('writes everything where a file of the one before is deleted', async ({ database, demo: _, target }) => {
    const first = await extract(database, target, '--views', 'applications_anonymous');
    const lost = first.files.find(({ partition }) => partition === '2026-04')?.path ?? '';
    rmSync(join(target, lost));
    await extract(database, target, '--views', 'applications_anonymous', '--since-last');
    await compareRows(database, target, readWhole(target));
  });
});

describe('an erasure', () => {
  interface Person {
    readonly id: bigint;
    readonly email: string;
  }

  /** Every file below a folder that holds a person: in its bytes, footers too, or in a row, whose page may be compressed. */
  async function findPerson(folder: string, { id, email }: Person): Promise<string[]> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const hasRow = (path: string) => {
      const isPersonal = relative(folder, path).startsWith('people/');
      const rows = path.endsWith('.parquet') ? openTable(path).toArray() : [];
      return rows.some(
        (row) =>
          (isPersonal && row.application_id === id) ||
          Object.values(row).some((value) => String(value).includes(email)),
      );
    };
    return paths
      .filter((path) => readFileSync(path).includes(email) || hasRow(path))
      .map((path) => relative(folder, path));
  }

  const people = ['--views', 'applications_anonymous', '--with-people'];

  const toEnv = (database: TestDatabase, target: string) => ({
    ...{ DATABASE_URL: database.url, PRIVACY_KEY: testPrivacyKey, LEASE: '1s' },
    ...{ SOURCE_URL: 'http://127.0.0.1:1', SOURCE_CREDENTIAL: 'x', BLOBS_URL: `file:${target}-blobs` },
  });

  const toArgs = ({ id }: Person) => ['erase', '--application', String(id), '--yes', '--json'];

  /** The files that a receipt of an erasure names. */
  const toErasedFiles = (stdout: string) => {
    const { receipts } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as {
      receipts: { counts: { extractFiles: string[] } }[];
    };
    return receipts[0]?.counts.extractFiles ?? [];
  };

  /** Somebody who applied once, so that nobody else has the address. The demo's files have rows, but no bytes to erase. */
  async function choosePerson(database: TestDatabase, demo: DemoTruth): Promise<Person> {
    // The folders of other tests are gone.
    await database.query(`DELETE FROM intake.extracts`);
    const gone = await database.query<{ id: string }>(
      `SELECT application_id AS id FROM intake.applications WHERE erased_at IS NOT NULL`,
    );
    const isAlone = ({ email }: { readonly email: string | null }) =>
      demo.truth.filter((other) => other.email === email).length === 1;
    const person = demo.truth.find(
      (one) =>
        (one.email ?? '').length > 12 &&
        one.screens.length > 0 &&
        isAlone(one) &&
        !gone.some(({ id }) => id === String(one.id)),
    );
    const { id, email } = { id: person?.id ?? 0n, email: person?.email ?? '' };
    await database.query(`DELETE FROM intake.attachments WHERE application_id = $1`, [id]);
    return { id, email };
  }

  test('reaches every snapshot with people, and leaves the others in it', async ({ database, demo, target }) => {
    const person = await choosePerson(database, demo);
    await extract(database, target, ...people);
    const before = await extract(database, target, ...people);
    expect((await findPerson(target, person)).length).toBeGreaterThanOrEqual(2);
    expect((await findPerson(target, person)).filter((name) => !name.startsWith('people/'))).toEqual([]);

    const { code, stdout, stderr } = await callIntake(toArgs(person), toEnv(database, target));
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(await findPerson(target, person)).toEqual([]);
    const after = loadLatest(target);
    const gone = before.files.filter(({ path }) => !after.files.some((file) => file.path === path));
    expect(gone.length).toBeGreaterThanOrEqual(1);
    expect(toErasedFiles(stdout)).toEqual(expect.arrayContaining(gone.map(({ path }) => path)));
    // The rows of all others are as they were.
    const count = ({ files }: Manifest, one: string) =>
      files.filter(({ view }) => view === one).reduce((sum, { rows }) => sum + rows, 0);
    expect(count(after, 'applications')).toBe(count(before, 'applications') - 1);
    await compareRows(database, target, { ...after, columns: pickPeople(after) });
    // The next snapshot leaves the application out of the anonymous files as well.
    const next = await extract(database, target, '--since-last', ...people);
    for (const view of ['applications', 'applications_anonymous'])
      expect(count(next, view)).toBe(count(before, view) - 1);
  });

  const name =
    'killed at %s shows a whole snapshot; the next run takes the person out and names every file in the receipt';
  const killAt = async (point: string, { database, demo, target }: Fixtures) => {
    const person = await choosePerson(database, demo);
    await extract(database, target, ...people);
    const before = await extract(database, target, ...people);
    const held = await findPerson(target, person);
    expect(held.length).toBeGreaterThanOrEqual(2);
    const env = toEnv(database, target);
    expect((await runIntake(toArgs(person), { ...env, INTAKE_CRASH_AT: point })).code).toBeNull();
    const seen = readWhole(target);
    const isPublished = ['extractPublished', 'extractErased'].includes(point);
    expect(seen.snapshot_id !== before.snapshot_id).toBe(isPublished);
    // What the killed process held would lapse after half a minute.
    await database.query(`DELETE FROM intake.leases WHERE name LIKE 'extract %'`);
    const { code, stdout } = await callIntake(toArgs(person), env);
    expect(code).toBe(0);
    expect(await findPerson(target, person)).toEqual([]);
    expect(toErasedFiles(stdout)).toEqual(expect.arrayContaining(held));
    const after = readWhole(target);
    const listed = (await readdir(target, { recursive: true })).filter((path) => path.endsWith('.parquet'));
    expect(listed.sort()).toEqual(after.files.map(({ path }) => path).sort());
    expect(await readdir(join(target, 'snapshots'))).toEqual([`${after.snapshot_id}.json`]);
  };
  test.for(['extractErased'])(name, killAt);
  test.for(['extractPut', 'extractDescribed', 'extractPublished'])(name, { tags: ['slow'] }, killAt);

  test('reaches every target that is there while another one is not', async ({ database, demo, target }) => {
    const person = await choosePerson(database, demo);
    await extract(database, target, ...people);
    expect(await findPerson(target, person)).not.toEqual([]);
    await database.query(
      `INSERT INTO intake.extracts (location, with_people, snapshot_id, published_at) VALUES ('away', true, '', now())`,
    );
    const env = toEnv(database, target);
    const { code, stderr } = await callIntake(toArgs(person), env);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('The extract at away') });
    expect(await findPerson(target, person)).toEqual([]);
    await database.query(`DELETE FROM intake.extracts WHERE location = 'away'`);
    expect(await callIntake(toArgs(person), env)).toMatchObject({ code: 0 });
  });

  test('of the only person leaves a file without rows, so that readers find its columns', async ({ target }) => {
    await using database = await openTestDatabase();
    await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('default', 1)`);
    const person = await insertPerson(database);
    const env = toEnv(database, target);
    // Nothing is proven of this account.
    expect(await callIntake(['extract', '--to', `file:${target}`, ...people], env)).toMatchObject({ code: 3 });
    expect(await callIntake(toArgs(person), env)).toMatchObject({ code: 0 });
    const own = readWhole(target).files.filter(({ view }) => view === 'applications');
    expect(own).toMatchObject([{ rows: 0, min_id: null, max_id: null }]);
  });

  async function insertPerson(database: TestDatabase): Promise<Person> {
    const person = { id: 999_999_999n, email: 'qzjxkvw.pflmb@example.com' };
    await database.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, email, raw, content_hash, observed_seq, changed_at)
       SELECT advertiser_id, $1, now(), $2, '{}', '', 1, now() FROM intake.advertisers`,
      [person.id, person.email],
    );
    return person;
  }

  test('reaches what a killed extract left, and keeps the snapshots', async ({ database, demo: _, target }) => {
    await database.query(`DELETE FROM intake.extracts`);
    const first = await extract(database, target, ...people);
    // It refers to the same files, so neither of them may hold the person.
    const second = await extract(database, target, '--since-last', ...people);
    const person = await insertPerson(database);
    const env = toEnv(database, target);
    const args = ['extract', '--to', `file:${target}`, ...people];
    expect((await runIntake(args, { ...env, INTAKE_CRASH_AT: 'extractWritten' })).code).toBeNull();
    expect(await findPerson(target, person)).toHaveLength(1);
    await database.query(`DELETE FROM intake.leases WHERE name LIKE 'extract %'`);
    expect(await callIntake(toArgs(person), env)).toMatchObject({ code: 0 });
    expect(await findPerson(target, person)).toEqual([]);
    const after = readWhole(target);
    expect(after.files).toEqual(second.files);
    expect(after.snapshot_id > second.snapshot_id).toBe(true);
    const kept = [first, second, after].map((one) => `${one.snapshot_id}.json`);
    expect((await readdir(join(target, 'snapshots'))).sort()).toEqual(kept);
  });

  const pickPeople = ({ columns }: Manifest) =>
    Object.fromEntries(Object.entries(columns).filter(([view]) => personalViews.includes(view)));
});

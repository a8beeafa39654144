// An extract is a whole snapshot with its certificate, or not there.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parquetMetadata } from 'hyparquet';
import { describe, expect } from 'vitest';
import { z } from 'zod';
import { openDiskBlobs } from '../../../src/blobs/disk.ts';
import type { Manifest } from '../../../src/domain/extract/manifest.ts';
import type { Row } from '../../../src/store/postgres/database.ts';
import { anonymousViews, personalViews } from '../../../src/store/postgres/grants.ts';
import { openStore } from '../../../src/store/store.ts';
import { holdLane } from '../../../src/sync/accounts/held-lane.ts';
import { erasePeople } from '../../../src/sync/extract/erase-people.ts';
import { extract as runExtract, toLane } from '../../../src/sync/extract/extract.ts';
import { openParquet } from '../../../src/sync/extract/parquet.ts';
import { openSpool } from '../../../src/sync/files/spool.ts';
import { fillFromDemoBoard } from '../../support/database/demo-board.ts';
import type { TestDatabase } from '../../support/database/test-database.ts';
import { loadLatest, openDuck } from '../../support/extract/duck.ts';
import { compareRows, extract, extractTest, readWhole } from '../../support/extract/extracting.ts';
import { callIntake, runIntake } from '../../support/processes/intake.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';
import { until } from '../../support/suite/until.ts';

const test = extractTest.extend('demo', { scope: 'file' }, async ({ database }) => {
  return await fillFromDemoBoard(database, { applications: 100 });
});

interface Fixtures {
  readonly database: TestDatabase;
  readonly demo: object;
  readonly target: string;
}

describe('a snapshot', () => {
  test("holds people's columns on request", { tags: ['slow'] }, async ({ database, demo: _, target }) => {
    const manifest = await extract(database, target, '--with-people');
    expect(Object.keys(manifest.columns)).toEqual([...anonymousViews, ...personalViews]);
    await compareRows(database, target, manifest);
    const people = manifest.files.filter(({ view }) => personalViews.includes(view));
    expect(people.length).toBeGreaterThan(30);
    expect(people.filter(({ path }) => !path.startsWith('people/'))).toEqual([]);
    const hasStatistics = ({ path }: { readonly path: string }) => {
      const { buffer, byteOffset, byteLength } = readFileSync(join(target, path));
      const { row_groups } = parquetMetadata(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer);
      return row_groups.some(({ columns }) => columns.some((column) => column.meta_data?.statistics !== undefined));
    };
    expect(people.filter(hasStatistics)).toEqual([]);
    expect(manifest.files.filter(({ view, rows }) => view === 'jobs' && rows > 0).every(hasStatistics)).toBe(true);
  });

  test('names its files with rows, sizes and hashes, and what is proven', async ({ database, demo, target }) => {
    const told = await extract(database, target);
    const manifest = loadLatest(target);
    expect(told).toMatchObject(manifest);
    for (const { path, bytes, sha256 } of manifest.files) {
      const content = readFileSync(join(target, path));
      expect({ path, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }).toEqual({
        path,
        bytes,
        sha256,
      });
    }
    const applications = manifest.files.filter(({ view }) => view === 'applications_anonymous');
    expect(applications.reduce((sum, { rows }) => sum + rows, 0)).toBe(demo.truth.length);
    expect(applications.length).toBeGreaterThan(5);
    const [advertiser] = manifest.advertisers;
    // Without members that the schema does not describe.
    const text = readFileSync('examples/manifest.schema.json', 'utf8');
    const strict = text.replaceAll('"properties":', '"additionalProperties": false, "properties":');
    const schema = z.fromJSONSchema(JSON.parse(strict) as Parameters<typeof z.fromJSONSchema>[0]);
    expect(schema.safeParse(manifest)).toMatchObject({ success: true });
    const [known] = await database.query(
      `SELECT advertiser_id::text, (SELECT max(event_id)::text FROM intake.events) AS position FROM intake.advertisers`,
    );
    expect(advertiser).toMatchObject({
      name: 'default',
      advertiser_id: known?.advertiser_id,
      certificate: 'proven',
      risk: 'none',
      open_ranges: [],
    });
    expect(manifest.event_position).toEqual({ [known?.advertiser_id]: known?.position });
    const listed = (await readdir(target, { recursive: true })).filter((name) => name.endsWith('.parquet'));
    expect(listed.sort()).toEqual(manifest.files.map(({ path }) => path).sort());
  });
});

test('a snapshot shows one moment, whatever is committed meanwhile', async ({ database, demo, target }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  await using blobs = await openDiskBlobs(target);
  const late = 77_777_777n;
  const withSnapshot: typeof store.extracts.withSnapshot = (work) =>
    store.extracts.withSnapshot(async (snapshot) => {
      await database.query(
        `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, raw, content_hash, observed_seq, changed_at)
         SELECT advertiser_id, $1, now(), '{}', '', 1, now() FROM intake.advertisers`,
        [late],
      );
      return await work(snapshot);
    });
  const deps = { store: { ...store, extracts: { ...store.extracts, withSnapshot } }, target: blobs };
  const request = { ...toRequest(target), views: ['applications_anonymous'] };
  const { manifest } = await runExtract({ ...deps, spool: openSpool(target) }, request);
  await database.query(`DELETE FROM intake.applications WHERE application_id = $1`, [late]);
  expect(manifest.files.reduce((sum, { rows }) => sum + rows, 0)).toBe(demo.truth.length);
  await compareRows(database, target, manifest);
});

test('a reader finds texts with characters beyond U+FFFF by their value', async ({ target }) => {
  // Parquet orders texts by bytes, JavaScript by UTF-16: there, a parrot is before a character that could not be stored.
  const texts = ['🦜 a', '\uFFFD b', 'c'];
  const columns = [
    { name: 't', type: 'text', field_id: 1 },
    { name: 'list', type: 'text[]', field_id: 2 },
  ] as const;
  await using spooled = openSpool(target).open();
  const parquet = openParquet(spooled, columns, { statistics: true });
  await parquet.write(texts.map((t) => ({ t, list: [t] })));
  await parquet.finish();
  const { body } = await spooled.finish();
  const path = join(target, 'texts.parquet');
  await writeFile(path, body as Uint8Array);
  using duck = await openDuck(target, { files: [], columns: {} });
  for (const text of texts) {
    const { rows } = await duck.query(`SELECT t FROM read_parquet('${path}') WHERE t = '${text}'`);
    expect(rows).toEqual([[text]]);
  }
});

const listObjects = async (folder: string) =>
  (await readdir(folder, { recursive: true })).filter((name) => /\.(?:parquet|json)$/.test(name)).sort();

const toRequest = (target: string) => ({
  ...{ location: `file:${target}`, views: ['jobs'], anonymousViews, personalViews, withPeople: false },
  ...{ sinceLast: false, keep: 2, version: '0', owner: 'test', leaseMs: 30_000, signal: AbortSignal.timeout(600_000) },
});

test('an erasure reports progress while it waits for an extract', async ({ database, target }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  await using blobs = await openDiskBlobs(target);
  const { location, signal } = toRequest(target);
  let steps = 0;
  const onStep = () => {
    steps += 1;
  };
  const deps = { store, target: blobs, spool: openSpool(target), onDelete: async () => {}, onStep };
  const request = { location, advertiserId: 1n, applicationIds: [], deletedBefore: [], leaseMs: 600, signal };
  let erased: Promise<number>;
  {
    await using _lane = await holdLane(store, { ...toLane(location), owner: 'extract', leaseMs: 600, signal });
    erased = erasePeople(deps, { ...request, owner: 'erasure' });
    await until(() => steps > 0);
  }
  expect(await erased).toBe(0);
});

test('erasures know an extract with people before it reads anybody', async ({ database, demo: _, target }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  await using blobs = await openDiskBlobs(target);
  const withSnapshot = async () => {
    throw new Error(JSON.stringify(await store.extracts.loadPeoplePlaces()));
  };
  const deps = { store: { ...store, extracts: { ...store.extracts, withSnapshot } }, target: blobs };
  await expect(
    runExtract({ ...deps, spool: openSpool(target) }, { ...toRequest(target), withPeople: true }),
  ).rejects.toThrow(`file:${target}`);
});

const env = (database: TestDatabase) => ({ DATABASE_URL: database.url, PRIVACY_KEY: testPrivacyKey, LEASE: '1s' });

test("people's columns are not extracted by the names of their views alone", async ({ database, demo: _, target }) => {
  const args = ['extract', '--to', `file:${target}`, '--views', 'jobs,applications'];
  const { code, stderr } = await callIntake(args, env(database));
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('need --with-people') });
  expect(await listObjects(target)).toEqual([]);
});

test('a paused extract that comes back after an erasure leaves nobody there', async ({ database, demo: _, target }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  await using blobs = await openDiskBlobs(target);
  const request = { ...toRequest(target), withPeople: true };
  const { location, signal, leaseMs } = request;
  const spool = openSpool(target);
  let isErased = false;
  const late = {
    ...blobs,
    put: async (...given: Parameters<typeof blobs.put>) => {
      if (given[0].startsWith('people/') && !isErased) {
        isErased = true;
        await database.query(`DELETE FROM intake.leases WHERE name LIKE 'extract %'`);
        const deps = { store, target: blobs, spool, onDelete: async () => {}, onStep: () => {} };
        const erasure = { location, advertiserId: 1n, applicationIds: [], deletedBefore: [], owner: 'erasure' };
        await erasePeople(deps, { ...erasure, leaseMs, signal });
      }
      return await blobs.put(...given);
    },
  };
  // A snapshot from before, since an erasure publishes in place of it.
  await runExtract({ store, target: blobs, spool }, toRequest(target));
  await expect(runExtract({ store, target: late, spool }, request)).rejects.toMatchObject({ name: 'LeaseLost' });
  expect(isErased).toBe(true);
  expect((await listObjects(target)).filter((path) => path.startsWith('people/'))).toEqual([]);
});

describe('a killed extract', () => {
  const name = 'at %s shows the snapshot before or its own, whole, and leaves nothing after the next one';
  const killAt = async (point: string, { database, demo: _, target }: Fixtures) => {
    const views = point === 'extractDescribed' ? 'jobs' : 'applications_anonymous,jobs';
    const args = ['extract', '--to', `file:${target}`, '--views', views];
    expect((await callIntake(args, { ...env(database) })).code).toBe(0);
    const before = readWhole(target);
    expect((await runIntake(args, { ...env(database), INTAKE_CRASH_AT: point })).code).toBeNull();
    const seen = readWhole(target);
    expect(seen.snapshot_id !== before.snapshot_id).toBe(point === 'extractPublished');
    expect((await callIntake(args, { ...env(database), EXTRACT_KEEP: '2' })).code).toBe(0);
    const after = readWhole(target);
    const kept = [after, seen].flatMap((one) => [
      `snapshots/${one.snapshot_id}.json`,
      ...one.files.map(({ path }) => path),
    ]);
    expect(await listObjects(target)).toEqual(['latest.json', ...kept].sort());
  };
  test.for(['extractDescribed'])(name, killAt);
  test.for(['extractPut:3', 'extractWritten', 'extractPublished'])(name, { tags: ['slow'] }, killAt);

  test('that began by a clock ahead leaves nothing either', async ({ database, demo: _, target }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
    await using blobs = await openDiskBlobs(target);
    const [snapshotId, bytes] = ['29990101T000000000Z', Buffer.from('left')];
    const facts = { sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
    const request = toRequest(target);
    await store.extracts.recordExtract(request.location, true, snapshotId);
    await blobs.put(`people/applications/1/00/${snapshotId}.parquet`, bytes, facts, request.signal);
    const { manifest } = await runExtract({ store, target: blobs, spool: openSpool(target) }, request);
    expect(manifest.snapshot_id > snapshotId).toBe(true);
    const own = [`snapshots/${manifest.snapshot_id}.json`, ...manifest.files.map(({ path }) => path)];
    expect(await listObjects(target)).toEqual(['latest.json', ...own].sort());
  });

  test('that comes back after another has published shows nothing of itself', async ({ database, demo: _, target }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
    await using blobs = await openDiskBlobs(target);
    let other: Manifest | null = null;
    const late = {
      ...blobs,
      replaceText: async (...given: Parameters<typeof blobs.replaceText>) => {
        // The lease of the paused process has lapsed meanwhile.
        await database.query(`DELETE FROM intake.leases WHERE name LIKE 'extract %'`);
        other = await extract(database, target, '--views', 'jobs');
        return await blobs.replaceText(...given);
      },
    };
    const deps = { store, target: late, spool: openSpool(target) };
    await expect(runExtract(deps, toRequest(target))).rejects.toMatchObject({ name: 'LeaseLost' });
    expect(readWhole(target)).toMatchObject({ snapshot_id: (other as Manifest | null)?.snapshot_id });
  });
});

test('a large partition has several files of one table', { tags: ['slow'] }, async ({ database, demo: _, target }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  await using blobs = await openDiskBlobs(target);
  async function* oneByOne(batches: AsyncIterable<readonly Row[]>) {
    for await (const rows of batches) for (const row of rows) yield [row];
  }
  const withSnapshot: typeof store.extracts.withSnapshot = (work) =>
    store.extracts.withSnapshot((snapshot) =>
      work({ ...snapshot, loadRows: (...chosen) => oneByOne(snapshot.loadRows(...chosen)) }),
    );
  const deps = { store: { ...store, extracts: { ...store.extracts, withSnapshot } }, target: blobs };
  const request = { ...toRequest(target), views: ['answer_distribution'] };
  const { manifest } = await runExtract({ ...deps, spool: openSpool(target) }, request);
  await compareRows(database, target, readWhole(target));
  expect(manifest.files.length).toBeGreaterThan(1);
  expect(manifest.files.every(({ rows }) => rows <= 100)).toBe(true);
});

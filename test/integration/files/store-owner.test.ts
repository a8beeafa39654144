// One owner for every blob store: another database neither writes nor deletes there, adopt-store moves the ownership, and a former owner
// stops. The same on a folder and on S3.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, vi } from 'vitest';
import { openSandbox, type Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import { type BlobStore, toBlobKey } from '../../../src/domain/blob.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { adoptStore, ensureOwned, guardStore } from '../../../src/sync/files/store-owner.ts';
import { copyDatabase, openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { testPrivacyKey, toEnvironment } from '../../support/processes/syncing.ts';
import { createBytes, loadBlobPlaces, openScratch } from '../../support/stores/blob-stores.ts';

const signal = AbortSignal.timeout(600_000);
/** The random id, the number of the cluster and that of the database in it. */
const loadId = async (database: TestDatabase) =>
  (
    await database.query<{ id: string }>(
      `SELECT concat(s.database_id, '@', c.system_identifier, '.', d.oid) AS id
       FROM intake.blob_store s, pg_control_system() c, pg_database d WHERE d.datname = current_database()`,
    )
  )[0]?.id ?? 'none';

afterEach(() => vi.unstubAllEnvs());

/** Reads the whole board, with its files, by seven requests instead of the fifty of a sync. It proves nothing, hence code 3. */
const byDate = ['backfill', '--from', '2000-01-01'];

/** A database with the files of some applications in a folder. */
async function openOwner(board: Sandbox) {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await openTestDatabase());
  const scratch = stack.use(await openScratch());
  const folder = join(scratch.path, 'blobs');
  const run = (args: readonly string[], whose: TestDatabase = database) =>
    callIntake(args, toEnvironment(whose, board, folder));
  expect(await run(byDate)).toMatchObject({ code: 3 });
  const owned = stack.move();
  const identity = () => {
    const [last = ''] = readdirSync(folder)
      .filter((name) => name.startsWith('.intake-store'))
      .sort()
      .reverse();
    return JSON.parse(readFileSync(join(folder, last), 'utf8')) as Record<string, unknown>;
  };
  return {
    database,
    folder,
    run,
    identity,
    files: () => listFiles(folder),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

describe('a store that belongs to a database', () => {
  test('is refused to another one, which writes and deletes nothing there; both are named', async () => {
    await using board = await openSandbox({ applications: 4 });
    await using owner = await openOwner(board);
    // What the other database would take for objects that belong to nobody.
    const resume = join(owner.folder, 'prefills', String(board.advertiserId), crypto.randomUUID());
    mkdirSync(join(resume, '..'), { recursive: true });
    writeFileSync(resume, 'a resume');
    const before = owner.files();
    expect(before.length).toBeGreaterThan(1);
    await using staging = await openTestDatabase();
    for (const command of [['sync'], ['verify', '--full'], ['verify', '--collect'], ['doctor']]) {
      const { code, stdout, stderr } = await owner.run(command, staging);
      expect({ command, code }).toEqual({ command, code: 2 });
      expect(stdout + stderr).toContain(`belongs to the database ${await loadId(owner.database)} (epoch 1)`);
      if (command[0] === 'verify') expect(stderr).toContain(`This is the database ${await loadId(staging)}`);
      if (command[0] === 'verify') expect(stderr).toContain('intake adopt-store');
    }
    expect(owner.files()).toEqual(before);
    expect(await owner.run(['verify'])).toMatchObject({ stdout: expect.stringContaining('1') });
  });

  test('moves by adopt-store: the former owner reads on, and neither writes nor deletes', async () => {
    await using board = await openSandbox({ applications: 4 });
    await using owner = await openOwner(board);
    await using next = await openTestDatabase();
    expect(await owner.run(['adopt-store'], next)).toMatchObject({
      code: 2,
      stdout: expect.stringContaining(`belongs to the database ${await loadId(owner.database)}, epoch 1.`),
    });
    expect(owner.identity()).toMatchObject({ database: await loadId(owner.database), epoch: 1 });
    expect(await owner.run(['adopt-store', '--yes'], next)).toMatchObject({ code: 0 });
    expect(owner.identity()).toMatchObject({ database: await loadId(next), epoch: 2 });
    expect(await owner.run(byDate, next)).toMatchObject({ code: 3 });

    const files = owner.files();
    const [held] = await owner.database.query<{ id: string; kind: string }>(
      `SELECT application_id AS id, kind FROM intake.attachments WHERE state = 'stored' LIMIT 1`,
    );
    expect(await owner.run(['url', held?.id ?? '', held?.kind ?? ''])).toMatchObject({ code: 0 });
    expect(await owner.run(['reparse', '--all'])).toMatchObject({ code: 0 });
    for (const command of [['sync', '--recheck'], ['verify']]) {
      expect(await owner.run(command)).toMatchObject({ code: 2, stderr: expect.stringContaining(await loadId(next)) });
    }
    expect(owner.files()).toEqual(files);
    expect(await owner.run(['verify'], next)).toMatchObject({ code: 0 });
  });

  test('is refused to a copy of its database, which deletes nothing there; both are named, and what to do', async () => {
    await using board = await openSandbox({ applications: 3 });
    await using owner = await openOwner(board);
    await using copy = await copyDatabase(owner.database);
    const before = owner.files();
    const [one] = [...board.truth()];
    const commands = [['sync'], ['verify', '--full'], ['erase', '--application', String(one?.id), '--yes']];
    const words = `belongs to the database ${await loadId(owner.database)} (epoch 1). This is the database ${await loadId(copy)}: one is a copy`;
    for (const command of commands) {
      const { code, stderr } = await owner.run(command, copy);
      expect({ command, code, stderr }).toEqual({ command, code: 2, stderr: expect.stringContaining(words) });
      expect(stderr).toContain(
        'run intake adopt-store. A copy that runs beside the original needs a BLOBS_URL of its own',
      );
    }
    expect(owner.files()).toEqual(before);
    expect(await owner.run(['verify'])).toMatchObject({ code: 0 });
  });

  test('goes on with the identity of an earlier checkout, which named no place, and gets one that does', async () => {
    await using board = await openSandbox({ applications: 2 });
    await using owner = await openOwner(board);
    const [id] = (await loadId(owner.database)).split('@');
    const earlier = JSON.stringify({ database: id, epoch: 1, claim: crypto.randomUUID() });
    writeFileSync(join(owner.folder, '.intake-store'), `${earlier}\n`);
    await owner.database.query(`UPDATE intake.blob_store SET identity = $1`, [earlier]);
    expect(await owner.run(['verify'])).toMatchObject({ code: 0 });
    expect(owner.identity()).toMatchObject({ database: await loadId(owner.database), epoch: 2 });
    await using copy = await copyDatabase(owner.database);
    expect(await owner.run(['verify'], copy)).toMatchObject({ code: 2 });
  });

  test('has the same id for every role, also for one that may not ask for the number of the cluster', async () => {
    await using database = await openTestDatabase();
    const role = `intake_test_${randomBytes(4).toString('hex')}`;
    await database.query(`INSERT INTO intake.blob_store DEFAULT VALUES`);
    await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'only-a-test'`);
    const login = new URL(database.url);
    login.username = role;
    login.password = 'only-a-test';
    const load = async (url: string) => {
      await using store = openStore({ url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
      return (await store.blobStore.loadRecordedStore())?.databaseId;
    };
    const ids = () => Promise.all([load(database.url), load(login.href)]);
    try {
      await database.query(`GRANT USAGE ON SCHEMA intake TO ${role}; GRANT SELECT ON intake.blob_store TO ${role}`);
      const id = await loadId(database);
      expect(await ids()).toEqual([id, id]);
      await database.query(`REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`);
      const without = id.replace(/@\d+[.]/, '@');
      expect(await ids()).toEqual([without, without]);
    } finally {
      await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  test('is not said to be adopted where another identity is in force', async () => {
    await using board = await openSandbox({ applications: 2 });
    await using owner = await openOwner(board);
    await using next = await openTestDatabase();
    expect(await owner.run(['adopt-store', '--yes'], next)).toMatchObject({ code: 0 });
    rmSync(join(owner.folder, '.intake-store'));
    expect(await owner.run(['adopt-store', '--yes'], next)).toMatchObject({ code: 0 });
    expect(owner.identity()).toMatchObject({ database: await loadId(next), epoch: 3 });
    expect((await owner.run(['verify', '--full'], next)).code).not.toBe(2);
  });

  test('of an earlier release goes on without a step of the operator', { tags: ['slow'] }, async () => {
    await using board = await openSandbox({ applications: 3 });
    await using owner = await openOwner(board);
    // As earlier releases left them: a plain id in the store, and the same one in the database.
    writeFileSync(join(owner.folder, '.intake-store'), '0b5e7e3a-60c1-4a5b-8f6e-3f2d1c9b7a10\n');
    await owner.database.query(
      `UPDATE intake.blob_store SET identity = '0b5e7e3a-60c1-4a5b-8f6e-3f2d1c9b7a10', next_identity = NULL`,
    );
    await using staging = await openTestDatabase();
    expect(await owner.run(['verify'], staging)).toMatchObject({ code: 2 });
    expect(await owner.run(['doctor'])).toMatchObject({ code: 0 });
    expect(await owner.run(['verify'])).toMatchObject({ code: 0 });
    expect(owner.identity()).toMatchObject({ database: await loadId(owner.database), epoch: 1 });
  });

  test('that is another one, or an empty folder where the mount is gone, is not taken', async () => {
    await using board = await openSandbox({ applications: 2 });
    await using owner = await openOwner(board);
    await using elsewhere = await openScratch();
    const { code, stderr } = await callIntake(['sync'], toEnvironment(owner.database, board, elsewhere.path));
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`they are in file://${owner.folder}`),
    });
    expect(existsSync(join(elsewhere.path, '.intake-store'))).toBe(false);
  });
});

test('a store that has files and has lost its identity is not taken by a database without a store, which deletes nothing; its owner adopts it again', async () => {
  await using board = await openSandbox({ applications: 2 });
  await using owner = await openOwner(board);
  rmSync(join(owner.folder, '.intake-store'));
  const before = owner.files();
  await using staging = await openTestDatabase();
  for (const command of [['sync'], ['verify', '--collect'], ['doctor']]) {
    const { code, stdout, stderr } = await owner.run(command, staging);
    expect({ command, code }).toEqual({ command, code: 2 });
    expect(stdout + stderr).toContain('holds files and does not name the database that owns them');
  }
  expect(existsSync(join(owner.folder, '.intake-store'))).toBe(false);
  expect(owner.files()).toEqual(before);
  expect(await owner.run(['verify'])).toMatchObject({ code: 2, stderr: expect.stringContaining('adopt-store') });
  expect(await owner.run(['adopt-store', '--yes'])).toMatchObject({ code: 0 });
  expect(await owner.run(['verify', '--full'])).toMatchObject({ code: 0 });
  expect(owner.files()).toEqual(before);
});

test('an erasure by a former owner erases the rows, says that the files stay, and is finished once the store is its own again', async () => {
  await using board = await openSandbox({ applications: 2 });
  await using owner = await openOwner(board);
  await using next = await openTestDatabase();
  await owner.run(['adopt-store', '--yes'], next);
  const before = owner.files();
  const id = String([...board.truth()][0]?.id);
  const refused = await owner.run(['erase', '--application', id, '--yes']);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(await loadId(next)) });
  expect(owner.files()).toEqual(before);
  expect(
    await owner.database.query(
      `SELECT erased_at IS NOT NULL AS erased, email FROM intake.applications WHERE application_id = $1`,
      [id],
    ),
  ).toEqual([{ erased: true, email: null }]);
  expect(await owner.database.query(`SELECT step, trouble FROM intake.erasure_jobs`)).toEqual([
    { step: 'bytes', trouble: expect.stringContaining('belongs to the database') },
  ]);
  const { stdout } = await owner.run(['status']);
  expect(stdout).toContain('belongs to the database');
  await owner.run(['adopt-store', '--yes']);
  // The delete that was refused holds its token for half a minute.
  await owner.database.query(`UPDATE intake.blobs SET delete_until = now() WHERE delete_until IS NOT NULL`);
  expect(await owner.run(['erase', '--application', id, '--yes'])).toMatchObject({ code: 0 });
  expect(owner.files().length).toBeLessThan(before.length);
});

for (const place of await loadBlobPlaces()) {
  const tags = place.name === 'a folder' ? [] : ['slow'];
  describe.skipIf(place.absent)(`${place.name}${place.absent ? ` (${place.absent})` : ''}`, { tags }, () => {
    /** A store of objects, and the stores of rows of several databases. */
    async function openPlace(databases: readonly TestDatabase[]) {
      await using stack = new AsyncDisposableStack();
      const held = stack.use(await place.open());
      const openDeps = async (database: TestDatabase): Promise<{ store: Store; blobs: BlobStore }> => ({
        store: stack.use(openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) })),
        blobs: stack.use(await held.open()),
      });
      const deps = [];
      for (const database of databases) deps.push(await openDeps(database));
      const owned = stack.move();
      return { deps, [Symbol.asyncDispose]: () => owned.disposeAsync() };
    }

    test('of processes that adopt at once, also of copies of one database, one database owns the store', async () => {
      await using one = await openTestDatabase();
      await one.query(`INSERT INTO intake.blob_store DEFAULT VALUES`);
      await using copy = await copyDatabase(one);
      await using open = await openPlace([one, one, copy, copy]);
      for (const time of [1, 2, 3]) {
        await Promise.all(open.deps.map((deps) => adoptStore(deps, signal)));
        const owns = await Promise.all(
          open.deps.map((deps) =>
            ensureOwned(deps, signal).then(
              () => true,
              () => false,
            ),
          ),
        );
        expect({
          time,
          owners: owns.filter(Boolean).length,
          together: owns[0] === owns[1] && owns[2] === owns[3],
        }).toEqual({ time, owners: 2, together: true });
      }
    });

    // Such a store finds no damage: it overwrites.
    const overwrites = place.name.endsWith('without If-None-Match');
    const why = overwrites ? ' (a store without If-None-Match overwrites)' : '';
    const again = `damaged bytes are not put again by a database that lost the store while it read them${why}`;
    test.skipIf(overwrites)(again, async () => {
      await using one = await openTestDatabase();
      await using two = await openTestDatabase();
      await using open = await openPlace([one, two]);
      const [former, next] = open.deps;
      if (!former || !next) throw new Error('Two were opened.');
      const { bytes, facts } = createBytes(100);
      const damaged = createBytes(100);
      const key = toBlobKey(5n, facts.sha256);
      let now = 0;
      const put: BlobStore['put'] = (...args) => {
        now += 11_000;
        return former.blobs.put(...args);
      };
      const guarded = guardStore({ ...former, blobs: { ...former.blobs, put } }, { now: () => now });
      await guarded.put(key, damaged.bytes, damaged.facts, signal);
      expect(await guarded.put(key, bytes, facts, signal)).toBe('stored');
      await former.blobs.put(key, damaged.bytes, damaged.facts, signal);
      await ensureOwned(former, signal);
      now = 0;
      const late = guardStore({ ...former, blobs: { ...former.blobs, put } }, { now: () => now });
      await late.put(toBlobKey(5n, damaged.facts.sha256), damaged.bytes, damaged.facts, signal);
      now = 5_000;
      await adoptStore(next, signal);
      await expect(late.put(key, bytes, facts, signal)).rejects.toMatchObject({ name: 'WrongStore' });
      expect(await next.blobs.verify(key, facts, 'bytes', signal)).toBe('damaged');
    });

    test('a store in use stops putting ten seconds after it has been adopted, and deleting at once', async () => {
      await using one = await openTestDatabase();
      await using two = await openTestDatabase();
      await using open = await openPlace([one, two]);
      const [former, next] = open.deps;
      if (!former || !next) throw new Error('Two were opened.');
      let now = 0;
      const guarded = guardStore(former, { now: () => now });
      const put = async () => {
        const { bytes, facts } = createBytes(100);
        const key = toBlobKey(5n, facts.sha256);
        await guarded.put(key, bytes, facts, signal);
        return { key, facts };
      };
      const { key, facts } = await put();
      await adoptStore(next, signal);
      now = 9_000;
      await put();
      await expect(guarded.delete(key, signal)).rejects.toMatchObject({ name: 'WrongStore' });
      // Nor does it put from now on: it knows.
      await expect(put()).rejects.toMatchObject({ name: 'WrongStore' });
      const late = guardStore(former, { now: () => now });
      await expect(late.put(key, Buffer.alloc(0), facts, signal)).rejects.toMatchObject({ name: 'WrongStore' });
      expect(await next.blobs.verify(key, facts, 'bytes', signal)).toBe('intact');
      // What it does not find there is not lost.
      const absent = createBytes(7).facts;
      const find = () => guarded.verify(toBlobKey(5n, absent.sha256), absent, 'metadata', signal);
      await expect(find()).rejects.toMatchObject({ name: 'WrongStore' });
      // It reads on.
      expect(Buffer.concat(await Array.fromAsync(guarded.get(key, signal)))).toHaveLength(100);
      await adoptStore(former, signal);
      expect(await find()).toBe('missing');
      expect(await guarded.delete(key, signal)).toMatchObject({ refusal: null });
    });
  });
}

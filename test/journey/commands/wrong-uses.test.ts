// What a person gets wrong in the first hour. Each answer names what was tried (host, port, file, bucket) and what to do, ends with the
// exit code that the README lists, and shows no stack.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { test as base, openTestDatabase } from '../../support/database/test-database.ts';
import { callIntake, runIntake, startIntake } from '../../support/processes/intake.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openStrictS3 } from '../../support/stores/strict-s3.ts';

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern what a fixture needs; this one needs nothing.
const test = base.extend('places', { scope: 'file' }, async ({}, { onCleanup }) => {
  const board = await openSandbox({ applications: 3 });
  const s3 = await openStrictS3();
  const folder = mkdtempDisposableSync(join(tmpdir(), 'intake-test-'));
  onCleanup(async () => {
    await board[Symbol.asyncDispose]();
    await s3[Symbol.asyncDispose]();
    folder.remove();
  });
  const [boardPort, storePort] = [new URL(board.url).port, new URL(s3.endpoint).port];
  return { board, storage: s3.settings, folder: folder.path, boardPort, storePort };
});

interface WrongUse {
  readonly line: string;
  readonly env: Readonly<Record<string, string>>;
  readonly code: number;
  /** BOARD, STORE and FOLDER stand for the ports and the folder of the test. */
  readonly says: string;
  readonly next: string;
}

const wrongUses: Readonly<Record<string, WrongUse>> = {
  'a database whose name does not resolve': {
    line: 'status',
    env: { DATABASE_URL: 'postgres://a:b@db.nowhere.invalid/intake' },
    code: 5,
    says: 'The database at db.nowhere.invalid:5432 cannot be reached (the name does not resolve, E',
    next: 'Check the database and DATABASE_URL',
  },
  'a source whose name does not resolve': {
    line: 'doctor',
    env: { SOURCE_URL: 'https://api.nowhere.invalid' },
    code: 5,
    says: 'The connection to the source at api.nowhere.invalid:443 failed (the name does not resolve, E',
    next: 'Check SOURCE_URL and the network',
  },
  'https for a source that speaks http': {
    line: 'doctor',
    env: { SOURCE_URL: 'https://127.0.0.1:BOARD' },
    code: 5,
    says: 'The connection to the source at 127.0.0.1:BOARD failed (it does not speak TLS',
    next: 'Check SOURCE_URL',
  },
  'a source with another path': {
    line: 'doctor',
    env: { SOURCE_URL: 'http://127.0.0.1:BOARD/api' },
    code: 2,
    says: 'There is no list at http://127.0.0.1:BOARD/api/v1 (404)',
    next: 'Check SOURCE_URL',
  },
  'a bucket that is not there': {
    line: 'doctor',
    env: { BLOBS_URL: 's3://another-bucket' },
    code: 2,
    says: 'There is no bucket another-bucket at the store at 127.0.0.1:STORE',
    next: '',
  },
  'a storage that nobody serves': {
    line: 'doctor',
    env: { S3_ENDPOINT: 'http://127.0.0.1:1' },
    code: 5,
    says: 'The store at 127.0.0.1:1 cannot be reached (ECONNREFUSED)',
    next: 'Check the storage and its free space, BLOBS_URL and S3_ENDPOINT',
  },
  'an address of another machine': {
    line: 'worker',
    env: { ADMIN_HOST: '192.0.2.1', ADMIN_USER: 'a', ADMIN_PASSWORD: 'a-long-random-text' },
    code: 2,
    says: 'ADMIN_HOST: 192.0.2.1 is not an address of this machine (EADDRNOTAVAIL)',
    next: 'Correct the setting',
  },
  'an account that is not configured': {
    line: 'sync --advertiser nobody',
    env: {},
    code: 2,
    says: 'There is no advertiser "nobody"',
    next: 'Use a name that is configured: default.',
  },
  'an id where elements are listed, which must not print personal data': {
    line: 'quarantine list 5f0c2a',
    env: {},
    code: 2,
    says: 'Too many arguments',
    next: 'intake help quarantine',
  },
  'an element to show where all are read again': {
    line: 'quarantine replay --show 5f0c2a',
    env: {},
    code: 2,
    says: '--show belongs to list.',
    next: 'intake help quarantine',
  },
};

/** Those that need no process of their own; `npm run test:all` runs all of them. */
const isQuick = ({ line }: WrongUse) => line !== 'doctor';

describe('a wrong use', () => {
  for (const [name, use] of Object.entries(wrongUses)) {
    test(`is answered in words: ${name}`, { tags: isQuick(use) ? [] : ['slow'] }, async ({ database, places }) => {
      const { board, storage, folder, boardPort, storePort } = places;
      const fill = (text: string) =>
        text.replaceAll('BOARD', boardPort).replaceAll('STORE', storePort).replaceAll('FOLDER', folder);
      const changed = Object.fromEntries(Object.entries(use.env).map(([name, text]) => [name, fill(text)]));
      const env = { ...toEnvironment(database, board), ...storage, ...changed };
      // The storage's client reads its credentials from the process.
      const run = use.line === 'doctor' ? runIntake : callIntake;
      const { code, stdout, stderr } = await run(use.line.split(' '), env);
      const said = stdout + stderr;
      expect({ code, said }).toEqual({ code: use.code, said: expect.stringContaining(fill(use.says)) });
      if (use.next !== '') expect(said).toContain(`Next: ${use.next}`);
      expect(said).not.toMatch(/bug in Intake|\n {4}at /);
    });
  }

  test('of a file that is not stored names it', async ({ database, places }) => {
    const env = toEnvironment(database, places.board, join(places.folder, 'blobs'));
    const { code, stderr } = await callIntake(['url', '999', 'RESUME'], env);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('No resume of application 999 is stored.'),
    });
  });
});

test('a .env that cannot be read is named, and nothing is started', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'intake-test-'));
  // What Docker makes of a file to mount that is not there.
  mkdirSync(join(folder.path, '.env'));
  const { code, stderr } = await runIntake(['migrate'], {}, folder.path);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining(`The settings in ${join(folder.path, '.env')} cannot be read (EISDIR).`),
  });
  expect(stderr).not.toMatch(/^ +at /m);
});

test('before `npm ci` is answered with that command', () => {
  using checkout = mkdtempDisposableSync(join(tmpdir(), 'intake-test-'));
  const check = join(checkout.path, '.ci/need-node-24.cjs');
  cpSync('.ci/need-node-24.cjs', check);
  const { status, stderr } = spawnSync(process.execPath, [check], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining('Next: run `npm ci`') });
});

describe('a database that cannot be written', { tags: ['slow'] }, () => {
  test('is called read-only by doctor and by sync', async ({ places }) => {
    await using database = await openTestDatabase();
    const name = new URL(database.url).pathname.slice(1);
    await database.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`);
    const env = { ...toEnvironment(database, places.board), ...places.storage };
    const doctor = await runIntake(['doctor'], env);
    expect(doctor).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/bad {2}writing: the database is read-only/),
    });
    expect(doctor.stdout).not.toContain('the database is unavailable');
    const sync = startIntake(['sync'], env);
    sync.child.stderr?.once('data', () => sync.child.kill('SIGINT'));
    expect((await sync.ended).stderr).toMatch(/^database: The database at \S+ is read-only \(25006\)\./);
  });
});

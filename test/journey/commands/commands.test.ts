import { describe, expect } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { openTestDatabase } from '../../support/database/test-database.ts';
import { findDifferences } from '../../support/equality.ts';
import { claimLease } from '../../support/leases.ts';
import { callIntake, runIntake, startIntake } from '../../support/processes/intake.ts';
import { test, toResult } from '../../support/processes/site.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openSettings } from '../../support/processes/worker.ts';

describe('intake sync', () => {
  test('brings the board into the database, says so, and status shows it', async ({ openSite }) => {
    const { board, database, env, intake } = await openSite({ applications: 24, choices: { pageCap: 20 } });
    const first = await runIntake(['sync'], env);
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('24 new, 0 changed') });
    expect(first.stdout).toContain('coverage proven');
    expect(first.stdout).toMatch(/files: \d+ stored \(\d.*B\)/);
    expect(first.stderr).toMatch(/files \d+ of \d+.*B/);
    expect(await findDifferences(database, board)).toEqual([]);

    const again = await intake('sync --json');
    expect(toResult(again)).toMatchObject({
      advertisers: [{ name: 'default', advertiserId: String(board.advertiserId), added: 0, changed: 0, trouble: null }],
    });

    expect(toResult(await intake('status --json'))).toMatchObject({
      headline: expect.stringContaining('All is well: 24 applications'),
      problems: [],
      advertisers: [{ applications: 24, waiting: 0, coverage: { certificate: 'proven' } }],
    });
    const noSource = { SOURCE_URL: '', SOURCE_CREDENTIAL: '' };
    for (const line of ['prove', 'verify', 'retry', 'quarantine list', 'unhalt'])
      expect(await intake(line, noSource), line).toMatchObject({ code: 0 });
  });

  test('of an account that nobody applied to yet ends well, and nothing is called open', async ({ openSite }) => {
    const { intake } = await openSite({ applications: 0 });
    expect(await intake('sync --no-files')).toMatchObject({ code: 0 });
    expect(toResult(await intake('status --json'))).toMatchObject({
      advertisers: [{ openRanges: 0, coverage: { certificate: 'assumed' } }],
      problems: [],
    });
  });

  test('of several accounts reads the one that --advertiser names, and the other commands act on it alone', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 3, advertisers: [{ applications: 2 }] });
    await using settings = await openSettings(database, board);
    const read = async (line: string) => toResult(await callIntake([...line.split(' '), '--json'], settings.env));
    const only = [{ name: 'account-2', added: 2 }];
    expect(await read('sync --no-files --advertiser account-2')).toMatchObject({ advertisers: only });
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications`)).toEqual([{ n: 2 }]);
    expect(await read('backfill --dry-run --advertiser account-2')).toMatchObject({
      estimates: [{ name: 'account-2' }],
    });
    expect(await read('prove --advertiser account-2')).toMatchObject({ advertisers: [{ name: 'account-2' }] });
    await database.query(`UPDATE intake.advertisers SET state = 'halted', halt_kind = 'mismatch', reason = 'a test'`);
    expect(await read('unhalt --advertiser account-1')).toEqual({ unhalted: [] });
    expect(await read('unhalt --advertiser account-2')).toEqual({ unhalted: ['account-2'] });
  });

  test('with a refused credential ends with 4, halts, and recovers with the right one', async ({ openSite }) => {
    const { intake } = await openSite({ applications: 3 });
    const refused = await intake('sync --no-files', { SOURCE_CREDENTIAL: 'a-wrong-secret-credential' });
    expect(refused.code).toBe(4);
    expect(refused.stdout + refused.stderr).not.toContain('a-wrong-secret-credential');
    expect((await intake('status')).stdout).toContain('Halted');
    expect((await intake('sync --no-files')).code).toBe(0);
    expect((await intake('status')).stdout).toContain('All is well');
  });

  test('whose answer is of another advertiser stores nothing, halts and ends with 4', async ({ openSite }) => {
    const { database, intake } = await openSite({ applications: 3 });
    const { code, stderr } = await intake('sync --no-files', { ADVERTISER_ID: '999' });
    expect(code).toBe(4);
    expect(stderr).toContain('999');
    expect(await database.query(`SELECT 1 FROM intake.applications`)).toEqual([]);
    expect(await database.query(`SELECT state, halt_kind FROM intake.advertisers`)).toEqual([
      { state: 'halted', halt_kind: 'mismatch' },
    ]);
    expect((await intake('sync --no-files', { ADVERTISER_ID: '999' })).code).toBe(4);
    expect(await intake('unhalt')).toMatchObject({ code: 0, stdout: expect.stringContaining('default') });
    expect(await database.query(`SELECT state FROM intake.advertisers`)).toEqual([{ state: 'active' }]);
  });

  test('of a renamed account says whose its id is, adds no account, and ends with 4', async ({ openSite }) => {
    const { board, database, intake, sync } = await openSite({ applications: 3 });
    await sync();
    await database.query(`UPDATE intake.advertisers SET name = 'former'`);
    const { code, stderr } = await intake('sync --no-files', { ADVERTISER_ID: String(board.advertiserId) });
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining('is read under another name') });
    expect(await database.query(`SELECT name FROM intake.advertisers`)).toEqual([{ name: 'former' }]);
    await database.query(`UPDATE intake.advertisers SET name = 'default'`);
    expect((await sync()).at(-1)).toMatchObject({ added: 0 });
  });

  test('beside a living holder of the lane ends with 6', { tags: ['slow'] }, async ({ openSite }) => {
    const { database, intake } = await openSite({ applications: 3 });
    await using db = openDatabase({ url: database.url, role: 'test' });
    const holder = { name: 'default', lane: 'live', owner: 'a living process', leaseMs: 60_000 } as const;
    await claimLease(db, holder);
    const renewal = setInterval(() => void claimLease(db, holder), 200);
    const { code, stderr } = await intake('sync --no-files', { LEASE: '1500ms' });
    clearInterval(renewal);
    expect(code).toBe(6);
    expect(stderr).toContain('a living process');
  });

  test('with a wrong database name or password ends with 2 and names the setting', async ({ openSite }) => {
    const { database, intake } = await openSite({ applications: 3 });
    const nowhere = new URL(database.url);
    nowhere.pathname = '/no_such_database';
    const { code, stderr } = await intake('sync', { DATABASE_URL: nowhere.href });
    expect(code).toBe(2);
    expect(stderr).toContain('DATABASE_URL: there is no database "no_such_database" at ');
    expect(stderr).not.toMatch(/ {4}at /);
  });

  test('waits for a database that is away, and says so', async () => {
    const env = toEnvironment(
      { url: 'postgres://intake@127.0.0.1:1/intake' },
      { url: 'http://127.0.0.1:1', credential: 'a' },
    );
    const { child, ended } = startIntake(['sync'], env);
    child.stderr?.once('data', () => child.kill('SIGINT'));
    const { code, stderr } = await ended;
    expect(code).toBe(5);
    expect(stderr).toMatch(
      /^database: The database at 127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)\. Attempt 1 failed\. Trying again in \d+ s\.\n/,
    );
  });
});

describe('intake backfill', () => {
  test('of gaps where there are none fetches what is queued', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, intake } = await openSite({ applications: 0 });
    board.add([{ attachments: [{ kind: 'resume', content: 'queued' }] }]);
    expect((await intake('sync --no-files')).code).toBe(0);
    const filled = await intake('backfill --gaps --json');
    expect(filled.code).toBe(0);
    expect(toResult(filled)).toMatchObject({
      advertisers: [{ advertiserId: String(board.advertiserId), requests: 0 }],
      files: { stored: 1 },
    });
  });

  test.for(['--to 1900-01-01', '--before-id 1', '--after-id 9223372036854775807', '--from 2026-02-01 --to 2026-01-01'])(
    'of an empty range (%s) ends with 2 and says why',
    async (range) => {
      const { code, stderr } = await callIntake(['backfill', ...range.split(' ')], {});
      expect(code).toBe(2);
      expect(stderr).toContain('The range is empty');
    },
  );
});

test('intake backfill --dry-run of dates takes none of them for an id', { tags: ['slow'] }, async ({ openSite }) => {
  const { intake } = await openSite({ applications: 30, choices: { pageCap: 20 } });
  expect((await intake('sync --no-files')).code).toBe(0);
  for (const [to, applications] of [
    ['2000-01-01', 0],
    ['2100-01-01', null],
  ] as const) {
    const estimated = await intake(`backfill --dry-run --json --to ${to}`);
    expect(toResult(estimated), to).toMatchObject({ estimates: [{ estimate: { applications } }] });
  }
});

describe('intake sandbox', () => {
  test('prints settings that can be pasted, and ends with its signal', { tags: ['slow'] }, async () => {
    const { child, ended } = startIntake(['sandbox', '--applications', '5'], {});
    const [line] = await new Promise<string[]>((resolve) => {
      child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString().split('\n')));
    });
    expect(line).toMatch(/^export SOURCE_URL=http:\/\/127\.0\.0\.1:\d+$/);
    child.kill('SIGTERM');
    expect((await ended).code).toBe(0);
  });

  test('at an address that cannot be had ends with 2 and says why', async () => {
    await using board = await openSandbox({ applications: 0 });
    const { port } = new URL(board.url);
    for (const [option = '', value = '', why = ''] of [
      ['--port', port, 'EADDRINUSE'],
      ['--host', '300.1.1.1', 'ENOTFOUND|EAI_AGAIN'],
    ]) {
      const { code, stdout, stderr } = await callIntake(['sandbox', '--applications', '1', option, value], {});
      expect({ value, code, stdout }).toEqual({ value, code: 2, stdout: '' });
      expect(stderr).toMatch(new RegExp(`^The sandbox cannot listen on .*${value}.*(${why})`));
      expect(stderr).not.toMatch(/ {4}at /);
    }
  });
});

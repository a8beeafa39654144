// `intake doctor`: what it looks at, how it says what is wrong, and that it leaves nothing behind.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openScratch } from '../support/blob-stores.ts';
import { callIntake, startIntake } from '../support/intake.ts';
import { syncBoard, toEnvironment } from '../support/syncing.ts';
import { openTcpGate } from '../support/tcp-gate.ts';
import { openTestDatabase, test } from '../support/test-database.ts';

interface Told {
  readonly findings: readonly { readonly check: string; readonly ok: boolean; readonly detail: string }[];
}

/** The exit code, and each check with what it found. */
async function runChecks(env: Record<string, string>) {
  const { code, stdout } = await callIntake(['doctor', '--json'], env);
  const { findings } = JSON.parse(stdout) as Told;
  const said = Object.fromEntries(findings.map(({ check, detail }) => [check, detail]));
  return { code, said, bad: findings.filter((one) => !one.ok).map((one) => one.check) };
}

describe('doctor', () => {
  test('finds everything well, or says which part is not and ends with its code', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    const folder = join(scratch.path, 'blobs');
    const env = toEnvironment(database, board, folder);
    const ask = async (changed: Record<string, string> = {}) => {
      const { code, stdout } = await callIntake(['doctor', '--json'], { ...env, ...changed });
      const { findings } = JSON.parse(stdout) as Told;
      return {
        code,
        checks: findings.map((one) => one.check),
        bad: findings.filter((one) => !one.ok).map((one) => one.check),
      };
    };
    expect(await ask()).toEqual({
      code: 0,
      bad: [],
      checks: [
        ...['configuration', 'database', 'schema', 'clock', 'PRIVACY_KEY', 'storage'],
        ...['default: credential', 'default: advertiser', 'default: learned'],
      ],
    });
    expect(
      existsSync(folder)
        ? readdirSync(folder, { recursive: true }).filter((name) => /[0-9a-f]{64}/.test(String(name)))
        : [],
    ).toEqual([]);
    expect(await ask({ SOURCE_CREDENTIAL: 'of-yesterday' })).toMatchObject({ code: 4, bad: ['default: source'] });
    board.choose({ sunset: 'header' });
    expect((await ask()).checks).toContain('default: sunset');
    const blocked = join(scratch.path, 'a-file');
    writeFileSync(blocked, '');
    expect(await ask({ BLOBS_URL: `file:${blocked}` })).toMatchObject({ code: 5, bad: ['storage'] });
  });

  test('and other looks write no row of an account', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    const rows = () => database.query(`SELECT name, advertiser_id, state, answered_url FROM intake.advertisers`);
    const base = toEnvironment(database, board, join(scratch.path, 'blobs'));
    for (const env of [base, { ...base, ADVERTISER_ID: String(board.advertiserId) }]) {
      for (const args of [
        ['doctor'],
        ['erase', '--application', '1', '--dry-run'],
        ['quarantine', 'list'],
        ['backfill', '--dry-run'],
      ]) {
        expect((await callIntake(args, env)).code, args.join(' ')).toBe(0);
        expect(await rows(), args.join(' ')).toEqual([]);
      }
    }
    await syncBoard(database, board);
    await database.query(`UPDATE intake.advertisers SET answered_url = NULL`);
    expect((await callIntake(['doctor'], base)).code).toBe(0);
    expect(await rows()).toMatchObject([{ answered_url: null }]);
  });

  test('says what Intake does about a server that compiles plans', { tags: ['slow'] }, async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 1 });
    await using scratch = await openScratch();
    const env = toEnvironment(database, board, scratch.path);
    const name = new URL(database.url).pathname.slice(1);
    await database.query(`ALTER DATABASE ${name} SET jit = on`);
    expect((await runChecks(env)).said.database).toContain(
      'jit is on here; Intake turns it off in its own transactions',
    );
    await database.query(`ALTER DATABASE ${name} SET jit = off`);
    expect((await runChecks(env)).said.database).not.toContain('jit');
  });

  test('does not call complete what a worker would refuse: a prefill that is set by half', async ({
    emptied: database,
  }) => {
    await using board = await openSandbox();
    await using scratch = await openScratch();
    const env = { ...toEnvironment(database, board, scratch.path), OAUTH_CLIENT_ID: 'careers' };
    const { code, stderr } = await callIntake(['doctor'], env);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('OAUTH_CLIENT_SECRET') });
  });

  test('checks storage and credential before the first worker has created the schema', async () => {
    await using bare = await openTestDatabase();
    await bare.query(`DROP SCHEMA intake CASCADE; DROP SCHEMA intake_analytics CASCADE`);
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    const env = toEnvironment(bare, board, scratch.path);
    const { code, said, bad } = await runChecks(env);
    expect({ code, bad }).toEqual({ code: 0, bad: [] });
    expect(said).toMatchObject({
      schema: 'absent: the worker will create it',
      storage: expect.stringContaining('put, get and delete'),
      'default: credential': 'accepted',
    });
    expect(await bare.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'intake'`)).toEqual([]);
    expect(await runChecks({ ...env, SOURCE_CREDENTIAL: 'of-yesterday' })).toMatchObject({
      code: 4,
      bad: ['default: source'],
    });
  });

  test('checks storage and credential while the database is away', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    await using gate = await openTcpGate(database.url, { shut: true });
    const env = { ...toEnvironment(gate, board, scratch.path), SOURCE_CREDENTIAL: 'of-yesterday' };
    const { code, said, bad } = await runChecks(env);
    expect({ code, bad }).toEqual({ code: 5, bad: ['database', 'PRIVACY_KEY', 'default: source'] });
    expect(said.storage).toContain('put, get and delete');
  });

  test('names the version to use on a schema that is ahead, and not intake migrate', { tags: ['slow'] }, async () => {
    await using newer = await openTestDatabase();
    await newer.query(
      `INSERT INTO intake.migrations (hash, created_at, version) VALUES ('x', 9999999999999, '99.1.0')`,
    );
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    const { code, said } = await runChecks(toEnvironment(newer, board, scratch.path));
    expect(code).toBe(7);
    expect(said).toMatchObject({
      schema: 'ahead: use version 99.1.0 or newer',
      storage: expect.stringContaining('put, get and delete'),
      'default: credential': 'accepted',
    });
  });

  test('names a halt after another advertiser answered, and ends with 4', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 3 });
    await using scratch = await openScratch();
    await syncBoard(database, board);
    await database.query(
      `UPDATE intake.advertisers SET state = 'halted', halt_kind = 'mismatch', halted_at = now(), reason = 'data of 7 came.'`,
    );
    const { code, said, bad } = await runChecks(toEnvironment(database, board, scratch.path));
    expect({ code, bad }).toEqual({ code: 4, bad: ['default: halt'] });
    expect(said['default: halt']).toBe(
      'halted: data of 7 came. Run intake unhalt --advertiser default once the cause is gone.',
    );
  });

  test('says of the source only what answers have shown', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 45, choices: { pageCap: 20 } });
    await using scratch = await openScratch();
    await syncBoard(database, board);
    const { said } = await runChecks(toEnvironment(database, board, scratch.path));
    expect(said['default: learned']).toMatch(/returned \d+ applications or more in one page/);
    expect(said['default: learned']).toContain('no answer contradicted afterid and beforeid together');
    expect(said['default: learned']).not.toContain('largest');

    await using empty = await openSandbox({ applications: 0 });
    await using other = await openTestDatabase();
    await syncBoard(other, empty);
    const nothing = (await runChecks(toEnvironment(other, empty, scratch.path))).said['default: learned'];
    expect(nothing).toBe('nothing yet: no application was listed so far');
  });

  test('ends where BLOBS_URL names a folder that the system will not make', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 3 });
    const env = { ...toEnvironment(database, board), BLOBS_URL: 'file:/proc/intake/blobs' };
    // A process of its own: one that spins in the file system could not be ended from within.
    const { child, ended } = startIntake(['doctor', '--json'], env);
    const killing = setTimeout(() => child.kill('SIGKILL'), 480_000);
    const { code, stdout } = await ended;
    clearTimeout(killing);
    expect({ code, stdout }).toEqual({
      code: 5,
      stdout: expect.stringContaining('The folder of BLOBS_URL could not be opened at /proc/intake'),
    });
  });
});

// `intake doctor`: what it looks at, how it says what is wrong, and that it leaves nothing behind.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openTestDatabase } from '../../support/database/test-database.ts';
import { startIntake } from '../../support/processes/intake.ts';
import { type Site, test, toResult } from '../../support/processes/site.ts';
import { openTcpGate } from '../../support/servers/tcp-gate.ts';

interface Told {
  readonly findings: readonly { readonly check: string; readonly ok: boolean; readonly detail: string }[];
}

/** The exit code, and each check with what it found. */
async function runChecks({ intake }: Pick<Site, 'intake'>, settings: Record<string, string> = {}) {
  const checked = await intake('doctor --json', settings);
  const { findings }: Told = toResult(checked);
  const said = Object.fromEntries(findings.map(({ check, detail }) => [check, detail]));
  return { code: checked.code, said, bad: findings.filter((one) => !one.ok).map((one) => one.check) };
}

describe('doctor', () => {
  test('finds everything well, or says which part is not and ends with its code', async ({ openSite }) => {
    const site = await openSite({ applications: 3 });
    const ask = (settings?: Record<string, string>) => runChecks(site, settings);
    const { code, bad, said } = await ask();
    expect({ code, bad, checks: Object.keys(said) }).toEqual({
      code: 0,
      bad: [],
      checks: [
        ...['configuration', 'database', 'schema', 'clock', 'PRIVACY_KEY', 'storage'],
        ...['default: credential', 'default: advertiser', 'default: learned'],
      ],
    });
    const left = readdirSync(site.folder, { recursive: true }).filter((name) => /[0-9a-f]{64}/.test(String(name)));
    expect(left).toEqual([]);
    expect(await ask({ SOURCE_CREDENTIAL: 'of-yesterday' })).toMatchObject({ code: 4, bad: ['default: source'] });
    site.board.choose({ sunset: 'header' });
    expect((await ask()).said).toHaveProperty('default: sunset');
    const blocked = join(site.folder, 'a-file');
    writeFileSync(blocked, '');
    expect(await ask({ BLOBS_URL: `file:${blocked}` })).toMatchObject({ code: 5, bad: ['storage'] });
  });

  test('and other looks write no row of an account', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, database, intake, sync } = await openSite({ applications: 3 });
    const rows = () => database.query(`SELECT name, advertiser_id, state, answered_url FROM intake.advertisers`);
    for (const settings of [{}, { ADVERTISER_ID: String(board.advertiserId) }]) {
      for (const line of ['doctor', 'erase --application 1 --dry-run', 'quarantine list', 'backfill --dry-run']) {
        expect((await intake(line, settings)).code, line).toBe(0);
        expect(await rows(), line).toEqual([]);
      }
    }
    await sync();
    await database.query(`UPDATE intake.advertisers SET answered_url = NULL`);
    expect((await intake('doctor')).code).toBe(0);
    expect(await rows()).toMatchObject([{ answered_url: null }]);
  });

  test('checks storage and credential before the first worker has created the schema', async ({ openSite }) => {
    await using bare = await openTestDatabase();
    await bare.query(`DROP SCHEMA intake CASCADE; DROP SCHEMA intake_analytics CASCADE`);
    const site = await openSite({ applications: 3, database: bare });
    const { code, said, bad } = await runChecks(site);
    expect({ code, bad }).toEqual({ code: 0, bad: [] });
    expect(said).toMatchObject({
      schema: 'absent: the worker will create it',
      storage: expect.stringContaining('put, get and delete'),
      'default: credential': 'accepted',
    });
    expect(await bare.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'intake'`)).toEqual([]);
    expect(await runChecks(site, { SOURCE_CREDENTIAL: 'of-yesterday' })).toMatchObject({
      code: 4,
      bad: ['default: source'],
    });
  });

  test('checks storage and credential while the database is away', async ({ openSite }) => {
    const site = await openSite({ applications: 3 });
    await using gate = await openTcpGate(site.database.url, { shut: true });
    const settings = { DATABASE_URL: gate.url, SOURCE_CREDENTIAL: 'of-yesterday' };
    const { code, said, bad } = await runChecks(site, settings);
    expect({ code, bad }).toEqual({ code: 5, bad: ['database', 'PRIVACY_KEY', 'default: source'] });
    expect(said.storage).toContain('put, get and delete');
  });

  test('names a halt after another advertiser answered, and ends with 4', async ({ openSite }) => {
    const site = await openSite({ applications: 3 });
    await site.sync();
    await site.database.query(
      `UPDATE intake.advertisers SET state = 'halted', halt_kind = 'mismatch', halted_at = now(), reason = 'data of 7 came.'`,
    );
    const { code, said, bad } = await runChecks(site);
    expect({ code, bad }).toEqual({ code: 4, bad: ['default: halt'] });
    expect(said['default: halt']).toBe(
      'halted: data of 7 came. Run intake unhalt --advertiser default once the cause is gone.',
    );
  });

  test('says of the source only what answers have shown', { tags: ['slow'] }, async ({ openSite }) => {
    const site = await openSite({ applications: 45, choices: { pageCap: 20 } });
    await site.sync();
    const { said } = await runChecks(site);
    expect(said['default: learned']).toMatch(/returned \d+ applications or more in one page/);
    expect(said['default: learned']).toContain('no answer contradicted afterid and beforeid together');
    expect(said['default: learned']).not.toContain('largest');

    await using database = await openTestDatabase();
    const empty = await openSite({ applications: 0, database });
    await empty.sync();
    expect((await runChecks(empty)).said['default: learned']).toBe('nothing yet: no application was listed so far');
  });

  test('ends where BLOBS_URL names a folder that cannot be made', { tags: ['slow'] }, async ({ openSite }) => {
    const { env } = await openSite({ applications: 3 });
    // A process of its own: one that spins in the file system could not be ended from within.
    const { child, ended } = startIntake(['doctor', '--json'], { ...env, BLOBS_URL: 'file:/proc/intake/blobs' });
    const killing = setTimeout(() => child.kill('SIGKILL'), 480_000);
    const { code, stdout } = await ended;
    clearTimeout(killing);
    expect({ code, stdout }).toEqual({
      code: 5,
      stdout: expect.stringContaining('The folder of BLOBS_URL could not be written at /proc/intake'),
    });
  });
});

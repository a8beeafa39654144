// What `intake sync` and `intake backfill` say of the account as it stands, and how they end.
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { callIntake } from '../support/intake.ts';
import { toEnvironment } from '../support/syncing.ts';
import { test } from '../support/test-database.ts';

const noFiles = ['sync', '--no-files'];

/** The last line of a command with --json. */
const toResult = (stdout: string) => JSON.parse(stdout.trim().split('\n').at(-1) ?? '');

describe('of an account whose filters hide applications', () => {
  test('the first sync and every later one end with 3, and nobody is told that all is well', {
    tags: ['slow'],
  }, async ({ emptied: database }) => {
    await using board = await openSandbox({
      applications: 90,
      choices: { pageCap: 20, filtersAfterCap: ['afterid', 'beforeid'] },
    });
    const env = toEnvironment(database, board);
    expect(await callIntake(noFiles, env)).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('coverage assumed: an application appeared in a range that had been read'),
    });
    expect((await callIntake(['status'], env)).stdout).not.toContain('All is well');
    expect(await callIntake(noFiles, env)).toMatchObject({ code: 3 });
  });
});

describe('of an account whose newest page is all that its filters show', () => {
  test('a backfill doubts as a recheck does that what left the page was deleted', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({
      applications: 50,
      choices: { pageCap: 50, order: 'descending', filtersAfterCap: ['afterid', 'beforeid'] },
    });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    board.add(Array.from({ length: 5 }, () => ({ attachments: [] })));
    for (const command of [
      ['backfill', '--no-files'],
      [...noFiles, '--recheck'],
    ]) {
      expect(await callIntake(command, env), command.join(' ')).toMatchObject({
        code: 3,
        stdout: expect.stringContaining(
          'coverage assumed: stored applications are gone, and a filter that acts after the cap would look the same',
        ),
      });
    }
  });
});

describe('of an account that is proven', () => {
  test('a poll ends with 0, and says what is proven and on what that rests', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50 } });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    board.add([{ attachments: [] }]);
    const { code, stdout } = await callIntake(noFiles, env);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /coverage proven: every id range was read; cross-checks agree\n {2}assuming: the source applies both id filters .+; every answer comes from one current list$/m,
      ),
    });
    const told = toResult((await callIntake([...noFiles, '--json'], env)).stdout);
    expect(told.advertisers[0]).toMatchObject({
      certificate: 'proven',
      risk: 'none',
      reason: 'every id range was read; cross-checks agree',
      sweep: { certificate: 'assumed', risk: 'harmless' },
    });
  });

  test('a poll that meets a contradiction itself ends with 3, and says so', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50 } });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    board.choose({ echo: 'wrong' });
    board.add([{ attachments: [] }]);
    expect(await callIntake(noFiles, env)).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('this sweep unproven: the source repeats other filters than were sent'),
    });
  });

  test('a poll that ends with a doubt ends with 3', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50, order: 'descending' } });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    board.choose({ combination: 'refuse400' });
    board.add(Array.from({ length: 120 }, () => ({ attachments: [] })));
    const { code, stdout } = await callIntake([...noFiles, '--json'], env);
    expect({ code, told: toResult(stdout).advertisers[0] }).toMatchObject({
      code: 3,
      told: { sweep: { certificate: 'assumed', risk: 'doubt' } },
    });
  });

  test('a backfill by date ends with 0, since it takes nothing from the proof', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50 } });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    const lastWeek = new Date(Date.now() - 7 * 86_400_000).toISOString();
    const { code, stdout } = await callIntake(['backfill', '--no-files', '--to', lastWeek, '--json'], env);
    expect({ code, told: toResult(stdout).advertisers[0] }).toMatchObject({
      code: 0,
      told: { certificate: 'proven', sweep: { certificate: 'assumed', risk: 'harmless' } },
    });
  });
});

describe('of an account that is not proven', () => {
  test('a backfill of some ids ends with 3 while others were never read', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50 } });
    const env = toEnvironment(database, board);
    const ids = [...board.truth()].map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
    const some = await callIntake(['backfill', '--no-files', '--after-id', String(ids[60])], env);
    expect(some).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('coverage unproven: some ids were never read to their end'),
    });
    expect(await callIntake(['backfill', '--no-files', '--gaps'], env)).toMatchObject({ code: 0 });
  });

  test('a sync ends with 3 where a doubt stands from an earlier sweep, and with 0 where the assumption is harmless', {
    tags: ['slow'],
  }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 5 });
    const env = toEnvironment(database, board);
    expect(await callIntake(noFiles, env)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/coverage assumed: there are too few .+\n {2}assuming: /),
    });
    await database.query(`UPDATE intake.coverage SET risk = 'doubt', reason = 'answers came from a cache'`);
    const { code, stdout } = await callIntake([...noFiles, '--json'], env);
    expect({ code, told: toResult(stdout).advertisers[0] }).toMatchObject({
      code: 3,
      told: { certificate: 'assumed', risk: 'doubt', reason: 'answers came from a cache' },
    });
  });
});

describe('a backfill beside a live worker', () => {
  test('does not count as a poll, and leaves the proof of other ids as old as it is', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50 } });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    const load = async () => {
      const { advertisers } = JSON.parse((await callIntake(['status', '--json'], env)).stdout);
      const { readAt, coverage, openRanges } = advertisers[0];
      return { readAt, openRanges, ...coverage };
    };
    const before = await load();
    const ids = [...board.truth()].map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
    expect(await callIntake(['backfill', '--no-files', '--before-id', String(ids[60])], env)).toMatchObject({
      code: 0,
    });
    expect(await load()).toEqual(before);

    expect(await callIntake(['backfill', '--no-files'], env)).toMatchObject({ code: 0 });
    const after = await load();
    expect(after).toMatchObject({ readAt: before.readAt, certificate: 'proven', openRanges: 0 });
    expect(Date.parse(after.asOf)).toBeGreaterThan(Date.parse(before.asOf));
  });
});

describe('intake status --check', () => {
  test('ends with 8 while completeness is not proven, and names the command that helps', async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50 } });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    expect(await callIntake(['status', '--check'], env)).toMatchObject({ code: 0 });
    await database.query(
      `UPDATE intake.coverage SET certificate = 'unproven', risk = 'doubt', reason = 'the source repeats other filters than were sent'`,
    );
    expect(await callIntake(['status', '--check'], env)).toMatchObject({
      code: 8,
      stdout: expect.stringMatching(
        /! default: Completeness is not proven: the source repeats .+\(1 range of ids open\)\.\n +intake backfill --gaps/,
      ),
    });
  });

  test('ends with 8 when the proof is older than two rechecks, whatever polls have read since', {
    tags: ['slow'],
  }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 120, choices: { pageCap: 50 } });
    const env = toEnvironment(database, board);
    await callIntake(noFiles, env);
    await database.query(`UPDATE intake.coverage SET as_of = as_of - interval '3 months'`);
    const old = await callIntake(['status', '--check'], env);
    expect(old).toMatchObject({ code: 8, stdout: expect.not.stringContaining('All is well') });
    expect(old.stdout).toMatch(
      /The last proof is 9\dd(?: \d+\w)? old, the limit is 2d: no recheck has completed since/,
    );
    expect(old.stdout).toMatch(/proof +│ 9\dd \d+h ago|proof +│ 9\dd/);

    await database.query(`UPDATE intake.coverage SET as_of = now() - interval '13 days'`);
    const off = { ...env, RECHECK_SCHEDULE: 'off' };
    expect(await callIntake(['status', '--check'], off)).toMatchObject({ code: 0 });
    await database.query(`UPDATE intake.coverage SET as_of = now() - interval '15 days'`);
    expect(await callIntake(['status', '--check'], off)).toMatchObject({
      code: 8,
      stdout: expect.stringContaining('The last proof is 15d old, the limit is 14d: rechecks are off'),
    });

    expect(await callIntake(['sync', '--no-files', '--recheck'], env)).toMatchObject({ code: 0 });
    expect(await callIntake(['status', '--check'], env)).toMatchObject({ code: 0 });
  });
});

// What `intake sync` and `intake backfill` say of the account as it stands, and how they end.
import { describe, expect } from 'vitest';
import { test, toResult } from '../../support/processes/site.ts';

/** A board that one sync proves complete. */
const proven = { applications: 120, choices: { pageCap: 50 } };

test('of an account whose newest page is all that its filters show a backfill doubts as a recheck does that what left the page was deleted', {
  tags: ['slow'],
}, async ({ openSite }) => {
  const { board, intake } = await openSite({
    applications: 50,
    choices: { pageCap: 50, order: 'descending', filtersAfterCap: ['afterid', 'beforeid'] },
  });
  await intake('sync --no-files');
  board.add(Array.from({ length: 5 }, () => ({ attachments: [] })));
  for (const command of ['backfill --no-files', 'sync --no-files --recheck']) {
    expect(await intake(command), command).toMatchObject({
      code: 3,
      stdout: expect.stringContaining(
        'coverage assumed: stored applications are gone, and a filter that acts after the cap would look the same',
      ),
    });
  }
});

describe('of an account that is proven', { tags: ['slow'] }, () => {
  test('a poll ends with 0, and says what is proven', async ({ openSite }) => {
    const { board, intake } = await openSite(proven);
    await intake('sync --no-files');
    board.add([{ attachments: [] }]);
    const { code, stdout } = await intake('sync --no-files');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/coverage proven: every id range was read; cross-checks agree$/m),
    });
    const told = toResult(await intake('sync --no-files --json'));
    expect(told.advertisers[0]).toMatchObject({
      certificate: 'proven',
      risk: 'none',
      reason: 'every id range was read; cross-checks agree',
      sweep: { certificate: 'assumed', risk: 'harmless' },
    });
  });

  test('a poll that meets a contradiction itself ends with 3, and says so', async ({ openSite }) => {
    const { board, intake } = await openSite(proven);
    await intake('sync --no-files');
    board.choose({ echo: 'wrong' });
    board.add([{ attachments: [] }]);
    expect(await intake('sync --no-files')).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('this sweep unproven: the source repeats other filters than were sent'),
    });
  });

  test('a backfill by date ends with 0, since it takes nothing from the proof', async ({ openSite }) => {
    const { intake } = await openSite(proven);
    await intake('sync --no-files');
    const lastWeek = new Date(Date.now() - 7 * 86_400_000).toISOString();
    const said = await intake(`backfill --no-files --to ${lastWeek} --json`);
    expect({ code: said.code, told: toResult(said).advertisers[0] }).toMatchObject({
      code: 0,
      told: { certificate: 'proven', sweep: { certificate: 'assumed', risk: 'harmless' } },
    });
  });
});

describe('of an account that is not proven', { tags: ['slow'] }, () => {
  test('a backfill of some ids ends with 3 while others were never read', async ({ openSite }) => {
    const { board, intake } = await openSite(proven);
    const ids = [...board.truth()].map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
    expect(await intake(`backfill --no-files --after-id ${ids[60]}`)).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('coverage unproven: some ids were never read to their end'),
    });
    expect(await intake('backfill --no-files --gaps')).toMatchObject({ code: 0 });
  });

  test('a sync ends with 3 where a doubt stands, with 0 where it is harmless', async ({ openSite }) => {
    const { database, intake } = await openSite({ applications: 5 });
    expect(await intake('sync --no-files')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/coverage assumed: there are too few /),
    });
    await database.query(`UPDATE intake.coverage SET risk = 'doubt', reason = 'answers came from a cache'`);
    const said = await intake('sync --no-files --json');
    expect({ code: said.code, told: toResult(said).advertisers[0] }).toMatchObject({
      code: 3,
      told: { certificate: 'assumed', risk: 'doubt', reason: 'answers came from a cache' },
    });
  });
});

test('a backfill beside a live worker does not count as a poll, and leaves the proof of other ids as old as it is', {
  tags: ['slow'],
}, async ({ openSite }) => {
  const { board, intake } = await openSite(proven);
  await intake('sync --no-files');
  const load = async () => {
    const { advertisers } = toResult(await intake('status --json'));
    const { readAt, coverage, openRanges } = advertisers[0];
    return { readAt, openRanges, ...coverage };
  };
  const before = await load();
  const ids = [...board.truth()].map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
  expect(await intake(`backfill --no-files --before-id ${ids[60]}`)).toMatchObject({ code: 0 });
  expect(await load()).toEqual(before);

  expect(await intake('backfill --no-files')).toMatchObject({ code: 0 });
  const after = await load();
  expect(after).toMatchObject({ readAt: before.readAt, certificate: 'proven', openRanges: 0 });
  expect(Date.parse(after.asOf)).toBeGreaterThan(Date.parse(before.asOf));
});

test('intake status --check ends with 8 while completeness is not proven, and names the command that helps', async ({
  openSite,
}) => {
  const { database, intake } = await openSite(proven);
  await intake('sync --no-files');
  expect(await intake('status --check')).toMatchObject({ code: 0 });
  await database.query(
    `UPDATE intake.coverage SET certificate = 'unproven', risk = 'doubt', reason = 'the source repeats other filters than were sent'`,
  );
  expect(await intake('status --check')).toMatchObject({
    code: 8,
    stdout: expect.stringMatching(
      /! default: Completeness is not proven: the source repeats .+\(1 range of ids open\)\.\n +intake backfill --gaps/,
    ),
  });
});

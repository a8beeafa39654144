// What a list may do, row by row, from HTTP to the rows; L6 is in late.test.ts, and choices.test.ts plays every choice of the other rows.
// Each ends with the one assertion that matters: every application that the source shows is stored once and equal, or nothing of it is
// believed and the advertiser says so.
import { describe, expect } from 'vitest';
import type { Choices } from '../../src/dev/sandbox/behaviour/choices.ts';
import type { TestDatabase } from '../support/database/test-database.ts';
import { findDifferences } from '../support/equality.ts';
import { test } from '../support/processes/site.ts';

/** Rows after which everything is equal. */
const equal: readonly (readonly [row: string, choices: Partial<Choices>])[] = [
  ['L1 pages are capped at 3', { pageCap: 3 }],
  ['L5 the same page for ever', { ignoredFilters: ['afterid', 'beforeid', 'afterdate', 'beforedate'] }],
];

describe('every application is stored once and equal when', () => {
  for (const [row, choices] of equal) {
    test(row, async ({ openSite }) => {
      const { board, database, sync } = await openSite({ applications: 10, choices });
      await sync();
      expect(await findDifferences(database, board)).toEqual([]);
      await expectOnce(database);
    });
  }
});

describe('the list', () => {
  test('L17 carries an AgentID, then another: the newest is kept', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, database, sync, recheck } = await openSite({ applications: 2, choices: { agentId: 'number' } });
    const loadAgent = async () => (await database.query(`SELECT agent_id FROM intake.advertisers`))[0]?.agent_id;
    await sync();
    const first = await loadAgent();
    board.choose({ agentId: 'text' });
    const [again] = await recheck();
    expect([typeof first, (await loadAgent()) === first, again?.changed]).toEqual(['string', false, 0]);
  });

  test('L13 changes a known application: no stored file goes because a list got shorter', async ({ openSite }) => {
    const { board, database, sync, recheck } = await openSite({ applications: 3 });
    await sync();
    const [id] = [...board.truth()].map((one) => one.id);
    board.change(id as bigint, { email: 'moved@example.com', firstName: 'redacted', attachments: [] });
    await recheck();
    expect(await findDifferences(database, board)).toEqual([]);
    const [row] = await database.query(
      `SELECT count(*)::int AS kept, count(*) FILTER (WHERE gone_at IS NULL)::int AS shown FROM intake.attachments WHERE application_id = $1`,
      [id],
    );
    expect(row?.shown).toBe(0);
    expect(row?.kept).toBeGreaterThan(0);
  });
});

/** One row and one event each. */
async function expectOnce(database: TestDatabase): Promise<void> {
  expect(
    await database.query(
      `SELECT application_id FROM intake.events WHERE type = 'application.received' GROUP BY 1 HAVING count(*) <> 1`,
    ),
  ).toEqual([]);
}

describe('L8 a source that says 404 for "nothing"', () => {
  const choices = { empty: 'notFound', pageCap: 3 } as const;

  test('is known to a new process, also where nothing is shown any more', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, database, sync } = await openSite({ applications: 4, choices });
    const [first] = await sync();
    expect(first).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
    expect(board.requests().map(({ status }) => status)).toContain(404);
    // Nothing is new: a poll receives the newest application again.
    await database.query(`UPDATE intake.applications SET first_seen_at = first_seen_at - interval '2 days'`);
    board.clearRequests();
    expect(await sync()).toMatchObject([{ added: 0, received: 1, stopped: false }]);
    const ids = [...board.truth()].map(({ id }) => id);
    for (const id of ids) board.remove(id);
    board.clearRequests();
    await expect(sync()).rejects.toThrow('shows none of the applications that it has shown before');
    expect(new Set(board.requests().map(({ status }) => status))).toEqual(new Set([404]));
    board.add(2);
    await sync();
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications`)).toEqual([{ n: 6 }]);
  });

  test('at another base URL, or before any answer, is a wrong one', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, sync } = await openSite({ applications: 4, choices });
    const wrong = { SOURCE_URL: `${board.url}/elsewhere` };
    await expect(sync(wrong)).rejects.toThrow(/base URL is probably wrong/);
    await sync();
    await expect(sync(wrong)).rejects.toThrow(/base URL is probably wrong/);
    expect(await sync()).toMatchObject([{ added: 0 }]);
  });
});

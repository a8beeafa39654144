// @module-tag slow
// What is recorded as covered: a sweep of some ids changes what is said of these, and of no others.
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { callIntake } from '../support/intake.ts';
import { toEnvironment } from '../support/syncing.ts';
import { type TestDatabase, test } from '../support/test-database.ts';

const loadOpen = (database: TestDatabase) => database.query(`SELECT low, high FROM intake.open_ranges ORDER BY low`);

describe('gaps', () => {
  test('are not left by a list that was walked to its end by one filter', async ({ emptied: database }) => {
    await using board = await openSandbox({
      applications: 90,
      choices: { pageCap: 30, combination: 'refuse400', order: 'ascending' },
    });
    const env = toEnvironment(database, board);
    const walked = { certificate: 'assumed', risk: 'doubt', open_ranges: 0 };
    const loadCompleteness = () =>
      database.query(`SELECT certificate, risk, open_ranges FROM intake_analytics.completeness`);
    await callIntake(['sync', '--no-files'], env);
    expect(await loadCompleteness()).toEqual([walked]);
    board.add(Array.from({ length: 40 }, () => ({ attachments: [] })));
    await callIntake(['sync', '--no-files'], env);
    expect(await loadCompleteness()).toEqual([walked]);
  });

  test('may end at the highest id there is', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 90, choices: { pageCap: 30 } });
    await callIntake(['sync', '--no-files'], toEnvironment(database, board));
    await database.query(
      `WITH sweep AS (UPDATE intake.sweeps SET state = 'open' WHERE purpose = 'recheck' RETURNING advertiser_id, sweep_id)
       INSERT INTO intake.ranges (advertiser_id, sweep_id, low, high, state, evidence)
       SELECT advertiser_id, sweep_id, 100000000, 9223372036854775807, 'stuck', '{}' FROM sweep`,
    );
    expect(await loadOpen(database)).toEqual([{ low: '100000000', high: null }]);
  });
});

describe('what was learned of the pages', { tags: ['slow'] }, () => {
  const loadLearned = async (database: TestDatabase) => {
    const [row] = await database.query<{ learned: { longest?: number } }>(`SELECT learned FROM intake.advertisers`);
    return row?.learned;
  };

  test('keeps the longest page, also after a sweep of few ids', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 90, choices: { pageCap: 30 } });
    const env = toEnvironment(database, board);
    await callIntake(['sync', '--no-files'], env);
    const few = [...board.truth()].map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1))[5] ?? 0n;
    await callIntake(['backfill', '--no-files', '--before-id', String(few)], env);
    expect((await loadLearned(database))?.longest).toBe(30);
  });

  test('is nothing where the list was read by date', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 90, choices: { pageCap: 30, order: 'ascending' } });
    const env = { ...toEnvironment(database, board), SYNC_START: '2000-01-01' };
    await callIntake(['sync', '--no-files'], env);
    expect(await loadLearned(database)).toEqual({});
  });
});

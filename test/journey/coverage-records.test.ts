// @module-tag slow
// What a sweep leaves on record: its gaps, and what it has learned of the pages.
import { describe, expect } from 'vitest';
import type { TestDatabase } from '../support/database/test-database.ts';
import { test } from '../support/processes/site.ts';

describe('gaps', () => {
  test('are not left by a list that was walked to its end by one filter', async ({ openSite }) => {
    const { board, database, intake } = await openSite({
      applications: 90,
      choices: { pageCap: 30, combination: 'refuse400', order: 'ascending' },
    });
    const walked = { certificate: 'assumed', risk: 'doubt', open_ranges: 0 };
    const loadCompleteness = () =>
      database.query(`SELECT certificate, risk, open_ranges FROM intake_analytics.completeness`);
    await intake('sync --no-files');
    expect(await loadCompleteness()).toEqual([walked]);
    board.add(Array.from({ length: 40 }, () => ({ attachments: [] })));
    await intake('sync --no-files');
    expect(await loadCompleteness()).toEqual([walked]);
  });

  test('may end at the highest id there is', async ({ openSite }) => {
    const { database, intake } = await openSite({ applications: 90, choices: { pageCap: 30 } });
    await intake('sync --no-files');
    await database.query(
      `WITH sweep AS (UPDATE intake.sweeps SET state = 'open' WHERE purpose = 'recheck' RETURNING advertiser_id, sweep_id)
       INSERT INTO intake.ranges (advertiser_id, sweep_id, low, high, state, evidence)
       SELECT advertiser_id, sweep_id, 100000000, 9223372036854775807, 'stuck', '{}' FROM sweep`,
    );
    const open = await database.query(`SELECT low, high FROM intake.open_ranges`);
    expect(open).toEqual([{ low: '100000000', high: null }]);
  });
});

describe('what was learned of the pages', { tags: ['slow'] }, () => {
  const loadLearned = async (database: TestDatabase) => {
    const [row] = await database.query<{ learned: { longest?: number } }>(`SELECT learned FROM intake.advertisers`);
    return row?.learned;
  };

  test('keeps the longest page, also after a sweep of few ids', async ({ openSite }) => {
    const { board, database, intake } = await openSite({ applications: 90, choices: { pageCap: 30 } });
    await intake('sync --no-files');
    const few = [...board.truth()].map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1))[5] ?? 0n;
    await intake(`backfill --no-files --before-id ${few}`);
    expect((await loadLearned(database))?.longest).toBe(30);
  });

  test('is nothing where the list was read by date', async ({ openSite }) => {
    const { database, intake } = await openSite({ applications: 90, choices: { pageCap: 30, order: 'ascending' } });
    await intake('sync --no-files', { SYNC_START: '2000-01-01' });
    expect(await loadLearned(database)).toEqual({});
  });
});

// @module-tag slow
// What runs every minute reads as many blocks in an account of fifty thousand applications as in one of ten thousand: its cost does not
// depend on how much is stored. `npm run bench -- growth` counts the same blocks at each of its sizes.
import { expect, test } from 'vitest';
import { fillAccount } from '../../bench/filled-account.ts';
import { countBlocks } from '../../bench/frequent.ts';
import { openTestDatabase } from '../support/test-database.ts';

/** An index that is one level deeper costs a block for each lookup. */
const mostMore = { times: 1.3, blocks: 20 };

test('what runs often reads no more blocks when five times as much is stored', async () => {
  const [few, many] = [await measure(10_000), await measure(50_000)];
  const grown = Object.entries(many).filter(([what, blocks]) => {
    return blocks > (few[what] ?? 0) * mostMore.times + mostMore.blocks;
  });
  expect(grown.map(([what, blocks]) => `${what}: ${few[what]} blocks, then ${blocks}`)).toEqual([]);
});

/** The blocks in an account of this size with a backlog of a thousand files. */
async function measure(applications: number): Promise<Record<string, number>> {
  await using database = await openTestDatabase();
  await fillAccount(database.url, applications);
  await database.query(
    `INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority)
     SELECT advertiser_id, application_id, kind, application_id % 2 FROM intake.attachments WHERE kind = 'resume' AND application_id <= 1000`,
  );
  await database.query('ANALYZE intake.downloads');
  return await countBlocks(database.url, 7n);
}

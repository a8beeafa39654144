// @module-tag slow
// What runs every minute reads as many blocks in an account of fifty thousand applications as in one of ten thousand: its cost does not
// depend on how much is stored. `npm run bench -- growth` counts the same blocks at each of its sizes.
import { expect, test } from 'vitest';
import { fillAccount } from '../../../bench/support/filled-account.ts';
import { countBlocks } from '../../../bench/support/frequent.ts';
import { openTestDatabase } from '../../support/database/test-database.ts';

/** An index that is one level deeper costs a block for each lookup. */
const mostMore = { times: 1.3, blocks: 20 };

test('what runs often reads no more blocks when five times as much is stored, and no table as a whole', async () => {
  const [few, many] = [await measure(10_000), await measure(50_000)];
  expect(listGrown(few.busy.blocks, many.busy.blocks)).toEqual([]);
  expect(many.busy.scans).toEqual([]);
  expect(many.busy.blocks['a claim of files']).toBeGreaterThan(Number(many.idle.blocks['a claim of files']));
  expect(listGrown(few.idle.blocks, many.idle.blocks)).toEqual([]);
  expect(many.idle.scans).toEqual([]);
  expect(
    listGrown(few.loaded.blocks, many.loaded.blocks),
    'all of it stored within the hour, with dates ahead',
  ).toEqual([]);
  expect(many.loaded.scans).toEqual([]);
});

function listGrown(few: Readonly<Record<string, number>>, many: Readonly<Record<string, number>>): string[] {
  return Object.entries(many)
    .filter(([what, blocks]) => blocks > (few[what] ?? 0) * mostMore.times + mostMore.blocks)
    .map(([what, blocks]) => `${what}: ${few[what]} blocks, then ${blocks}`);
}

/**
 * An account of this size with a backlog of a thousand files, one beside it that has just begun, and the first as its first load leaves it.
 */
async function measure(applications: number) {
  await using database = await openTestDatabase();
  await fillAccount(database.url, applications);
  await database.query(
    `INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority)
     SELECT advertiser_id, application_id, kind, application_id % 2 FROM intake.attachments WHERE kind = 'resume' AND application_id <= 1000`,
  );
  await database.query('ANALYZE intake.downloads');
  await database.query(
    `INSERT INTO intake.advertisers (name, advertiser_id, created_at) VALUES ('new', 8, '2026-10-19')`,
  );
  const [busy, idle] = [await countBlocks(database.url, 7n), await countBlocks(database.url, 8n)];
  await database.query(`UPDATE intake.advertisers SET created_at = now() - interval '1 hour' WHERE advertiser_id = 7`);
  await database.query(
    `UPDATE intake.applications SET submitted_at = now() + interval '2 days',
       first_seen_at = now() - CASE WHEN application_id < $1 THEN interval '30 minutes' ELSE '5 minutes' END`,
    [applications / 2],
  );
  await database.query('VACUUM (FULL, ANALYZE) intake.applications');
  return { busy, idle, loaded: await countBlocks(database.url, 7n) };
}

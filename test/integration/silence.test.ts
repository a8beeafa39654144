// A silence out of habit, as status finds it in the rows of an account.
import { expect } from 'vitest';
import { toStatus } from '../../src/domain/status/status.ts';
import { openDatabase } from '../../src/store/postgres/database.ts';
import { loadAdvertiserStatus } from '../../src/store/reports/status.ts';
import { test } from '../support/database/test-database.ts';

test('a busy account that falls silent is told of, whatever single dates are wrong', async ({ database }) => {
  await database.query(
    `INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('busy', 20000001), ('steady', 20000002)`,
  );
  // One every ten minutes for forty days, the last thirty days ago; and one a day until today.
  await database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, content_hash, observed_seq)
     SELECT 20000001, i, now() - interval '70 days' + i * interval '10 minutes', ''::bytea, i FROM generate_series(1, 5760) AS i
     UNION ALL SELECT 20000002, i, now() - i * interval '1 day', ''::bytea, i FROM generate_series(0, 40) AS i
     UNION ALL SELECT 20000001, 30001, 'epoch', ''::bytea, 1 UNION ALL SELECT 20000001, 30002, now() + interval '300 days', ''::bytea, 1`,
  );
  await using db = openDatabase({ url: database.url, role: 'test' });
  const { problems } = toStatus(new Date(), await loadAdvertiserStatus(db));
  expect(problems.filter(({ what }) => what.startsWith('No application'))).toEqual([
    {
      advertiser: 'busy',
      what: 'No application for 30d, where the longest pause was 12h: look at the source.',
      command: 'intake sync --recheck',
      urgent: false,
    },
  ]);
});

// @module-tag slow
// What a first load costs before the server has gathered any statistics by itself.
import { expect, test } from 'vitest';
import { openTestDatabase } from '../../support/database/test-database.ts';
import { openSmallIntake } from '../../support/small-intake.ts';

test('a first load reads a row a few times, however many came before it', async () => {
  const applications = 1_500;
  await using database = await openTestDatabase();
  await database.query('ALTER TABLE intake.applications SET (autovacuum_enabled = off)');
  {
    await using intake = await openSmallIntake({ rigor: 'proof', applications, choices: { pageCap: 30 }, database });
    await intake.sweep();
  }
  // A session reports what it has read when it ends, and is gone a moment after its client.
  await expect
    .poll(async () => {
      const [read] = await database.query<{ rows: number }>(
        `SELECT idx_tup_fetch::int AS rows FROM pg_stat_user_tables WHERE relid = 'intake.applications'::regclass`,
      );
      return read?.rows;
    })
    .toBeGreaterThan(applications);
  const [read] = await database.query<{ indexed: number; scanned: number }>(
    `SELECT idx_tup_fetch::int AS indexed, seq_tup_read::int AS scanned FROM pg_stat_user_tables WHERE relid = 'intake.applications'::regclass`,
  );
  expect((read?.indexed ?? 0) / applications).toBeLessThan(60);
  expect((read?.scanned ?? 0) / applications).toBeLessThan(60);
});

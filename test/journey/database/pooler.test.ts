// @module-tag slow
// Behind a pooler in transaction mode: no session is anybody's own, so nothing may rest in one outside DATABASE_DIRECT_URL.
import { expect } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { openPooler } from '../../support/database/pooler.ts';
import { openTestDatabase, test } from '../../support/database/test-database.ts';
import { findDifferences } from '../../support/equality.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { hireWorker, isRead, openSettings, probe } from '../../support/processes/worker.ts';
import { until } from '../../support/suite/until.ts';

test('behind a pooler in transaction mode, two workers, a backfill and a status leave nothing out', async () => {
  await using database = await openTestDatabase();
  await using pooler = await openPooler(database.url);
  if (pooler === null) return expect(pooler).toBeNull();
  const some = { applications: 60, choices: { pageCap: 20 } };
  await using board = await openSandbox({ ...some, advertisers: [some] });
  await using settings = await openSettings({ url: pooler.url }, board, { DATABASE_DIRECT_URL: database.url });
  await using one = await hireWorker(settings.env);
  await using _two = await hireWorker(settings.env);
  await until(async () => (await isRead(database, board)) && (await isRead(database, board.advertiser(20_000_002n))));
  expect(await callIntake(['backfill'], settings.env)).toMatchObject({ code: 0 });
  board.add(3);
  await until(() => isRead(database, board));
  await until(async () => (await database.query(`SELECT 1 FROM intake.downloads`)).length === 0);
  for (const account of board.advertisers) expect(await findDifferences(database, account)).toEqual([]);
  expect(await probe(one, '/readyz')).toEqual({ status: 200, failed: [] });
  expect(await callIntake(['status', '--check'], settings.env)).toMatchObject({ code: 0 });
  // What a session was told stays in it for the next client; the pooler's sessions were told nothing.
  const sessions = await database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_locks l JOIN pg_stat_activity a USING (pid)
     WHERE l.locktype = 'advisory' AND a.datname = current_database() AND a.state = 'idle'`,
  );
  expect(sessions).toEqual([{ n: 0 }]);
});

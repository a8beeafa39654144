import { createInterface } from 'node:readline';
import { expect } from 'vitest';
import { startIntake } from '../../support/processes/intake.ts';
import { test } from '../../support/processes/site.ts';
import { syncBoard } from '../../support/processes/syncing.ts';
import { openTcpGate } from '../../support/servers/tcp-gate.ts';

test('intake status --check ends with 0 while what is new is read, else with 8', async ({ openSite }) => {
  const { board, database, intake } = await openSite({ applications: 5 });
  const check = async () => (await intake('status --check')).code;
  await syncBoard(database, board);
  expect(await check()).toBe(0);

  await database.query(`UPDATE intake.cursors SET as_of = now() - interval '21 minutes'`);
  await database.query(`UPDATE intake.coverage SET as_of = now() - interval '21 minutes'`);
  await database.query(
    `UPDATE intake.sweeps SET started_at = started_at - interval '21 minutes', ended_at = ended_at - interval '21 minutes'`,
  );
  expect(await intake('status --check')).toMatchObject({
    code: 8,
    stdout: expect.stringContaining('Nothing has been read for 21m'),
  });

  // Nothing new at the source: the poll leaves no row, and yet it was one.
  await syncBoard(database, board);
  expect(await check()).toBe(0);
});

test('intake status --watch goes on while the database restarts, and says since when it is unreachable', {
  tags: ['slow'],
}, async ({ openSite }) => {
  const { database, env } = await openSite({ applications: 5 });
  await using gate = await openTcpGate(database.url, { shut: true });
  const { child, ended } = startIntake(['status', '--watch', '--json'], { ...env, DATABASE_URL: gate.url });
  if (child.stdout === null) throw new Error('The command has no output.');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const untilSaid = async (words: RegExp) => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`It ended: ${JSON.stringify(await ended)}`);
      if (words.test(value)) return JSON.parse(value) as { headline: string; healthy: boolean };
    }
  };
  const away =
    /^\{.*The database has been unreachable since \d{4}-.+: The database at 127\.0\.0\.1:\d+ cannot be reached/;
  expect(await untilSaid(away)).toMatchObject({ healthy: false });
  await gate.open();
  expect((await untilSaid(/"staleAfterMs":\d/)).headline).not.toContain('unreachable');
  await gate.shut();
  const { headline } = await untilSaid(away);
  expect((await untilSaid(away)).headline).toBe(headline);
  child.kill('SIGTERM');
  expect((await ended).code).toBe(0);
});

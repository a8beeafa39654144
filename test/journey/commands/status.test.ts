// `intake status` beyond one look: as a check for cron jobs, and again and again.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect } from 'vitest';
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

describe('intake status --watch', { tags: ['slow'] }, () => {
  test('tells the status again and again, one object per line, and ends well with its signal', async ({ openSite }) => {
    const { env } = await openSite({ applications: 5 });
    const { child, ended } = startIntake(['status', '--watch', '--json'], env);
    for (let line = 0; line < 2 && child.stdout; line++) await once(child.stdout, 'data');
    child.kill('SIGTERM');
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect(lines[1]).toMatchObject({ headline: expect.any(String), healthy: expect.any(Boolean) });
  });

  test('goes on while the database restarts, and says since when it is unreachable', async ({ openSite }) => {
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
});

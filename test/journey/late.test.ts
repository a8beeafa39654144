// What arrives late, changes or vanishes at the source, and what the rows say of it.
import { describe, expect } from 'vitest';
import { findDifferences } from '../support/equality.ts';
import { test } from '../support/processes/site.ts';
import { until } from '../support/suite/until.ts';

const choices = { pageCap: 20, order: 'descending' } as const;

describe('L6 an application that shows only after a higher id was read', () => {
  test('is met by the next poll within the lag, and its lateness is noted', async ({ openSite }) => {
    const { board, database, sync } = await openSite({ applications: 30, choices });
    await sync();
    board.holdBack(1);
    board.add(2);
    await sync();
    const [late] = board.release();
    const sweeps = await sync();
    expect(sweeps).toMatchObject([{ added: 1, requests: 3 }]);
    expect(
      await database.query(`SELECT application_id FROM intake.applications WHERE application_id = $1`, [late]),
    ).toHaveLength(1);
    expect(
      await database.query(`SELECT late_ms > 0 AS late, late_at IS NOT NULL AS known FROM intake.advertisers`),
    ).toEqual([{ late: true, known: true }]);
    expect(await findDifferences(database, board)).toEqual([]);
  });

  test('is met by the next poll also if there was none for longer than the lag', async ({ openSite }) => {
    const { board, database, sync } = await openSite({ applications: 30, choices });
    await sync();
    board.holdBack(1);
    board.add(2);
    await sync();
    await database.query(`UPDATE intake.applications SET first_seen_at = first_seen_at - interval '3 hours'`);
    await database.query(`UPDATE intake.cursors SET as_of = as_of - interval '3 hours'`);
    board.release();
    expect((await sync()).at(-1)).toMatchObject({ added: 1 });
  });

  test('widens the window that polls read again', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, database, sync } = await openSite({ applications: 60, choices });
    await sync();
    board.holdBack(1);
    board.add(2);
    await sync();
    await database.query(`UPDATE intake.applications SET first_seen_at = first_seen_at - interval '3 hours'`);
    await database.query(`UPDATE intake.advertisers SET late_ms = 2 * 3600 * 1000, late_at = now()`);
    board.release();
    expect((await sync()).at(-1)).toMatchObject({ added: 1 });
  });
});

test('an application that is gone is absent, then missing, and back', { tags: ['slow'] }, async ({ openSite }) => {
  const { board, database, sync, recheck } = await openSite({ applications: 40, choices });
  await sync();
  const gone = [...board.truth()][20]?.id ?? 0n;
  board.remove(gone);
  const state = () =>
    database.query(
      `SELECT absent_since IS NOT NULL AS absent, missing_since IS NOT NULL AS missing
    FROM intake.applications WHERE application_id = $1`,
      [gone],
    );
  expect((await recheck()).at(-1)).toMatchObject({ certificate: 'proven', absent: 1 });
  expect(await state()).toEqual([{ absent: true, missing: false }]);
  await recheck();
  expect(await state()).toEqual([{ absent: true, missing: false }]);
  await database.query(`UPDATE intake.applications SET absent_since = absent_since - interval '25 hours'`);
  await recheck();
  expect(await state()).toEqual([{ absent: true, missing: true }]);
  expect(await database.query(`SELECT application_id FROM intake.events WHERE type = 'application.missing'`)).toEqual([
    { application_id: String(gone) },
  ]);
  board.restore(gone);
  await recheck();
  expect(await state()).toEqual([{ absent: false, missing: false }]);
});

test('a live sync beside a backfill meets new applications at once', async ({ openSite }) => {
  const { board, database, intake } = await openSite({ applications: 40, choices: { pageCap: 20 } });
  expect((await intake('sync --no-files')).code).toBe(0);
  board.clearRequests();
  let isRunning = true;
  const backfill = intake('backfill --no-files', { SOURCE_RATE: '6/s' }).finally(() => {
    isRunning = false;
  });
  await until(() => board.requests().length >= 3 || !isRunning);
  const [newest] = board.add(1);
  expect(await intake('sync --no-files')).toMatchObject({ code: 0 });
  expect(
    await database.query(`SELECT application_id FROM intake.applications WHERE application_id = $1`, [newest]),
  ).toHaveLength(1);
  expect(isRunning).toBe(true);
  expect((await backfill).code).toBe(0);
  expect(await findDifferences(database, board)).toEqual([]);
});

// What the charts show, against rows counted by hand.
import { describe, expect } from 'vitest';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { loadAdvertiserStatus, loadHistory } from '../../../src/store/reports/status.ts';
import { test as base } from '../../support/database/test-database.ts';

const now = new Date('2026-11-15T10:20:00Z');
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000);

const test = base.extend('db', { scope: 'file' }, async ({ database }, { onCleanup }) => {
  const db = openDatabase({ url: database.url, role: 'test' });
  onCleanup(() => db[Symbol.asyncDispose]());
  await database.query(
    `INSERT INTO intake.advertisers (name, advertiser_id, created_at) VALUES ('north', 1, $1), ('south', 2, $1), ('new', NULL, $1)`,
    [minutesAgo(600)],
  );
  const applications = [
    // advertiser, id, submitted, first seen: minutes ago
    [1, 1, 9_000, 590],
    [1, 2, 70, 68],
    [1, 3, 69, 65],
    [2, 4, 68, 60],
    [2, 5, 5, 4],
    [2, 6, null, 3],
    [2, 7, -60, 2],
  ] as const;
  for (const [advertiserId, id, submitted, seen] of applications) {
    await database.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, content_hash, observed_seq, first_seen_at) VALUES ($1, $2, $3, '\\x00', 1, $4)`,
      [advertiserId, id, submitted === null ? null : minutesAgo(submitted), minutesAgo(seen)],
    );
  }
  await database.query(
    `INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, size_bytes, sha256, stored_at)
     VALUES (1, 2, 'resume', 'stored', 1000, 'a', $1), (1, 2, 'screen', 'stored', NULL, 'b', $1), (2, 5, 'resume', 'pending', 5, NULL, NULL)`,
    [minutesAgo(61)],
  );
  await database.query(
    `INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority, due_at) VALUES (2, 5, 'resume', 0, now() - interval '5 minutes')`,
  );
  // advertiser, id, purpose, state, certificate, risk, minutes ago, requests, added, changed
  const sweeps = [
    [1, 1, 'recheck', 'closed', 'proven', 'none', 5_000, 14, 100, 0],
    [1, 2, 'live', 'closed', 'assumed', 'harmless', 2_000, 1, 50, 0],
    [1, 3, 'live', 'closed', 'assumed', 'harmless', 30, 1, 3, 1],
    [2, 4, 'live', 'closed', 'assumed', 'harmless', 25, 2, 4, 0],
    [2, 5, 'live', 'closed', 'assumed', 'doubt', 20, 1, 1, 0],
    [2, 6, 'live', 'running', null, null, 15, 1, 0, 0],
    [2, 7, 'live', 'dropped', null, null, 12, 1, 9, 9],
    [1, 8, 'backfill', 'closed', 'assumed', 'harmless', 10, 3, 0, 0],
  ] as const;
  for (const [advertiserId, id, purpose, state, certificate, risk, ago, requests, added, changed] of sweeps) {
    await database.query(
      `INSERT INTO intake.sweeps (advertiser_id, sweep_id, lane, purpose, axis, low, state, certificate, risk, started_at, last_progress_at, ended_at, requests, added, changed)
       VALUES ($1, $2, CASE $3 WHEN 'backfill' THEN 'backfill' ELSE 'live' END, $3, 'id', 1, $4, $5, $6, $7, $7,
         CASE WHEN $5::text IS NOT NULL THEN $7::timestamptz + interval '2 seconds' END, $8, $9, $10)`,
      [advertiserId, id, purpose, state, certificate, risk, minutesAgo(ago), requests, added, changed],
    );
  }
  return db;
});

describe('history', () => {
  test('has every hour of a day, the empty ones too, and the running one last', async ({ db }) => {
    const { hours } = await loadHistory(db, now);
    expect(hours).toHaveLength(24);
    expect(hours.at(-1)?.startAt).toEqual(new Date('2026-11-15T10:00:00Z'));
    expect(hours.map(({ applications }) => applications)).toEqual([...Array(22).fill(0), 3, 1]);
  });

  test('measures the delay of what was submitted since its advertiser is read', async ({ db }) => {
    const { hours } = await loadHistory(db, now);
    // Of 2, 4 and 8 minutes.
    expect(hours.at(-2)?.delayMs).toBeCloseTo(7.6 * 60_000);
    expect(hours.at(-1)?.delayMs).toBe(60_000);
    expect(hours.filter(({ delayMs }) => delayMs !== null)).toHaveLength(2);
  });

  test('lists each recheck and backfill with its certificate, and polls that left a doubt', async ({ db }) => {
    const { recentSweeps } = await loadHistory(db, now);
    expect(
      recentSweeps.map(({ advertiser, purpose, certificate, risk }) => [advertiser, purpose, certificate, risk]),
    ).toEqual([
      ['north', 'backfill', 'assumed', 'harmless'],
      ['south', 'live', 'assumed', 'doubt'],
      ['north', 'recheck', 'proven', 'none'],
    ]);
  });
});

test('status knows when what is new was last read: a backfill is no poll', async ({ db }) => {
  const [fresh, north, south] = await loadAdvertiserStatus(db);
  expect(north).toMatchObject({ name: 'north', readAt: new Date(minutesAgo(30).getTime() + 2_000) });
  expect(fresh).toMatchObject({ name: 'new', readAt: null, waiting: 0, due: 0, oldestDueAt: null });
  expect(south).toMatchObject({
    name: 'south',
    readAt: new Date(minutesAgo(20).getTime() + 2_000),
    waiting: 1,
    due: 1,
    oldestDueAt: expect.any(Date),
  });
});

// @module-tag slow
// What lasts longer than silence may last and yet is no silence: a worker that waits for a slow source, store or rate limit is not stuck.
import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, vi } from 'vitest';
import { totalTimeoutMs } from '../../src/app/clients.ts';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openTestDatabase, test } from '../support/database/test-database.ts';
import { hireWorker, isDone, isRead, isStored, openSettings } from '../support/processes/worker.ts';
import { openStrictS3 } from '../support/stores/strict-s3.ts';
import { until } from '../support/suite/until.ts';

/**
 * Notes whether the watchdog calls the worker stuck. Its clock counts only while this process is free to work: a busy machine makes nothing
 * silent.
 */
function watchSilence(stuckMs = 3_000) {
  let elapsedMs = 0;
  let isStuck = false;
  const tickMs = 20;
  const ticking = setInterval(() => {
    elapsedMs += tickMs;
  }, tickMs);
  const onStuck = () => {
    isStuck = true;
  };
  const now = () => elapsedMs;
  return {
    timing: { stuckMs, onStuck, now },
    isStuck: () => isStuck,
    [Symbol.dispose]: () => clearInterval(ticking),
  };
}

describe('a source that drips', () => {
  test.for(['list', 'resume'] as const)('its %s for longer than silence may last is no silence', async (on) => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 0 });
    board.add([{ attachments: [{ kind: 'resume', content: 'word '.repeat(60) }] }]);
    board.fault({ kind: 'drip', on, times: 1, pieceBytes: on === 'list' ? 10 : 6, everyMs: 200 });
    await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
    using silence = watchSilence();
    const { now, stuckMs } = silence.timing;
    await using _worker = await hireWorker(settings.env, silence.timing);
    await until(() => board.requests().some(({ faults }) => faults.includes('drip')));
    const startedAt = now();
    await until(() => isDone(database, board));
    expect(now() - startedAt).toBeGreaterThan(stuckMs);
    expect(silence.isStuck()).toBe(false);
  });
});

test('a request that is held for as long as one may last is no silence', async () => {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ applications: 1 });
  board.fault({ kind: 'hang', on: 'list', times: null });
  await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
  let aheadMs = 0;
  const now = () => performance.now() + aheadMs;
  await using worker = await hireWorker(settings.env, { now });
  await until(() => board.requests().length > 0);
  aheadMs = totalTimeoutMs;
  expect((await fetch(`${worker.adminUrl}/livez`)).status).toBe(200);
});

test('a clock that is set to two days later while an answer drips is no silence', async () => {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ applications: 1 });
  board.fault({ kind: 'drip', on: 'list', times: 1, pieceBytes: 500, everyMs: 1_500 });
  await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
  using silence = watchSilence(10_000);
  let aheadMs = 0;
  const now = Date.now;
  using _clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
  const { stuckMs, onStuck } = silence.timing;
  await using _worker = await hireWorker(settings.env, { stuckMs, onStuck });
  await until(async () => board.requests().length > 0);
  aheadMs = 2 * 86_400_000;
  await until(() => isRead(database, board));
  expect(silence.isStuck()).toBe(false);
});

test('a rate limit that is slower than silence may last is no silence', async () => {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ applications: 0 });
  board.add([{ attachments: ['resume', 'coverLetter'].map((kind) => ({ kind, content: `a ${kind}` })) }]);
  await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
  writeFileSync(settings.blobsPath, 'not a folder');
  {
    await using _reader = await hireWorker(settings.env);
    await until(() => isRead(database, board));
  }
  rmSync(settings.blobsPath);
  using silence = watchSilence();
  await using _worker = await hireWorker({ ...settings.env, SOURCE_RATE: '12/m' }, silence.timing);
  await until(() => isStored(database, board));
  expect(silence.isStuck()).toBe(false);
});

test('a store that takes longer for a file than silence may last is no silence', async () => {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ applications: 0 });
  board.add([{ attachments: [{ kind: 'resume', content: 'a file' }] }]);
  await using s3 = await openStrictS3();
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, s3.settings[name]);
  await using settings = await openSettings(database, board, { ...s3.settings, SYNC_SCHEDULE: 'off' });
  // Otherwise `verify` opens the store too if the test runs at minute 37. No limit for its waits is as short as that of this test.
  await database.query(
    `INSERT INTO intake.leases (name, lane, owner, epoch, expires_at, done_at)
     VALUES ('maintenance verify', 'live', 'elsewhere', 1, now(), now())`,
  );
  s3.fail('PutObject', { kind: 'slow', delayMs: 5_000 }, 2);
  using silence = watchSilence();
  await using _worker = await hireWorker(settings.env, silence.timing);
  await until(() => isDone(database, board));
  expect(silence.isStuck()).toBe(false);
  vi.unstubAllEnvs();
});

// The worker among advertisers that misbehave and dependencies that come and go: nobody waits for another, and all of it recovers.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { hireWorker, isDone, isRead, isStored, openSettings, probe } from '../support/processes/worker.ts';
import { openTcpGate } from '../support/servers/tcp-gate.ts';
import { until } from '../support/suite/until.ts';

const loadHalts = async (database: TestDatabase) =>
  Object.fromEntries(
    (
      await database.query<{ name: string; halt_kind: string | null }>(
        `SELECT name, halt_kind FROM intake.advertisers ORDER BY name`,
      )
    ).map((row) => [row.name, row.halt_kind]),
  );

const attemptsSpent = async (database: TestDatabase) =>
  (await database.query<{ n: number }>(`SELECT coalesce(sum(attempts), 0)::int AS n FROM intake.downloads`))[0]?.n;

/** Queues the files of an account again. */
const requeue = (database: TestDatabase, { advertiserId }: Pick<BoardAdvertiser, 'advertiserId'>) =>
  database.query(
    `WITH opened AS (UPDATE intake.attachments SET state = 'pending' WHERE advertiser_id = $1 RETURNING advertiser_id, application_id, kind)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) SELECT *, 0 FROM opened`,
    [advertiserId],
  );

test('several advertisers do not wait for one that is refused, mismatched or slow', async ({ emptied: database }) => {
  const some = { applications: 1 };
  await using board = await openSandbox({ ...some, advertisers: [some, some, some] });
  const [well, refused, mixed, slow] = board.advertisers;
  if (!well || !refused || !mixed || !slow) throw new Error('Four accounts are there.');
  mixed.fault({ kind: 'otherAdvertiser', on: 'list', times: null, skip: 1 });
  slow.fault({ kind: 'slow', on: 'list', times: null, delayMs: 500 });
  await using settings = await openSettings(database, board);
  settings.rotate('account-2', 'a credential of yesterday');
  await using worker = await hireWorker(settings.env, { probeEveryMs: 200 });

  await until(() => isDone(database, well));
  well.add(1);
  await until(() => isRead(database, well));
  await until(async () => (await loadHalts(database))['account-2'] === 'refused');
  await until(async () => (await loadHalts(database))['account-3'] === 'mismatch');
  await until(() => isRead(database, slow));
  expect(await probe(worker, '/readyz')).toEqual({ status: 200, failed: [] });

  // The file is written, nobody restarts anything.
  settings.rotate('account-2', refused.credential);
  await until(() => isRead(database, refused));
  await until(async () => (await loadHalts(database))['account-2'] === null);
  // What needs a person waits for one.
  expect(await loadHalts(database)).toMatchObject({ 'account-1': null, 'account-3': 'mismatch', 'account-4': null });
  expect(worker.lines.join('')).not.toContain(refused.credential);
});

test('an idle worker hears of a queued file and fetches it', async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 0 });
  board.add([{ attachments: [{ kind: 'resume', content: 'asked for again and again' }] }]);
  await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
  // By itself it looks once, at its start.
  await using _worker = await hireWorker(settings.env, { lookEveryMs: 3_600_000 });
  // One that looks at this very moment hears the next one.
  const isFetched = async () => {
    await database.query(`SELECT pg_notify('intake_downloads', $1)`, [board.advertiserId]);
    return await isStored(database, board);
  };
  await until(() => isRead(database, board));
  await until(isFetched);
  for (let nth = 0; nth < 3; nth++) {
    await requeue(database, board);
    await until(isFetched);
  }
});

test('a source that asks for rest gets it, and bytes still go', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 0, advertisers: [{ applications: 0 }] });
  const [, other] = board.advertisers;
  if (!other) throw new Error('Two accounts are there.');
  other.add([{ attachments: [{ kind: 'resume', content: 'asked for again and again' }] }]);
  board.add(Array.from({ length: 12 }, (_, nth) => ({ attachments: [{ kind: 'resume', content: `resume ${nth}` }] })));
  await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off', SOURCE_CONCURRENCY: '1' });
  board.fault({ kind: 'throttle', retryAfter: 'day', on: 'resume', times: null, skip: 2 });
  await using _worker = await hireWorker(settings.env, { lookEveryMs: 50 });
  const asked = () => board.requests().filter((one) => one.path.includes('/resume/') && one.status === 429).length;
  await until(() => asked() > 0);
  await database.query(
    `UPDATE intake.blobs SET state = 'infected', infected_at = now() WHERE sha256 = (SELECT min(sha256) FROM intake.blobs)`,
  );
  await until(async () => (await database.query(`SELECT 1 FROM intake.blobs WHERE deleted_at IS NOT NULL`)).length > 0);
  // Two more download runs, which fetch what another account has.
  for (let nth = 0; nth < 2; nth++) {
    await until(() => isDone(database, other));
    await requeue(database, other);
  }
  await until(() => isStored(database, other));
  expect(asked()).toBe(1);
  expect(await attemptsSpent(database)).toBe(0);
  expect(await database.query(`SELECT 1 FROM intake.downloads`)).toHaveLength(10);
});

test('a worker that starts without its database is not ready, and begins with it', async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 2 });
  await using gate = await openTcpGate(database.url, { shut: true });
  await using settings = await openSettings({ url: gate.url }, board);
  await using worker = await hireWorker(settings.env);
  expect(await probe(worker, '/readyz')).toEqual({ status: 503, failed: ['database', 'progress'] });
  expect(await probe(worker, '/livez')).toEqual({ status: 200, failed: [] });
  const page = await fetch(worker.adminUrl);
  expect({ status: page.status, text: await page.text() }).toMatchObject({ status: 503 });
  expect((await fetch(`${worker.adminUrl}/metrics`)).status).toBe(503);
  await gate.open();
  await until(() => isRead(database, board));
  await until(async () => (await probe(worker, '/readyz')).status === 200);
});

describe('a worker whose storage is away', () => {
  test('is not ready, spends no attempt, and stores everything when it comes back', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 2 });
    await using settings = await openSettings(database, board);
    writeFileSync(settings.blobsPath, 'not a folder');
    await using worker = await hireWorker(settings.env);
    await until(() => isRead(database, board));
    await until(async () => (await probe(worker, '/readyz')).failed.includes('files'));
    expect(await attemptsSpent(database)).toBe(0);
    rmSync(settings.blobsPath);
    mkdirSync(settings.blobsPath);
    await until(() => isStored(database, board));
    await until(async () => (await probe(worker, '/readyz')).status === 200);
  });

  test('takes it when it comes back, before there is a file to store', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 0 });
    await using settings = await openSettings(database, board);
    writeFileSync(settings.blobsPath, 'not a folder');
    await using _worker = await hireWorker(settings.env);
    await until(
      async () => (await database.query(`SELECT 1 FROM intake.advertisers WHERE state = 'active'`)).length > 0,
    );
    expect(await database.query(`SELECT identity FROM intake.blob_store WHERE identity IS NOT NULL`)).toEqual([]);
    rmSync(settings.blobsPath);
    await until(async () => existsSync(join(settings.blobsPath, '.intake-store')));
  });
});

test('what is new is read while everything is being read again', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 90, choices: { pageCap: 3 } });
  await using settings = await openSettings(database, board, { RECHECK_SCHEDULE: '*/3 * * * * *' });
  await using _worker = await hireWorker(settings.env);
  const findRecheck = async () => {
    const rows = await database.query<{ sweep_id: string }>(
      `SELECT sweep_id FROM intake.sweeps WHERE purpose = 'recheck' AND state = 'running' AND requests BETWEEN 1 AND 20`,
    );
    return rows[0]?.sweep_id;
  };
  await until(async () => (await isRead(database, board)) && (await findRecheck()) === undefined);
  // From here on a recheck takes ten seconds and more, and a poll comes every second.
  board.fault({ kind: 'slow', on: 'list', times: null, delayMs: 300 });
  await until(async () => (await findRecheck()) !== undefined);
  board.add(1);
  await until(() => isRead(database, board));
  // Found by a poll, to which the sweep of everything gave way.
  expect(await database.query(`SELECT added FROM intake.sweeps WHERE purpose = 'live' AND added > 0`)).toEqual([
    { added: '1' },
  ]);
});

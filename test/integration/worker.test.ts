// The worker among advertisers that misbehave and dependencies that come and go: nobody waits for another, and all of it recovers.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, vi } from 'vitest';
import { runWorker } from '../../src/app/worker.ts';
import { loadConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import type { Advertiser } from '../../src/sandbox/account.ts';
import { openSandbox } from '../../src/sandbox/server.ts';
import { openStrictS3 } from '../support/strict-s3.ts';
import { openTcpGate } from '../support/tcp-gate.ts';
import { openTestDatabase, type TestDatabase, test } from '../support/test-database.ts';
import { hireWorker, isRead, openSettings, probe, until } from '../support/worker.ts';

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

const isStored = async (database: TestDatabase, { advertiserId }: Pick<Advertiser, 'advertiserId'>) =>
  (await database.query(`SELECT 1 FROM intake.downloads WHERE advertiser_id = $1 LIMIT 1`, [advertiserId])).length ===
  0;

describe('several advertisers', () => {
  test('do not wait for one that is refused, one whose answers are of another account, or one that is slow', async () => {
    await using database = await openTestDatabase();
    const some = { applications: 12 };
    await using board = await openSandbox({ ...some, advertisers: [some, some, some] });
    const [well, refused, mixed, slow] = board.advertisers;
    if (!well || !refused || !mixed || !slow) throw new Error('Four accounts are there.');
    mixed.fault({ kind: 'otherAdvertiser', on: 'list', times: null, skip: 1 });
    slow.fault({ kind: 'slow', on: 'list', times: null, delayMs: 1_500 });
    await using settings = await openSettings(database, board);
    settings.rotate('account-2', 'a credential of yesterday');
    await using worker = await hireWorker(settings.env, { probeEveryMs: 200 });

    await until(async () => (await isRead(database, well)) && (await isStored(database, well)));
    well.add(1);
    await until(() => isRead(database, well), 3_000);
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

  test('refused for a while lose no file and spend no attempt', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 20 });
    const refusal = board.fault({ kind: 'refuse', on: 'attachments', times: null });
    await using settings = await openSettings(database, board);
    await using _worker = await hireWorker(settings.env, { probeEveryMs: 200 });
    await until(() => isRead(database, board));
    await until(() => board.requests().some((one) => one.status === 401));
    await sleep(500);
    await until(async () => (await attemptsSpent(database)) === 0);
    board.clearFaults(refusal);
    await until(() => isStored(database, board));
    expect(await database.query(`SELECT DISTINCT state FROM intake.attachments ORDER BY 1`)).toEqual(
      expect.arrayContaining([{ state: 'stored' }]),
    );
  });
});

describe('an account', () => {
  test('that one worker has just polled is left alone by another, which also polls once at its start', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 3 });
    await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
    await using one = await hireWorker(settings.env);
    await until(() => one.passes.some(({ pass, outcome }) => pass === 'recheck' && outcome === 'done'));
    await until(() => isStored(database, board));
    board.clearRequests();
    await using two = await hireWorker(settings.env);
    await until(async () => (await probe(two, '/readyz')).status === 200);
    await sleep(500);
    expect(board.requests()).toEqual([]);

    // Some time later it is another matter.
    await database.query(`UPDATE intake.leases SET done_at = now() - interval '1 minute'`);
    await using _three = await hireWorker(settings.env);
    await until(() => board.requests().length > 0);
  });
});

describe('a worker with nothing to do', () => {
  test('hears of a queued file and fetches it at once, long before it would look by itself', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 0 });
    board.add([{ attachments: [{ kind: 'resume', content: 'asked for again and again' }] }]);
    await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
    await using worker = await hireWorker(settings.env);
    await until(() => worker.passes.some(({ pass, outcome }) => pass === 'drain' && outcome === 'done'));
    const tookMs: number[] = [];
    for (let round = 0; round < 3; round++) {
      // It has just looked, and will not for two seconds.
      await sleep(300);
      await database.query(
        `WITH opened AS (UPDATE intake.attachments SET state = 'pending' RETURNING advertiser_id, application_id, kind)
         INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) SELECT *, 0 FROM opened`,
      );
      const queuedAt = performance.now();
      await database.query(`SELECT pg_notify('intake_downloads', $1)`, [board.advertiserId]);
      await until(() => isStored(database, board));
      tookMs.push(performance.now() - queuedAt);
    }
    expect(Math.min(...tookMs)).toBeLessThan(1_200);
  });
});

describe('a source that asks to be left alone for long', () => {
  test('is, by one drain after the other, while condemned bytes still go', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 0 });
    board.add(
      Array.from({ length: 12 }, (_, nth) => ({ attachments: [{ kind: 'resume', content: `resume ${nth}` }] })),
    );
    await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off', SOURCE_CONCURRENCY: '1' });
    board.fault({ kind: 'throttle', retryAfter: 'day', on: 'resume', times: null, skip: 2 });
    await using _worker = await hireWorker(settings.env);
    const asked = () => board.requests().filter((one) => one.path.includes('/resume/') && one.status === 429).length;
    await until(() => asked() > 0);
    await database.query(
      `UPDATE intake.blobs SET state = 'condemned', condemned_at = now() WHERE sha256 = (SELECT min(sha256) FROM intake.blobs)`,
    );
    await until(
      async () => (await database.query(`SELECT 1 FROM intake.blobs WHERE emptied_at IS NOT NULL`)).length > 0,
    );
    // Long enough for two more drains.
    await sleep(4_500);
    expect(asked()).toBe(1);
    expect(await attemptsSpent(database)).toBe(0);
    expect(await database.query(`SELECT 1 FROM intake.downloads`)).toHaveLength(10);
  });
});

describe('a worker whose database is away', () => {
  test('at its start answers on its admin port, is not ready, and begins when it comes', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 10 });
    await using gate = await openTcpGate(database.url, { shut: true });
    await using settings = await openSettings({ url: gate.url }, board);
    await using worker = await hireWorker(settings.env);
    expect(await probe(worker, '/readyz')).toEqual({ status: 503, failed: ['database', 'progress'] });
    expect(await probe(worker, '/livez')).toEqual({ status: 200, failed: [] });
    const page = await fetch(worker.adminUrl);
    expect({ status: page.status, text: await page.text() }).toMatchObject({ status: 503 });
    expect(await (await fetch(`${worker.adminUrl}/metrics`)).text()).toContain('intake_database_up 0');
    await gate.open();
    await until(() => isRead(database, board));
    await until(async () => (await probe(worker, '/readyz')).status === 200);
  });

  test('later goes on by itself, with everything that came meanwhile', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 10 });
    await using gate = await openTcpGate(database.url);
    await using settings = await openSettings({ url: gate.url }, board);
    await using worker = await hireWorker(settings.env);
    await until(async () => (await isRead(database, board)) && (await isStored(database, board)));
    await gate.shut();
    await until(async () => (await probe(worker, '/readyz')).failed.includes('database'));
    board.add(5);
    expect((await probe(worker, '/livez')).status).toBe(200);
    await gate.open();
    await until(async () => (await isRead(database, board)) && (await isStored(database, board)));
    await until(async () => (await probe(worker, '/readyz')).status === 200);
  });
});

describe('a worker whose source is away', () => {
  test('is not ready, and reads on when it comes back', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 10 });
    await using gate = await openTcpGate(board.url);
    const seen = { url: gate.url, credential: board.credential, advertisers: board.advertisers };
    await using settings = await openSettings(database, seen);
    await using worker = await hireWorker(settings.env);
    await until(async () => (await isRead(database, board)) && (await isStored(database, board)));
    await gate.shut();
    await until(async () => (await probe(worker, '/readyz')).failed.includes('progress'));
    board.add(1);
    await gate.open();
    await until(() => isRead(database, board));
    await until(async () => (await probe(worker, '/readyz')).status === 200);
  });
});

describe('a worker whose storage is away', () => {
  test('is not ready, spends no attempt, and stores everything when it comes back', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 8 });
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
});

describe('a source that drips', () => {
  test.for(['list', 'resume'] as const)('its %s for longer than silence may last is no silence', async (on) => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 0 });
    board.add([{ attachments: [{ kind: 'resume', content: 'word '.repeat(60) }] }]);
    board.fault({ kind: 'drip', on, times: 1, pieceBytes: on === 'list' ? 20 : 6, everyMs: 120 });
    await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
    let isStuck = false;
    const onStuck = () => {
      isStuck = true;
    };
    const stuckMs = 3_000;
    await using _worker = await hireWorker(settings.env, { stuckMs, onStuck });
    const startedAt = performance.now();
    await until(async () => (await isRead(database, board)) && (await isStored(database, board)), 40_000);
    expect(performance.now() - startedAt).toBeGreaterThan(stuckMs);
    expect(isStuck).toBe(false);
  });
});

test('a clock that is set to two days later while an answer drips is no silence', async () => {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ applications: 1 });
  board.fault({ kind: 'drip', on: 'list', times: 1, pieceBytes: 500, everyMs: 1_500 });
  await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
  let isStuck = false;
  const onStuck = () => {
    isStuck = true;
  };
  let aheadMs = 0;
  const now = Date.now;
  using _clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
  await using _worker = await hireWorker(settings.env, { stuckMs: 10_000, onStuck });
  await until(async () => board.requests().length > 0);
  aheadMs = 2 * 86_400_000;
  await until(() => isRead(database, board));
  expect(isStuck).toBe(false);
});

test('a pace that is slower than silence may last is no silence', async () => {
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
  let isStuck = false;
  const onStuck = () => {
    isStuck = true;
  };
  await using _worker = await hireWorker({ ...settings.env, SOURCE_RATE: '12/m' }, { stuckMs: 3_000, onStuck });
  await until(() => isStored(database, board));
  expect(isStuck).toBe(false);
});

test('a store that takes longer for a file than silence may last is no silence', async () => {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ applications: 0 });
  board.add([{ attachments: [{ kind: 'resume', content: 'a file' }] }]);
  await using s3 = await openStrictS3();
  const { secretAccessKey, accessKeyId } = s3.credentials;
  vi.stubEnv('AWS_ACCESS_KEY_ID', accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretAccessKey);
  await using settings = await openSettings(database, board, {
    SYNC_SCHEDULE: 'off',
    BLOBS_URL: `s3://${s3.bucket}/files`,
    S3_ENDPOINT: s3.endpoint,
    S3_REGION: s3.region,
    S3_FORCE_PATH_STYLE: 'true',
  });
  let isStuck = false;
  const onStuck = () => {
    isStuck = true;
  };
  s3.fail('PutObject', { kind: 'slow', delayMs: 5_000 }, 2);
  await using _worker = await hireWorker(settings.env, { stuckMs: 3_000, onStuck });
  await until(async () => (await isRead(database, board)) && (await isStored(database, board)), 40_000);
  expect(isStuck).toBe(false);
  vi.unstubAllEnvs();
});

describe('what is new', () => {
  test('is read while everything is being read again', { timeout: 60_000 }, async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 90, choices: { pageCap: 3 } });
    board.fault({ kind: 'slow', on: 'list', times: null, delayMs: 100 });
    await using settings = await openSettings(database, board, { RECHECK_SCHEDULE: '*/3 * * * * *' });
    await using _worker = await hireWorker(settings.env);
    const findRecheck = async () => {
      const rows = await database.query<{ sweep_id: string }>(
        `SELECT sweep_id FROM intake.sweeps WHERE purpose = 'recheck' AND state = 'running' AND requests BETWEEN 1 AND 5`,
      );
      return rows[0]?.sweep_id;
    };
    await until(async () => (await isRead(database, board)) && (await findRecheck()) === undefined);
    await until(async () => (await findRecheck()) !== undefined);
    board.add(1);
    await until(() => isRead(database, board));
    // Found by a poll, to which the reading of everything gave way.
    expect(await database.query(`SELECT added FROM intake.sweeps WHERE purpose = 'live'`)).toEqual([{ added: '1' }]);
  });
});

describe('a worker with the settings of prefill', () => {
  test('opens the public port as well, and a port that is taken is said in one line', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 1 });
    const prefill = (port: number) => ({
      PORT: String(port),
      AUTH_URL: board.url,
      OAUTH_CLIENT_ID: board.client.clientId,
      OAUTH_CLIENT_SECRET: board.client.clientSecret,
      OAUTH_REDIRECT_URI: 'http://127.0.0.1:8080/prefill/callback',
      PREFILL_RETURN_URLS: 'https://careers.example.com/',
      PREFILL_KEY: 'a-key-of-the-careers-site',
      SESSION_SECRET: 'a-session-secret-for-tests',
    });
    await using settings = await openSettings(database, board, prefill(0));
    await using worker = await hireWorker(settings.env);
    const findUrl = () => /"prefill":"([^"]+)"/.exec(worker.lines.join(''))?.[1];
    await until(() => findUrl() !== undefined);
    await until(() => isRead(database, board));
    const to = 'https://careers.example.com/apply';
    const asked = new URLSearchParams({ advertiser_id: String(board.advertiserId), form_url: to, return_url: to });
    const answer = await fetch(`${findUrl()}/prefill/start?${asked}`, { redirect: 'manual' });
    expect(answer.headers.get('location')).toMatch(`${board.url}/api/iam/oauth2/authorize?`);

    const taken = Number(new URL(findUrl() ?? '').port);
    const needs = ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'prefill'] as const;
    const config = loadConfig({ ...settings.env, ...prefill(taken) }, { needs });
    const log = await createLog({ level: 'silent', format: 'json' });
    await expect(runWorker(config, { log, signal: AbortSignal.timeout(20_000) })).rejects.toThrow(
      `PORT: port ${taken} cannot be opened on 127.0.0.1 (EADDRINUSE).`,
    );
  });
});

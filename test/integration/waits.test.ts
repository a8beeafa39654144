// What a worker waits for is told by the status of every process within seconds, with its cause and its beginning, and is gone when it is over.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openStore } from '../../src/store/store.ts';
import { createWaits, type Waiting } from '../../src/sync/waits.ts';
import { callIntake } from '../support/intake.ts';
import { openStrictS3 } from '../support/strict-s3.ts';
import { openTcpGate } from '../support/tcp-gate.ts';
import { type TestDatabase, test } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { hireWorker, isRead, openSettings, spawnWorker } from '../support/worker.ts';

interface Told {
  readonly headline: string;
  readonly healthy: boolean;
  readonly waits: readonly { dependency: string; reason: string; since: string; advertisers: string[] }[];
  readonly problems: readonly { advertiser: string | null; what: string; command: string; urgent: boolean }[];
}

/** The status as another process shows it. */
async function askStatus(env: Record<string, string>): Promise<Told> {
  return JSON.parse((await callIntake(['status', '--json'], env)).stdout) as Told;
}

async function isStored(database: TestDatabase): Promise<boolean> {
  const [row] = await database.query<{ n: number }>(
    `SELECT count(*) FILTER (WHERE state = 'pending')::int AS n FROM intake.attachments`,
  );
  return row?.n === 0;
}

describe('a source that is away', () => {
  test('is named by the status of another process, with host, port and cause; nobody asks whether a worker runs', async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 5 });
    await using gate = await openTcpGate(board.url);
    const seen = { url: gate.url, credential: board.credential, advertisers: board.advertisers };
    await using settings = await openSettings(database, seen);
    await using worker = await hireWorker(settings.env);
    await until(async () => (await isRead(database, board)) && (await isStored(database)));
    expect((await askStatus(settings.env)).waits).toEqual([]);
    const before = Date.now();
    await gate.shut();
    // A poll that was cut off amid an answer is told first, the port where nobody listens after it.
    await until(async () =>
      (await askStatus(settings.env)).waits.some(({ reason }) => reason.includes('ECONNREFUSED')),
    );
    // Long ago, so that a status without the wait would blame the worker.
    await database.query(`UPDATE intake.cursors SET as_of = now() - interval '3 hours'`);
    await database.query(`UPDATE intake.coverage SET as_of = now() - interval '3 hours'`);
    await database.query(
      `UPDATE intake.sweeps SET started_at = now() - interval '3 hours', ended_at = now() - interval '3 hours'`,
    );
    const status = await askStatus(settings.env);
    const { host } = new URL(gate.url);
    const reason = `The connection to the source at ${host} failed (ECONNREFUSED).`;
    expect(status.waits).toMatchObject([{ dependency: 'source', reason, advertisers: ['account-1'] }]);
    expect(Date.parse(status.waits[0]?.since ?? '')).toBeGreaterThan(before - 1_000);
    expect(status.problems.map(({ advertiser, what }) => [advertiser, what])).toContainEqual([
      'account-1',
      expect.stringMatching(/^Reading has been waiting for the source since \d{4}-.+ UTC: The connection/),
    ]);
    expect(JSON.stringify(status)).not.toContain('is a worker running');
    // The page and the metrics of the worker say the same.
    expect(await (await fetch(worker.adminUrl)).text()).toContain(reason);
    expect(await (await fetch(`${worker.adminUrl}/metrics`)).text()).toContain('intake_waiting{dependency="source"} 1');
    await gate.open();
    await until(async () => (await askStatus(settings.env)).waits.length === 0);
  });
});

describe('a source that is away while a command reads', () => {
  test('is named by the status of another process until the command goes on', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 5 });
    await using gate = await openTcpGate(board.url, { shut: true });
    const seen = { url: gate.url, credential: board.credential, advertisers: board.advertisers };
    await using settings = await openSettings(database, seen);
    const sync = callIntake(['sync'], settings.env);
    // Until it has created the schema, nothing can be asked.
    await until(async () => {
      const { stdout } = await callIntake(['status', '--json'], settings.env);
      return stdout.startsWith('{') && (JSON.parse(stdout) as Told).waits.length > 0;
    });
    expect((await askStatus(settings.env)).waits).toMatchObject([
      { dependency: 'source', reason: expect.stringContaining('ECONNREFUSED'), advertisers: ['account-1'] },
    ]);
    await gate.open();
    expect((await sync).code).toBe(0);
    expect((await askStatus(settings.env)).waits).toEqual([]);
  });
});

describe('a source that goes away between two polls', () => {
  test('is named as soon as a download meets it', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 5 });
    board.fault({ kind: 'fail', status: 503, on: 'files', times: null });
    await using gate = await openTcpGate(board.url);
    const seen = { url: gate.url, credential: board.credential, advertisers: board.advertisers };
    await using settings = await openSettings(database, seen, { SYNC_SCHEDULE: '0 0 1 1 *' });
    await using _worker = await hireWorker(settings.env);
    // The first sweep is over, and the next is a year away.
    await until(async () => (await database.query(`SELECT 1 FROM intake.leases WHERE done_at IS NOT NULL`)).length > 0);
    await gate.shut();
    await until(async () => {
      // A poll that has just ended is not repeated, by this worker or another.
      await database.query(`UPDATE intake.leases SET done_at = done_at - interval '1 minute'`);
      await callIntake(['retry'], settings.env);
      return (await askStatus(settings.env)).waits.some(({ dependency }) => dependency === 'source');
    });
  });
});

describe('a storage that is away while files wait', () => {
  test('is named by the status of another process, and no longer when files are stored again', {
    tags: ['slow'],
  }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 40 });
    await using s3 = await openStrictS3();
    await using gate = await openTcpGate(s3.endpoint, { shut: true });
    await using settings = await openSettings(database, board, {
      BLOBS_URL: `s3://${s3.bucket}/intake`,
      S3_ENDPOINT: gate.url,
      S3_REGION: s3.region,
      S3_FORCE_PATH_STYLE: 'true',
      AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
    });
    // A process of its own: the SDK reads its credentials from the environment of the process.
    await using _worker = await spawnWorker(settings.env);
    await until(async () => (await askStatus(settings.env)).waits.length > 0);
    const { host } = new URL(gate.url);
    const { waits, problems, headline } = await askStatus(settings.env);
    expect(waits).toMatchObject([
      { dependency: 'storage', reason: expect.stringContaining(`The store at ${host} cannot be reached`) },
    ]);
    expect(problems.map(({ what }) => what)).toContainEqual(
      expect.stringMatching(/^Downloads have been waiting for the storage since/),
    );
    expect(headline).not.toContain('All is well');
    await gate.open();
    await until(async () => (await isStored(database)) && (await askStatus(settings.env)).waits.length === 0);
  });
});

describe('a storage that takes requests and answers none', () => {
  test('is named while its client still tries', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 3 });
    await using silent = await openSilentServer();
    await using settings = await openSettings(database, board, {
      BLOBS_URL: 's3://bucket/intake',
      S3_ENDPOINT: silent.url,
      S3_REGION: 'us-east-1',
      S3_FORCE_PATH_STYLE: 'true',
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'key',
      SOURCE_TIMEOUT: '10m',
    });
    await using _worker = await spawnWorker(settings.env);
    await until(async () => (await askStatus(settings.env)).waits.length > 0);
    const { waits } = await askStatus(settings.env);
    const { host } = new URL(silent.url);
    expect(waits).toMatchObject([{ dependency: 'storage', reason: `The store at ${host} has not answered for 10 s.` }]);
  });
});

/** A server that accepts connections, and says nothing. */
async function openSilentServer(): Promise<{ readonly url: string } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('a database that is away', () => {
  test('is named by the page of the worker, with host and port', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 3 });
    await using gate = await openTcpGate(database.url);
    await using settings = await openSettings({ url: gate.url }, board);
    await using worker = await hireWorker(settings.env);
    await until(() => isRead(database, board));
    await gate.shut();
    const { host } = new URL(gate.url);
    const isNamed = async () =>
      (await (await fetch(worker.adminUrl)).text()).includes(`The database at ${host} cannot be reached`);
    await until(isNamed);
    const answer = await fetch(`${worker.adminUrl}/api/status`);
    expect(answer.status).toBe(503);
    await until(async () => {
      const { waits } = (await (await fetch(`${worker.adminUrl}/api/status`)).json()) as Told;
      return waits.some(({ dependency }) => dependency === 'database');
    });
  });
});

describe('what a worker waits for', () => {
  const source: Waiting = { advertiser: 'a', dependency: 'source', reason: 'refused' };

  test('is written when it changes, refreshed while it lasts, and never by a worker that waits for nothing', async () => {
    let now = 1_000;
    let waiting: Waiting[] = [];
    const written: unknown[] = [];
    const store = { waits: { record: async (_: string, waits: readonly unknown[]) => void written.push(waits) } };
    const waits = createWaits({ store, worker: 'w', loadWaitingTasks: () => waiting, now: () => now });
    const look = async (afterMs: number) => {
      now += afterMs;
      await waits.look();
      return written.splice(0);
    };
    expect(await look(0)).toEqual([]);
    expect(await look(3_600_000)).toEqual([]);
    waiting = [source, { ...source, advertiser: 'b' }];
    const both = { dependency: 'source', reason: 'refused', advertisers: ['a', 'b'] };
    expect(await look(1_000)).toEqual([[{ ...both, waitedMs: 0 }]]);
    expect(await look(1_000)).toEqual([]);
    expect(await look(30_000)).toEqual([[{ ...both, waitedMs: 31_000 }]]);
    // Another error of the same thing is the same wait.
    waiting = [{ ...source, reason: 'silent' }];
    expect(await look(1_000)).toEqual([
      [{ dependency: 'source', reason: 'silent', advertisers: ['a'], waitedMs: 32_000 }],
    ]);
    waiting = [];
    expect(await look(1_000)).toEqual([[]]);
    expect(await look(60_000)).toEqual([]);
  });

  test('is told again where the database could not take it', async () => {
    const written: unknown[] = [];
    const answers = [() => Promise.reject(new Error('away')), async () => {}];
    const store = {
      waits: {
        async record(_: string, waits: readonly unknown[]) {
          await answers.shift()?.();
          written.push(waits);
        },
      },
    };
    const waits = createWaits({ store, worker: 'w', loadWaitingTasks: () => [source], now: () => 0 });
    await expect(waits.look()).rejects.toThrow('away');
    await waits.look();
    expect(written).toHaveLength(1);
  });

  test('is no longer shown when its worker was killed and says nothing any more', async ({ emptied: database }) => {
    await using store = openStore({
      url: database.url,
      role: 'test',
      privacyKey: Buffer.from('a privacy key for tests'),
    });
    const wait = { dependency: 'storage', reason: 'full', advertisers: [], waitedMs: 5_000 } as const;
    await store.waits.record('one', [wait]);
    await store.waits.record('two', [{ ...wait, dependency: 'source', advertisers: ['a'] }]);
    expect((await store.waits.load()).map(({ worker }) => worker)).toEqual(['one', 'two']);
    await database.query(`UPDATE intake.waits SET seen_at = now() - interval '91 seconds' WHERE worker = 'one'`);
    expect((await store.waits.load()).map(({ worker }) => worker)).toEqual(['two']);
    await store.waits.record('two', []);
    expect(await store.waits.load()).toEqual([]);
  });
});

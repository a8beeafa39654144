import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import type { Lease } from '../../src/store/accounts/leases.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createTroubles } from '../../src/sync/retry.ts';
import { test } from '../support/database/test-database.ts';
import { callIntake } from '../support/processes/intake.ts';
import {
  hireWorker,
  isDone,
  isRead,
  openSettings,
  probe,
  spawnWorker,
  startBareWorker,
} from '../support/processes/worker.ts';
import { openTcpGate } from '../support/servers/tcp-gate.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { openStrictS3 } from '../support/stores/strict-s3.ts';
import { until } from '../support/suite/until.ts';

interface Told {
  readonly headline: string;
  readonly healthy: boolean;
  readonly waits: readonly { dependency: string; reason: string; since: string; advertiser: string }[];
  readonly problems: readonly { advertiser: string | null; what: string; command: string; urgent: boolean }[];
}

/** The status as another process shows it. */
async function askStatus(env: Record<string, string>): Promise<Told> {
  return JSON.parse((await callIntake(['status', '--json'], env)).stdout) as Told;
}

test('a source that is away is named by another process, with host, port and cause', async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 5 });
  await using gate = await openTcpGate(board.url);
  await using settings = await openSettings(database, { ...board, url: gate.url });
  await using worker = await hireWorker(settings.env);
  await until(() => isDone(database, board));
  expect((await askStatus(settings.env)).waits).toEqual([]);
  const before = Date.now();
  await gate.shut();
  // A poll that was cut off amid an answer is told first, the port where nobody listens after it.
  await until(async () => (await askStatus(settings.env)).waits.some(({ reason }) => reason.includes('ECONNREFUSED')));
  await until(async () => (await probe(worker, '/readyz')).failed.includes('progress'));
  // Long ago, so that a status without the wait would blame the worker.
  await database.query(`UPDATE intake.cursors SET as_of = now() - interval '3 hours'`);
  await database.query(`UPDATE intake.coverage SET as_of = now() - interval '3 hours'`);
  await database.query(
    `UPDATE intake.sweeps SET started_at = now() - interval '3 hours', ended_at = now() - interval '3 hours'`,
  );
  const status = await askStatus(settings.env);
  const { host } = new URL(gate.url);
  const reason = `The connection to the source at ${host} failed (ECONNREFUSED).`;
  expect(status.waits).toMatchObject([{ task: 'reading', dependency: 'source', reason, advertiser: 'account-1' }]);
  expect(Date.parse(status.waits[0]?.since ?? '')).toBeGreaterThan(before - 1_000);
  expect(status.problems.map(({ advertiser, what }) => [advertiser, what])).toContainEqual([
    'account-1',
    expect.stringMatching(/^Reading has been waiting for the source since \d{4}-.+ UTC: The connection/),
  ]);
  expect(JSON.stringify(status)).not.toContain('is a worker running');
  // The page of the worker says the same.
  expect(await (await fetch(worker.adminUrl)).text()).toContain(reason);
  board.add(1);
  await gate.open();
  await until(async () => (await isRead(database, board)) && (await askStatus(settings.env)).waits.length === 0);
  await until(async () => (await probe(worker, '/readyz')).status === 200);
});

test('a source that is away from a command is named by another', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 5 });
  await using gate = await openTcpGate(board.url, { shut: true });
  await using settings = await openSettings(database, { ...board, url: gate.url });
  const sync = callIntake(['sync'], settings.env);
  // Until it has created the schema, nothing can be asked.
  await until(async () => {
    const { stdout } = await callIntake(['status', '--json'], settings.env);
    return stdout.startsWith('{') && (JSON.parse(stdout) as Told).waits.length > 0;
  });
  expect((await askStatus(settings.env)).waits).toMatchObject([
    { dependency: 'source', reason: expect.stringContaining('ECONNREFUSED'), advertiser: 'account-1' },
  ]);
  await gate.open();
  expect((await sync).code).toBe(0);
  expect((await askStatus(settings.env)).waits).toEqual([]);
});

test('a storage that is away is named while files wait for it', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 40 });
  await using s3 = await openStrictS3();
  await using gate = await openTcpGate(s3.endpoint, { shut: true });
  await using settings = await openSettings(database, board, { ...s3.settings, S3_ENDPOINT: gate.url });
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
  await until(async () => (await isDone(database, board)) && (await askStatus(settings.env)).waits.length === 0);
});

test("a database that is away is named by the worker's page, and waited for", async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 3 });
  await using gate = await openTcpGate(database.url);
  await using settings = await openSettings({ url: gate.url }, board);
  await using worker = await hireWorker(settings.env);
  await until(() => isDone(database, board));
  await gate.shut();
  await until(async () => (await probe(worker, '/readyz')).failed.includes('database'));
  board.add(5);
  expect((await probe(worker, '/livez')).status).toBe(200);
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
  await gate.open();
  await until(() => isDone(database, board));
  await until(async () => (await probe(worker, '/readyz')).status === 200);
});

test('a source that is away stays named beside a command', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
  await intake.sweep();
  // A worker skips its poll if the account was read a moment ago.
  await database.query(`UPDATE intake.leases SET done_at = now() - interval '1 hour'`);
  const { store } = intake;
  await using inner = intake.openSource('json');
  const stop = new AbortController();
  let isAway = true;
  let claims = 0;
  const list: typeof inner.list = async (...asked) => {
    if (isAway) throw new Trouble('unreachable', 'The source is away.', { at: 'source' });
    return await inner.list(...asked);
  };
  const account = { name: 'default', advertiserId: null, source: { ...inner, list }, watch: () => {} };
  const claim: typeof store.leases.claim = async (request) => {
    if (request.owner === 'a worker') claims++;
    return await store.leases.claim(request);
  };
  const countingStore = { ...store, leases: { ...store.leases, claim } };
  const worker = startBareWorker({ store: countingStore, accounts: [account], maintenance: [] }, stop.signal);
  try {
    const command = { name: 'default', lane: 'live', owner: 'a command', leaseMs: 600_000 } as const;
    await until(() => worker.facts().troubled === 1);
    let lease = null as Lease | null;
    await until(async () => {
      lease = await store.leases.claim(command);
      return lease !== null;
    });
    const before = claims;
    // It has found the lane held twice: what follows the first of these has happened.
    await until(() => claims >= before + 2);
    expect(worker.facts().troubled).toBe(1);
    isAway = false;
    if (lease) await store.leases.release({ ...lease, done: false });
    await until(() => worker.facts().troubled === 0);
  } finally {
    stop.abort();
    await worker.ended;
  }
});

describe('why an account waits', () => {
  const away = new Trouble('unreachable', 'refused', { at: 'source' });

  test('is written when it is met and when it is over, and never by a worker that waits for nothing', async () => {
    const written: unknown[] = [];
    const advertisers = {
      noteTrouble: async (...noted: unknown[]) => void written.push(noted),
      clearTrouble: async (...cleared: unknown[]) => void written.push(cleared),
    } as unknown as Store['advertisers'];
    const troubles = createTroubles({ advertisers });
    const writtenBy = async (...steps: (() => void)[]) => {
      for (const step of steps) step();
      await troubles.untilWritten();
      return written.splice(0);
    };
    // A process that was killed may have left one.
    expect(await writtenBy(() => troubles.clear('reading', ['a', 'b']))).toEqual([[['a', 'b'], 'reading']]);
    expect(await writtenBy(() => troubles.clear('reading', ['a', 'b']))).toEqual([]);
    const noted = [['a'], { task: 'reading', dependency: 'source', reason: 'refused' }, 2_000];
    expect(
      await writtenBy(
        () => troubles.note('reading', ['a'], away, 2_000),
        () => troubles.clear('reading', ['a', 'b']),
        () => troubles.clear('reading', ['a']),
      ),
    ).toEqual([noted, [['a'], 'reading']]);
    // A halt has a line of its own, and a database that is away cannot be told.
    const halt = new Trouble('refused', 'no', { at: 'source' });
    const database = new Trouble('unreachable', 'no', { at: 'database' });
    const unexpected = new Trouble('local', 'no');
    expect(
      await writtenBy(...[halt, database, unexpected].map((each) => () => troubles.note('reading', ['a'], each, 0))),
    ).toEqual([]);
  });

  test('is over with a halt, and is ended by the next success where the database could not take the end', async () => {
    const ended: unknown[] = [];
    const answers = [async () => {}, () => Promise.reject(new Error('away')), async () => {}];
    const advertisers = {
      noteTrouble: async () => {},
      async clearTrouble(...cleared: unknown[]) {
        await answers.shift()?.();
        ended.push(cleared);
      },
    } as unknown as Store['advertisers'];
    const troubles = createTroubles({ advertisers });
    troubles.note('reading', ['a'], away, 0);
    troubles.note('reading', ['a'], new Trouble('refused', 'no', { at: 'source' }), 0);
    await troubles.untilWritten();
    expect(ended.splice(0)).toEqual([[['a'], 'reading']]);
    troubles.note('reading', ['a'], away, 0);
    troubles.clear('reading', ['a']);
    await troubles.untilWritten();
    troubles.clear('reading', ['a']);
    await troubles.untilWritten();
    expect(ended).toEqual([[['a'], 'reading']]);
  });

  test('keeps its start while it lasts, and is not shown when nobody tries again', async ({ emptied: database }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('a key') });
    const { advertisers } = store;
    for (const name of ['a', 'b']) await advertisers.ensure(name, null);
    const storage = { task: 'downloads', dependency: 'storage', reason: 'full' } as const;
    await advertisers.noteTrouble(['a', 'b'], storage, 5_000);
    await advertisers.noteTrouble(['a'], { task: 'reading', dependency: 'source', reason: 'refused' }, 0);
    const began = await advertisers.loadWaits();
    expect(began.map(({ advertiser, task, dependency }) => [advertiser, task, dependency])).toEqual([
      ['a', 'downloads', 'storage'],
      ['b', 'downloads', 'storage'],
      ['a', 'reading', 'source'],
    ]);
    // Another error of the same thing is the same wait.
    await advertisers.noteTrouble(['a'], { ...storage, reason: 'silent' }, 0);
    expect((await advertisers.loadWaits())[0]).toEqual({ ...began[0], reason: 'silent' });
    await advertisers.clearTrouble(['a'], 'downloads');
    expect(await advertisers.loadWaits()).toEqual(began.slice(1));
    await database.query(
      `UPDATE intake.advertisers SET troubles = jsonb_set(troubles, '{downloads,until}', to_jsonb(now())) WHERE name = 'b'`,
    );
    expect(await advertisers.loadWaits()).toEqual(began.slice(2));
    await advertisers.noteTrouble(['b'], storage, 0);
    expect((await advertisers.loadWaits())[1]?.since.getTime()).toBeGreaterThan(began[1]?.since.getTime() ?? 0);
  });
});

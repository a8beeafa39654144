// Delivery of events to endpoints: every one, in order, at least once, whatever the endpoint or the worker does.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, vi } from 'vitest';
import type { Answer, EventType } from '../../src/domain/webhook.ts';
import { toWebhookState } from '../../src/domain/webhook.ts';
import { loadWebhooks } from '../../src/store/accounts/webhooks.ts';
import { appendEvents, pruneEvents } from '../../src/store/events.ts';
import { openDatabase, type Queryable } from '../../src/store/postgres/database.ts';
import type { Store } from '../../src/store/store.ts';
import { type DeliverDeps, deliver, type Webhook } from '../../src/sync/accounts/webhooks.ts';
import { createWatchdog } from '../../src/sync/worker/watchdog.ts';
import { runWebhookLoop } from '../../src/sync/worker/webhook-loop.ts';
import { openWebhookClient } from '../../src/webhooks/send.ts';
import { test as base, type TestDatabase } from '../support/database/test-database.ts';
import { newWebhookSecret, openReceiver, type Receiver, webhookSecret } from '../support/servers/receiver.ts';
import { openSharedStore } from '../support/small-intake.ts';
import { until } from '../support/suite/until.ts';

const advertiserId = 7n;

/** Commits events; returns their ids. */
async function append(database: TestDatabase, types: readonly EventType[], account = advertiserId): Promise<number[]> {
  await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
  const events = types.map((type, n) => ({ applicationId: BigInt(n + 1), type }));
  await db.transaction((tx) => appendEvents(tx, account, events));
  const rows = await database.query<{ id: number }>(
    `SELECT event_id::int AS id FROM intake.events WHERE advertiser_id = $1 ORDER BY event_id DESC LIMIT $2`,
    [account, types.length],
  );
  return rows.map(({ id }) => id).reverse();
}

const received = (count: number) => Array.from({ length: count }, () => 'application.received' as const);

/** The endpoint `ats` of the account, at a receiver. */
function openEndpoint(receiver: Receiver, options: Partial<Webhook> & { secrets?: () => string[] } = {}) {
  const { secrets = () => [webhookSecret], ...rest } = options;
  const client = openWebhookClient({ url: receiver.url, secrets, allowPrivate: true });
  const webhook: Webhook = { account: 'acme', name: 'ats', types: null, detail: null, send: client.send, ...rest };
  return { webhook, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}

type Changed = Partial<DeliverDeps & Webhook & { readonly owner: string }>;

/**
 * `ats`: a database with two accounts, a receiver that takes everything, the endpoint `ats` of the first account there, and `run`, which
 * delivers to it.
 */
const test = base.extend('ats', async ({ emptied: database }, { onCleanup }) => {
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('acme', 7), ('other', 8)`);
  const store = openSharedStore(database);
  const stack = new AsyncDisposableStack();
  onCleanup(() => stack.disposeAsync());
  const receiver = stack.use(await openReceiver());
  const { webhook } = stack.use(openEndpoint(receiver));
  const request = { advertiserId, owner: 'one', leaseMs: 30_000, signal: AbortSignal.timeout(600_000) };
  const run = async (changed: Changed = {}) =>
    await deliver({ store, ...changed }, { ...webhook, ...changed }, { ...request, ...changed });
  return { database, store, receiver, webhook, run };
});

const loadRow = async (store: Store) => (await store.webhooks.loadWebhooks())[0];

/** Makes the wait of an endpoint that failed, if it waits, outlast the test. */
const prolong = (database: TestDatabase) =>
  database.query(`UPDATE intake.webhooks SET next_at = next_at + interval '1 hour'`);

/** Ends the wait of an endpoint that failed. */
const hasten = (database: TestDatabase) => database.query(`UPDATE intake.webhooks SET next_at = now()`);

describe('an endpoint', () => {
  test('gets every event that is kept, in order, once, over kept connections', async ({ ats }) => {
    const { database, store, receiver, run } = ats;
    const ids = await append(database, received(120));
    await append(database, received(3), 8n);
    const recordDelivery = vi.fn(store.webhooks.recordDelivery);
    expect(await run({ store: { ...store, webhooks: { ...store.webhooks, recordDelivery } } })).toEqual({
      delivered: 120,
      failure: null,
    });
    // Its position is not written for each: an attempt and its end for each batch, and one more batch for each second.
    expect(recordDelivery.mock.calls.length).toBeLessThan(60);
    expect(receiver.taken()).toEqual(ids);
    // A connection is closed where a slow database lets it idle for seconds.
    expect(receiver.connections()).toBeLessThan(20);
    expect(await run()).toEqual({ delivered: 0, failure: null });
    const more = await append(database, received(2));
    await run();
    expect(receiver.taken()).toEqual([...ids, ...more]);
    const row = await loadRow(store);
    expect(row).toMatchObject({ position: BigInt(more[1] ?? 0), behind: 0, lastAnswer: 'it answered 204' });
    expect(row && toWebhookState(row, new Date())).toBe('up to date');
  });

  test('that fails stops there: nothing behind overtakes, and a repetition has the same id', async ({ ats }) => {
    const { database, store, receiver, webhook, run } = ats;
    const ids = await append(database, received(5));
    let failures = 3;
    receiver.answer = ({ message }) => (message.data.event_id === ids[2] && failures-- > 0 ? 500 : 204);
    for (let attempt = 1; attempt <= 3; attempt++) {
      const summary = await run();
      expect(summary?.failure).toMatchObject({ eventId: BigInt(ids[2] ?? 0), attempt, reason: 'it answered 500' });
      expect(await loadRow(store)).toMatchObject({ position: BigInt(ids[1] ?? 0), failures: attempt, behind: 3 });
      // It waits: another try before its time does nothing.
      await prolong(database);
      expect(await run({ owner: 'two' })).toEqual({ delivered: 0, failure: null });
      expect(await store.webhooks.findDueWebhooks([webhook])).toEqual([]);
      await hasten(database);
      expect(await store.webhooks.findDueWebhooks([webhook])).toEqual([{ advertiserId, name: 'ats' }]);
    }
    await run();
    expect(receiver.taken()).toEqual(ids);
    const tries = receiver.received.filter(({ message }) => message.data.event_id === ids[2]);
    expect([tries.length, new Set(tries.map(({ id }) => id)).size]).toEqual([4, 1]);
    expect(await loadRow(store)).toMatchObject({ failures: 0, failingSince: null, nextAt: null });
  });

  test('gets the time of the database, whatever the clock of the worker says', async ({ ats }) => {
    const { database, receiver, run } = ats;
    await append(database, received(1));
    vi.setSystemTime(Date.now() + 9 * 3_600_000);
    await run().finally(() => vi.useRealTimers());
    const [row] = await database.query<{ now: number }>(`SELECT extract(epoch FROM now())::int AS now`);
    expect(Math.abs(Number(receiver.received[0]?.headers['webhook-timestamp']) - (row?.now ?? 0))).toBeLessThan(600);
  });

  test('whose secret is rotated gets every event, also where its receiver changed first', async ({ ats }) => {
    const { database, receiver, run } = ats;
    const ids = await append(database, received(6));
    let secrets = [webhookSecret];
    await using endpoint = openEndpoint(receiver, { secrets: () => secrets });
    const { send } = endpoint.webhook;
    receiver.answer = () => {
      const taken = receiver.taken().length;
      if (taken === 1) secrets = [newWebhookSecret, webhookSecret];
      if (taken === 2) receiver.secret = newWebhookSecret;
      if (taken === 3) secrets = [newWebhookSecret];
      return 204;
    };
    await run({ send });
    expect(receiver.received.map(({ status }) => status)).toEqual(ids.map(() => 204));
    receiver.secret = webhookSecret;
    const more = await append(database, received(2));
    expect((await run({ send }))?.failure).toMatchObject({ reason: 'it answered 401' });
    secrets = [webhookSecret];
    await hasten(database);
    await run({ send });
    expect(receiver.taken()).toEqual([...ids, ...more]);
  });

  test('waits no longer where the clock was set back', async ({ ats }) => {
    const { database, store, receiver, webhook, run } = ats;
    await append(database, received(1));
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': '7200' } });
    await run();
    expect(await store.webhooks.findDueWebhooks([webhook])).toEqual([]);
    await database.query(`UPDATE intake.webhooks SET next_at = next_at + interval '9 hours', answered_at = answered_at + interval '9 hours',
      failing_since = failing_since + interval '9 hours'`);
    expect(await store.webhooks.findDueWebhooks([webhook])).toHaveLength(1);
    receiver.answer = () => 204;
    expect(await run()).toEqual({ delivered: 1, failure: null });
  });

  test('that answers 410 is disabled until a person continues, where it stood', async ({ ats }) => {
    const { database, store, receiver, run } = ats;
    const ids = await append(database, received(3));
    receiver.answer = ({ message }) => (message.data.event_id === ids[1] ? 410 : 204);
    await run();
    await hasten(database);
    expect(await run()).toEqual({ delivered: 0, failure: null });
    expect(await loadRow(store)).toMatchObject({ stop: 'gone', position: BigInt(ids[0] ?? 0) });
    // A person who continues too early disables nothing for ever.
    expect(await store.webhooks.resumeWebhook({ advertiserId, name: 'ats' })).toBe(true);
    await run();
    expect(await loadRow(store)).toMatchObject({ stop: 'gone', position: BigInt(ids[0] ?? 0), failures: 1 });
    receiver.answer = () => 204;
    expect(await store.webhooks.resumeWebhook({ advertiserId, name: 'ats' })).toBe(true);
    await run();
    expect(receiver.taken()).toEqual(ids);
  });

  test('that has failed for 75 hours is halted, still tried, and continues by itself', async ({ ats }) => {
    const { database, store, receiver, run } = ats;
    const ids = await append(database, received(2));
    receiver.answer = () => 500;
    await run();
    await database.query(`UPDATE intake.webhooks SET next_at = now(), failing_since = now() - interval '75 hours'`);
    const summary = await run();
    expect(summary?.failure?.waitMs).toBeGreaterThanOrEqual(3 * 3_600_000);
    const row = await loadRow(store);
    expect(row && toWebhookState(row, new Date())).toBe('halted');
    await hasten(database);
    receiver.answer = () => 200;
    await run();
    expect(receiver.taken()).toEqual(ids);
  });

  test('of some types that fails keeps its place, and repeats only the failed one', async ({ ats }) => {
    const { database, store, receiver, run } = ats;
    const types = ['application.ready', 'application.changed', 'application.ready', 'application.changed'] as const;
    const ids = await append(database, types);
    receiver.answer = ({ message }) => (message.data.event_id === ids[2] ? 500 : 204);
    await run({ types: ['application.ready'] });
    expect(await loadRow(store)).toMatchObject({ position: BigInt(ids[1] ?? 0), failures: 1, behind: 2 });
    receiver.answer = () => 204;
    await hasten(database);
    await run({ types: ['application.ready'] });
    expect(receiver.taken()).toEqual([ids[0], ids[2]]);
    expect(await loadRow(store)).toMatchObject({ position: BigInt(ids[3] ?? 0), failures: 0, behind: 0 });
  });
});

const insert = (database: TestDatabase, firstName = 'Zelda') =>
  database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq, first_name, job_reference, person_key)
     VALUES (7, 1, '', 1, $1, 'JOB-1', 'p1')`,
    [firstName],
  );

describe('a message says how the application is now', () => {
  test('with the row of a view where the operator wants it', async ({ ats }) => {
    const { database, receiver, run } = ats;
    await insert(database);
    await append(database, received(1));
    for (const [name, detail] of [
      ['thin', null],
      ['anonymous', 'anonymous'],
      ['personal', 'personal'],
    ] as const) {
      await run({ name, detail });
    }
    const [thin, anonymous, personal] = receiver.received.map(({ message }) => message.data);
    expect(thin).toEqual({ event_id: expect.any(Number), advertiser_id: 7, application_id: 1, state: 'stored' });
    expect(anonymous?.application).toMatchObject({ job_reference: 'JOB-1', person_key: 'p1' });
    expect(JSON.stringify(anonymous)).not.toContain('Zelda');
    expect(personal?.application).toMatchObject({ first_name: 'Zelda' });
  });

  test('without a row that is so long that receivers refuse it: it holds nothing back', async ({ ats }) => {
    const { database, receiver, run } = ats;
    await insert(database, 'Z'.repeat(30_000));
    const ids = await append(database, received(2));
    await run({ detail: 'personal' });
    expect(receiver.taken()).toEqual(ids);
    expect(receiver.received[0]?.message.data).toMatchObject({ state: 'stored', application: null });
  });

  test('and nothing of a person who was erased while it waited or others were sent', async ({ ats }) => {
    const { database, receiver, run } = ats;
    await insert(database);
    // The events before the one of the person, in the same batch, take longer than a batch stays fresh.
    await append(database, ['application.received']);
    await append(database, ['application.ready']);
    receiver.answer = async () => {
      await database.query(`UPDATE intake.applications SET first_name = NULL, job_reference = NULL, erased_at = now()`);
      if (receiver.received.length === 0) await sleep(1_100);
      return 204;
    };
    await run({ detail: 'personal' });
    const [, second] = receiver.received;
    expect(second?.message.data).toMatchObject({ state: 'erased', application: null });
    expect(second?.text).not.toMatch(/Zelda|JOB-1/);
  });
});

test('a worker that stood still before sending an event reads it again', async ({ ats }) => {
  const { database, store, receiver, run } = ats;
  await insert(database);
  await append(database, received(1));
  const now = performance.now.bind(performance);
  const recordDelivery: Store['webhooks']['recordDelivery'] = async (...what) => {
    await store.webhooks.recordDelivery(...what);
    await database.query(`UPDATE intake.applications SET first_name = NULL, erased_at = now()`);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000);
  };
  const still = { ...store, webhooks: { ...store.webhooks, recordDelivery } };
  const summary = await run({ detail: 'personal', store: still }).finally(() => vi.restoreAllMocks());
  expect(summary).toEqual({ delivered: 0, failure: null });
  expect(receiver.received).toEqual([]);
  await hasten(database);
  await run({ detail: 'personal' });
  expect(receiver.received.map(({ message }) => message.data)).toMatchObject([{ state: 'erased', application: null }]);
});

describe('a worker that dies', () => {
  test('between an answer and its record repeats its batch, and skips none', async ({ ats }) => {
    const { database, receiver, run } = ats;
    const ids = await append(database, received(12));
    for (const [life, count] of [1, 3, 2, 4].entries()) {
      let left = count;
      const crashPoint = () => {
        if (--left === 0) throw new Error('died');
      };
      await expect(run({ owner: `life ${life}`, crashPoint })).rejects.toThrow('died');
      await hasten(database);
    }
    await run({ owner: 'last' });
    const taken = receiver.taken();
    // A consumer that keeps the last id applies each once, in order.
    const applied = taken.filter((id, index) => taken.slice(0, index).every((earlier) => earlier < id));
    expect(applied).toEqual(ids);
    expect(taken.length).toBeGreaterThan(ids.length);
    expect(taken.length).toBeLessThanOrEqual(ids.length + 1 + 3 + 2 + 4);
  });

  test('at each answer leaves an attempt that counts: the next one is not at once', async ({ ats }) => {
    const { database, store, receiver, webhook, run } = ats;
    await append(database, received(2));
    const crashPoint = () => {
      throw new Error('died');
    };
    for (let life = 1; life <= 3; life++) {
      await expect(run({ owner: `life ${life}`, crashPoint })).rejects.toThrow('died');
      expect(await loadRow(store)).toMatchObject({ position: 0n, failures: life, failingSince: null, nextAt: null });
      await prolong(database);
      expect(await store.webhooks.findDueWebhooks([webhook])).toEqual([]);
      expect(await run({ owner: 'another' })).toEqual({ delivered: 0, failure: null });
      expect(receiver.received).toHaveLength(life);
      await hasten(database);
    }
    expect(await run()).toEqual({ delivered: 2, failure: null });
    expect(await loadRow(store)).toMatchObject({ failures: 0, behind: 0 });
  });
});

describe('two workers', () => {
  test('do not deliver to an endpoint at the same time', async ({ ats }) => {
    const { database, receiver, run } = ats;
    const ids = await append(database, received(3));
    const open = Promise.withResolvers<void>();
    receiver.answer = async () => {
      await open.promise;
      return 204;
    };
    const first = run({ owner: 'one' });
    await until(() => receiver.connections() > 0);
    expect(await run({ owner: 'two' })).toBeNull();
    open.resolve();
    await first;
    expect(receiver.taken()).toEqual(ids);
  });

  test('of which the first was paused: what it still writes does not move the position back', async ({ ats }) => {
    const { database, store, receiver, run } = ats;
    const ids = await append(database, received(4));
    const paused = Promise.withResolvers<Answer>();
    const sent = Promise.withResolvers<void>();
    const send: Webhook['send'] = () => {
      sent.resolve();
      return paused.promise;
    };
    const stale = run({ send });
    await sent.promise;
    await database.query(`UPDATE intake.leases SET expires_at = '-infinity'`);
    await hasten(database);
    await run({ owner: 'two' });
    paused.resolve({ status: 200 });
    await expect(stale).rejects.toThrow('taken over by another process');
    expect(receiver.taken()).toEqual(ids);
    expect(await loadRow(store)).toMatchObject({ position: BigInt(ids[3] ?? 0) });
  });
});

describe('pruning', () => {
  const prune = async ({ url }: TestDatabase) => {
    await using db = openDatabase({ url, role: 'test', connections: 1 });
    return await pruneEvents(db);
  };

  test('of an event that an endpoint has not taken stops it, and a person continues', async ({ ats }) => {
    const { database, store, receiver, run } = ats;
    const [first] = await append(database, received(1));
    await run();
    const [lost, kept] = await append(database, received(2));
    await database.query(`UPDATE intake.events SET at = now() - interval '31 days' WHERE event_id < $1`, [kept]);
    expect(await prune(database)).toBe(2);
    expect(await loadRow(store)).toMatchObject({ stop: 'lost', position: BigInt(first ?? 0) });
    await run();
    expect(receiver.taken()).toEqual([first]);
    await store.webhooks.resumeWebhook({ advertiserId, name: 'ats' });
    await run();
    expect(receiver.taken()).toEqual([first, kept]);
    expect(receiver.taken()).not.toContain(lost);
  });

  test('of events that an endpoint never took because it failed from the first on stops it, too', async ({ ats }) => {
    const { database, store, receiver, webhook, run } = ats;
    receiver.answer = () => 500;
    await store.webhooks.declareWebhooks(['acme'], [webhook]);
    const [, kept] = await append(database, received(2));
    await run();
    await database.query(`UPDATE intake.events SET at = now() - interval '31 days' WHERE event_id < $1`, [kept]);
    expect(await prune(database)).toBe(1);
    expect(await loadRow(store)).toMatchObject({ stop: 'lost', position: 0n });
  });

  test('while an endpoint is not configured is told when it comes back', async ({ ats }) => {
    const { database, store, webhook, run } = ats;
    await append(database, received(1));
    await run();
    await store.webhooks.declareWebhooks(['acme'], []);
    const [, kept] = await append(database, received(2));
    await database.query(`UPDATE intake.events SET at = now() - interval '31 days' WHERE event_id < $1`, [kept]);
    await prune(database);
    await store.webhooks.declareWebhooks(['acme'], [webhook]);
    expect(await loadRow(store)).toMatchObject({ stop: 'lost' });
  });

  test('while a new endpoint catches up does not stop it: it begins with the last four weeks', async ({ ats }) => {
    const { database, store, receiver, webhook, run } = ats;
    const ids = await append(database, received(6));
    const age = (days: number, through: number | undefined) =>
      database.query(`UPDATE intake.events SET at = now() - $1 * interval '1 day' WHERE event_id <= $2`, [
        days,
        through,
      ]);
    await age(27, ids[3]);
    await age(29, ids[1]);
    await store.webhooks.declareWebhooks(['acme'], [webhook]);
    expect(await loadRow(store)).toMatchObject({ position: BigInt(ids[1] ?? 0), behind: 4 });
    await age(31, ids[1]);
    expect(await prune(database)).toBe(2);
    await run();
    expect(receiver.taken()).toEqual(ids.slice(2));
    expect(await loadRow(store)).toMatchObject({ stop: null, behind: 0 });
    // One that is new where nothing has happened for weeks waits for the next event.
    await age(29, ids[5]);
    await store.webhooks.declareWebhooks(['acme'], [{ account: 'acme', name: 'crm' }]);
    expect(await loadRow(store)).toMatchObject({ name: 'crm', position: BigInt(ids[5] ?? 0), behind: 0 });
  });
});

describe('the loop of a worker', () => {
  /** A loop over endpoints, which is woken by `wake`. */
  function startLoop(store: Store, webhooks: readonly Webhook[]) {
    const stop = new AbortController();
    let taken = 0;
    let wake = () => {};
    const ended = runWebhookLoop(
      {
        ...{ store, webhooks, log: { debug() {}, info() {}, warn() {} }, onPass() {} },
        onDelivered: () => taken++,
        watchdog: createWatchdog({ now: () => 0, stuckMs: 1 }),
        untilEvents: (_, signal) =>
          new Promise((resolve) => {
            wake = resolve;
            signal.addEventListener('abort', () => resolve());
          }),
      },
      { owner: 'worker', leaseMs: 30_000, signal: stop.signal },
    );
    return {
      taken: () => taken,
      wake: () => wake(),
      async [Symbol.asyncDispose]() {
        stop.abort();
        await ended;
      },
    };
  }

  test('delivers to a quick endpoint while a slow one hangs', async ({ ats }) => {
    const { database, store } = ats;
    const ids = await append(database, received(2));
    const open = Promise.withResolvers<void>();
    await using slow = await openReceiver(async () => {
      await open.promise;
      return 204;
    });
    await using quick = await openReceiver();
    await using one = openEndpoint(slow, { name: 'slow' });
    await using other = openEndpoint(quick, { name: 'quick' });
    await using loop = startLoop(store, [one.webhook, other.webhook]);
    await expect.poll(() => quick.taken()).toEqual(ids);
    const more = await append(database, received(2));
    loop.wake();
    await expect.poll(() => quick.taken()).toEqual([...ids, ...more]);
    expect([slow.connections(), slow.taken().length]).toEqual([1, 0]);
    open.resolve();
    await expect.poll(() => slow.taken()).toEqual([...ids, ...more]);
    await expect.poll(loop.taken).toBe(8);
  });
});

describe('the rows of endpoints', () => {
  test('tell how many events wait without reading them: only the first one', async ({ ats }) => {
    const { database, store, webhook } = ats;
    await store.webhooks.declareWebhooks(['acme'], [webhook]);
    await append(database, received(40));
    await database.query(`VACUUM ANALYZE intake.events`);
    await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
    const plan = await db.transaction(async (tx) => {
      await tx.query(`SET LOCAL enable_seqscan = off`);
      const explained = { query: (sql: string) => tx.query(`EXPLAIN (ANALYZE, BUFFERS OFF, TIMING OFF) ${sql}`) };
      return JSON.stringify(await loadWebhooks(explained as Queryable));
    });
    const scans = plan.matchAll(/(Index \w*) ?Scan using events_pkey on events .*?actual rows=(\d+)/g);
    expect([...scans].map(([, type, rows]) => `${type} ${rows}`)).toEqual(['Index Only 40', 'Index  1']);
    expect(await loadRow(store)).toMatchObject({ behind: 40, behindSince: expect.any(Date) });
  });

  test('follow the settings: a removed one comes back where it stood', async ({ ats }) => {
    const { database, store, webhook, run } = ats;
    await append(database, received(1));
    const names = async () =>
      (await store.webhooks.loadWebhooks()).map(({ name, position }) => [name, Number(position)]);
    await store.webhooks.declareWebhooks(['acme'], [webhook, { account: 'acme', name: 'crm' }]);
    expect(await names()).toEqual([
      ['ats', 0],
      ['crm', 0],
    ]);
    await run();
    await store.webhooks.declareWebhooks(['acme'], [{ account: 'acme', name: 'crm' }]);
    expect(await names()).toEqual([['crm', 0]]);
    // A worker with the settings of before ends only now: what it still delivers does not bring the endpoint back.
    const [later] = await append(database, received(1));
    await run();
    expect(await names()).toEqual([['crm', 0]]);
    // Settings of another account do not touch them.
    await store.webhooks.declareWebhooks(['other'], []);
    await store.webhooks.declareWebhooks(['acme'], [webhook, { account: 'acme', name: 'crm' }]);
    expect(await names()).toEqual([
      ['ats', later],
      ['crm', 0],
    ]);
  });
});

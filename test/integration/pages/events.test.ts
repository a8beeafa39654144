// The events outbox as integrators meet it: two consumers beside several writers, and kill -9.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { appendEvents, pruneEvents } from '../../../src/store/events.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { until } from '../../support/suite/until.ts';

function start(file: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
  return spawn(process.execPath, [file, ...args], { env: { PATH, NODE_COMPILE_CACHE, ...env }, stdio: 'ignore' });
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** What happened, and what a consumer took in, in the order in which it took it. */
async function compare(database: TestDatabase): Promise<{ events: unknown[]; inbox: unknown[] }> {
  const order = `advertiser_id, event_id, application_id`;
  return {
    events: await database.query(
      `SELECT ${order} FROM intake.events WHERE application_id > 0 ORDER BY advertiser_id, event_id`,
    ),
    inbox: await database.query(`SELECT ${order} FROM ats.inbox WHERE event_id IS NOT NULL ORDER BY advertiser_id, no`),
  };
}

/** A database with two advertisers, each with one event already, so that consumers start from a known place. */
async function openPrepared(): Promise<TestDatabase> {
  const database = await openTestDatabase();
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('seven', 7), ('eight', 8)`);
  await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
  for (const advertiserId of [7n, 8n]) {
    await db.transaction((tx) => appendEvents(tx, advertiserId, [{ applicationId: 0n, type: 'application.received' }]));
  }
  return database;
}

/** The consumer has found its place at both advertisers. */
const untilPlaced = (database: TestDatabase) =>
  expect
    .poll(() => database.query(`SELECT 1 FROM ats.intake_positions WHERE event_id > 0`).catch(() => []))
    .toHaveLength(2);

/** Four writers append events until they are told to stop; one transaction in ten is undone. */
async function write(database: TestDatabase, isDone: () => boolean): Promise<void> {
  await using db = openDatabase({ url: database.url, role: 'writer', connections: 4 });
  let next = 1n;
  const writers = Array.from({ length: 4 }, async () => {
    for (let nth = 0; !isDone(); nth++) {
      const events = [next++, next++].map((applicationId) => ({
        applicationId,
        type: 'application.received' as const,
      }));
      const written = db.transaction(async (tx) => {
        await appendEvents(tx, nth % 2 === 0 ? 7n : 8n, events);
        await sleep(Math.random() * 8);
        if (nth % 10 === 3) throw new Error('undone');
      });
      await written.catch((error: Error) => {
        if (error.message !== 'undone') throw error;
      });
    }
  });
  await Promise.all(writers);
}

test('two writers of one advertiser commit in the order of their numbers: a reader between them misses nothing', async () => {
  await using database = await openPrepared();
  await using one = openDatabase({ url: database.url, role: 'test', connections: 1 });
  await using other = openDatabase({ url: database.url, role: 'test', connections: 1 });
  const event = (applicationId: bigint) => [{ applicationId, type: 'application.received' } as const];
  const consumer = start('examples/consume-events.ts', [], { DATABASE_URL: database.url });
  try {
    const inbox = (id: number) =>
      database.query(`SELECT 1 FROM ats.inbox WHERE application_id = $1`, [id]).catch(() => []);
    await untilPlaced(database);
    let later: Promise<void> | undefined;
    await one.transaction(async (tx) => {
      await appendEvents(tx, 7n, event(1n));
      later = other.transaction((second) => appendEvents(second, 7n, event(2n)));
      // The second writer waits for the lock; if nothing made it wait, the consumer would be past the first one's number by now.
      const isBlocked = () =>
        database.query(
          `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 2 AND NOT granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        );
      await expect.poll(async () => [...(await isBlocked()), ...(await inbox(2))].length).toBeGreaterThan(0);
    });
    await later;
    await expect.poll(() => inbox(2)).toHaveLength(1);
    const { events, inbox: taken } = await compare(database);
    expect(taken).toEqual(events);
    expect(taken).toHaveLength(2);
  } finally {
    await kill(consumer);
  }
});

describe('a consumer beside four writers', { tags: ['slow'] }, () => {
  test('in TypeScript sees every event once and in order, however often it is killed', async () => {
    await using database = await openPrepared();
    const live = () => start('examples/consume-events.ts', [], { DATABASE_URL: database.url });
    // The first life only finds its place: from there on every event counts.
    const first = live();
    await untilPlaced(database);
    await kill(first);
    const count = async (rows: string) =>
      (await database.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${rows}`))[0]?.n ?? 0;
    let lives = 0;
    const writing = write(database, () => lives === 4);
    for (; lives < 4; lives++) {
      const consumer = live();
      // Killed at any moment of its work, once it has done some.
      const before = await count('ats.inbox');
      await until(async () => (await count('ats.inbox')) > before);
      await sleep(Math.random() * 300);
      await kill(consumer);
    }
    await writing;
    const last = live();
    try {
      const written = await count('intake.events WHERE application_id > 0');
      await expect.poll(() => count('ats.inbox WHERE event_id IS NOT NULL')).toBe(written);
      const { events, inbox } = await compare(database);
      expect(events.length).toBeGreaterThan(200);
      expect(inbox).toEqual(events);
    } finally {
      await kill(last);
    }
  });

  test('in SQL sees every event once and in order, called from two sessions at once', async () => {
    await using database = await openPrepared();
    await database.query(readFileSync('examples/consume-events.sql', 'utf8'));
    await database.query(`SELECT ats.read_intake_events()`);
    let reads = 0;
    const writing = write(database, () => reads >= 400);
    const readers = Array.from({ length: 2 }, async () => {
      for (; reads < 400; reads++) await database.query(`SELECT ats.read_intake_events(batch_size => 7)`);
    });
    await Promise.all([writing, ...readers]);
    for (;;) {
      const [row] = await database.query<{ taken: string }>(`SELECT ats.read_intake_events() AS taken`);
      if (row?.taken === '0') break;
    }
    const { events, inbox } = await compare(database);
    // How many there are depends on the machine.
    expect(events.length).toBeGreaterThan(20);
    expect(inbox).toEqual(events);
  });
});

test('the example process asks for DATABASE_URL and ends, where it has none', async () => {
  const consumer = start('examples/consume-events.ts', []);
  expect(await once(consumer, 'exit')).toEqual([2, null]);
});

describe('after a restore that gives the same numbers to other events', () => {
  /** The database as of a backup; then as many events as before, and more, which have the numbers that the consumer knows. */
  const restore = async (database: TestDatabase, event: bigint) => {
    await database.query(`DELETE FROM intake.events WHERE event_id > $1`, [event]);
    await database.query(`SELECT setval('intake.event_seq', $1)`, [event]);
    await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
    for (const applicationId of [11n, 12n, 13n]) {
      await db.transaction((tx) => appendEvents(tx, 7n, [{ applicationId, type: 'application.received' }]));
    }
  };
  const loadNewest = async (database: TestDatabase) =>
    BigInt((await database.query<{ n: string }>(`SELECT max(event_id) AS n FROM intake.events`))[0]?.n ?? 0);
  const append = async (database: TestDatabase) => {
    await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
    await db.transaction((tx) => appendEvents(tx, 7n, [{ applicationId: 1n, type: 'application.received' }]));
    await db.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq) VALUES (7, 11, '', 1)`,
    );
  };
  const loadTaken = (database: TestDatabase) =>
    database.query(`SELECT application_id::int AS id, type FROM ats.inbox WHERE advertiser_id = 7 ORDER BY no`);
  const takenAnew = [
    { id: 1, type: 'application.received' },
    { id: 11, type: 'snapshot' },
  ];

  test('the consumer in SQL starts over from the applications', { tags: ['slow'] }, async () => {
    await using database = await openPrepared();
    await database.query(readFileSync('examples/consume-events.sql', 'utf8'));
    await database.query(`SELECT ats.read_intake_events()`);
    const backup = await loadNewest(database);
    await append(database);
    await database.query(`SELECT ats.read_intake_events()`);
    await restore(database, backup);
    await database.query(`SELECT ats.read_intake_events()`);
    expect(await loadTaken(database)).toEqual(takenAnew);
  });

  test('and so does the one in TypeScript', async () => {
    await using database = await openPrepared();
    const backup = await loadNewest(database);
    const untilTaken = async (count: number) => {
      const consumer = start('examples/consume-events.ts', [], { DATABASE_URL: database.url });
      try {
        await untilPlaced(database);
        await expect.poll(() => loadTaken(database)).toHaveLength(count);
      } finally {
        await kill(consumer);
      }
    };
    await untilTaken(0);
    await append(database);
    await untilTaken(1);
    await restore(database, backup);
    await untilTaken(2);
    expect(await loadTaken(database)).toEqual(takenAnew);
  });
});

test('the rights that docs/integrate.md gives are all that a consumer needs', { tags: ['slow'] }, async () => {
  await using database = await openPrepared();
  const [, sql = ''] = /## Rights[\s\S]+?```sql\n([\s\S]+?)```/.exec(readFileSync('docs/integrate.md', 'utf8')) ?? [];
  // Roles belong to the whole server, on which other tests run as well.
  const role = `ats_${randomUUID().slice(0, 8)}`;
  await database.query(sql.replaceAll(/\b(ROLE|AUTHORIZATION|TO) ats\b/g, `$1 ${role}`).replace("'...'", "'secret'"));
  const url = new URL(database.url);
  Object.assign(url, { username: role, password: 'secret' });
  const consumer = start('examples/consume-events.ts', [], { DATABASE_URL: url.href });
  try {
    await untilPlaced(database);
  } finally {
    await kill(consumer);
    await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  }
});

describe('pruning', () => {
  test('takes the oldest first, and leaves the newest: who is level has missed nothing', async ({ database }) => {
    await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('a', 1), ('b', 2)`);
    await database.query(
      `INSERT INTO intake.events SELECT a, 10 * a + n, n, 'application.received', now() - days * interval '1 day'
       FROM (VALUES (1, 1, 50), (1, 2, 40), (1, 3, 10), (2, 1, 90), (2, 2, 80)) AS e (a, n, days)`,
    );
    await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
    expect(await pruneEvents(db, 1)).toBe(1);
    expect(
      await database.query(`SELECT min(event_id)::int AS first FROM intake.events WHERE advertiser_id = 1`),
    ).toEqual([{ first: 12 }]);
    expect(await pruneEvents(db)).toBe(2);
    expect(await pruneEvents(db)).toBe(0);
    expect(await database.query(`SELECT event_id::int AS id FROM intake.events ORDER BY 1`)).toEqual([
      { id: 13 },
      { id: 22 },
    ]);
  });

  test('is noticed by a consumer that was away too long: it starts over from the applications', async () => {
    await using database = await openPrepared();
    await database.query(readFileSync('examples/consume-events.sql', 'utf8'));
    await database.query(`SELECT ats.read_intake_events()`);
    await database.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq) VALUES (7, 42, '', 1)`,
    );
    await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
    await db.transaction((tx) => appendEvents(tx, 7n, [{ applicationId: 42n, type: 'application.received' }]));
    await db.query(`UPDATE intake.events SET at = at - interval '31 days'`);
    await db.transaction((tx) => appendEvents(tx, 7n, [{ applicationId: 42n, type: 'application.ready' }]));
    expect(await pruneEvents(db)).toBe(2);
    await database.query(`SELECT ats.read_intake_events()`);
    expect(await database.query(`SELECT application_id, type FROM ats.inbox ORDER BY no`)).toEqual([
      { application_id: '42', type: 'snapshot' },
    ]);
  });
});

import { createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect } from 'vitest';
import { readBatches } from '../../../src/store/postgres/batches.ts';
import { toCopy } from '../../../src/store/postgres/copy.ts';
import { openDatabase, retryOnConflict, type Transaction } from '../../../src/store/postgres/database.ts';
import { test as base } from '../../support/database/test-database.ts';
import { listenLocally } from '../../support/servers/local-server.ts';
import { openTcpGate } from '../../support/servers/tcp-gate.ts';

const test = base.extend('db', { scope: 'test' }, async ({ database }, { onCleanup }) => {
  // One connection, so that whatever is asked next comes after what was asked before.
  const db = openDatabase({ url: database.url, role: 'test', connections: 1 });
  onCleanup(() => db[Symbol.asyncDispose]());
  await database.query('DROP TABLE IF EXISTS kept; CREATE TABLE kept (id int PRIMARY KEY)');
  return db;
});

const insert = (id: number) => [`INSERT INTO kept VALUES ($1)`, [id]] as const;
const rows = (...ids: number[]) => toCopy('kept', ids, { id: (id) => id });
const counted = 'SELECT count(*)::int AS count FROM kept';

describe('statements asked together', () => {
  test('are done in the order asked, rows by COPY among them, each with its own answer', async ({ db }) => {
    const answers = await db.transaction((tx) =>
      Promise.all([
        tx.query(counted),
        tx.query(...insert(1)),
        tx.query(counted),
        tx.copy([rows(2, 3), rows(4)]),
        tx.query(counted),
      ]),
    );
    expect(answers).toEqual([[{ count: 0 }], [], [{ count: 1 }], undefined, [{ count: 4 }]]);
    expect(await db.query(counted)).toEqual([{ count: 4 }]);
  });

  test.for([
    ['a statement', (tx) => tx.query('SELECT 1 / 0'), /division by zero/],
    ['a row of COPY', (tx) => tx.copy([rows(7, 7, 8)]), /duplicate key/],
    ['a table of COPY', (tx) => tx.copy([toCopy('nowhere', [1], { id: (id) => id })]), /nowhere/],
  ] satisfies [string, (tx: Transaction) => Promise<unknown>, RegExp][])(
    'leave nothing behind when %s is refused, and the first to fail says why',
    async ([, refused, reason], { db }) => {
      const work = db.transaction((tx) =>
        Promise.all([tx.query(...insert(1)), refused(tx), tx.query(...insert(2)), tx.copy([rows(3)])]),
      );
      await expect(work).rejects.toThrow(reason);
      expect(await db.query(counted)).toEqual([{ count: 0 }]);
    },
  );

  test.for([
    ['a statement', (tx) => tx.query(...insert(1))],
    ['a row of COPY', (tx) => tx.copy([rows(1)])],
  ] satisfies [string, (tx: Transaction) => Promise<unknown>][])(
    'say why they failed also where one behind %s is heard of first, so that a conflict is tried again',
    async ([, conflicting], { db }) => {
      await db.query(...insert(1));
      let tries = 0;
      const work = retryOnConflict(() =>
        db.transaction(async (tx) => {
          tries++;
          const first = conflicting(tx);
          const behind = tx.query(counted);
          const heardLast = first.catch(async (error: unknown) => {
            await behind.catch(() => {});
            throw error;
          });
          await Promise.all([heardLast, behind]);
        }),
      );
      await expect(work).rejects.toThrow(/duplicate key/);
      expect(tries).toBe(5);
    },
  );

  test('fail together: who goes on after another has failed writes nothing outside', async ({ db }) => {
    let late: Promise<unknown> = Promise.resolve();
    const over = Promise.withResolvers<void>();
    const work = db.transaction(async (tx) => {
      late = tx
        .query('SELECT 1')
        .then(() => over.promise)
        .then(() => tx.query(...insert(1)));
      await Promise.all([late, tx.query('SELECT 1 / 0')]);
    });
    await expect(work).rejects.toThrow(/division by zero/);
    over.resolve();
    await expect(late).rejects.toThrow('The transaction is over.');
    expect(await db.query(counted)).toEqual([{ count: 0 }]);
  });

  test.for([
    ['a lock that could not be taken', 'SELECT pg_advisory_xact_lock(1099511627776, 1)', /pg_advisory_xact_lock/],
    ['a BEGIN that was refused as a whole', 'SELECT )', /syntax error/],
  ] as const)('never come to be behind %s, which says why', async ([, lock, reason], { db }) => {
    const work = db.transaction((tx) => Promise.all([tx.query(...insert(1)), tx.copy([rows(2)])]), lock);
    await expect(work).rejects.toThrow(reason);
    expect(await db.query(counted)).toEqual([{ count: 0 }]);
  });
});

describe('a long answer', () => {
  const kb = 1024;
  const size = { rows: 10, bytes: 256 * kb };
  // More than the sockets hold, so that the statement runs until all rows are taken.
  const long = `SELECT n, repeat('x', ${100 * kb}) AS text FROM generate_series(1, $1::int) AS n`;
  const running = `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND query = $1 AND state = 'active'`;

  test('comes in batches of so many rows or bytes, between other statements', async ({ db }) => {
    const short = 'SELECT n FROM generate_series(1, $1::int) AS n';
    const lengths = await db.transaction(async (tx) => {
      const seen: number[] = [];
      await tx.query(...insert(1));
      for await (const batch of tx.read(short, [25], size)) seen.push(batch.length);
      for await (const batch of tx.read(long, [7], size)) seen.push(batch.length);
      for await (const batch of tx.read(short, [0], size)) seen.push(batch.length);
      await tx.query(...insert(2));
      return seen;
    });
    expect(lengths.slice(0, 3)).toEqual([10, 10, 5]);
    expect(lengths.slice(3).reduce((sum, length) => sum + length)).toBe(7);
    expect(Math.max(...lengths.slice(3))).toBeLessThan(5);
    expect(await db.query(counted)).toEqual([{ count: 2 }]);
  });

  test('fails with the error of its statement, also behind rows, and the connection serves again', async ({ db }) => {
    const seen: unknown[] = [];
    const work = db.transaction(async (tx) => {
      const failing = 'SELECT n, 1 / ($1::int - n) AS part FROM generate_series(1, 1000) AS n';
      for await (const batch of tx.read(failing, [500], size)) seen.push(...batch);
    });
    await expect(work).rejects.toThrow(/division by zero/);
    expect(seen.length).toBeLessThan(500);
    expect(await db.query(counted)).toEqual([{ count: 0 }]);
  });

  test.for([
    ['throws', new Error('no space'), 'no space'],
    ['turns to something else', null, 'connection lost'],
  ] as const)(
    'ends with its reader when that %s, and the pool has another connection',
    // A ROLLBACK that waited behind the answer would fail after 75 s.
    { timeout: 60_000 },
    async ([, error, reason], { db, database }) => {
      const work = db.transaction(async (tx) => {
        for await (const _ of tx.read(long, [1_000], size)) {
          if (error) throw error;
          break;
        }
      });
      await expect(work).rejects.toThrow(reason);
      expect(await db.query(counted)).toEqual([{ count: 0 }]);
      await expect.poll(() => database.query(running, [long]), { timeout: 20_000 }).toEqual([{ count: 0 }]);
    },
  );

  test('fails when the connection is lost while its reader is behind', async ({ database }) => {
    await using gate = await openTcpGate(database.url);
    await using db = openDatabase({ url: gate.url, role: 'test', connections: 1 });
    const work = db.transaction(async (tx) => {
      for await (const _ of tx.read(long, [1_000], size)) await gate.shut();
    });
    await expect(work).rejects.toThrow(/cannot be reached/);
    await gate.open();
    expect(await db.query(counted)).toEqual([{ count: 0 }]);
  });

  test('takes as long as its reader, whatever the limit of statements', async ({ database }) => {
    const statementTimeoutMs = 300;
    await using db = openDatabase({ url: database.url, role: 'test', statementTimeoutMs });
    let count = 0;
    await db.transaction(async (tx) => {
      for await (const batch of tx.read(long, [1_000], size)) {
        if (count === 0) await setTimeout(4 * statementTimeoutMs);
        count += batch.length;
      }
    });
    expect(count).toBe(1_000);
  });

  test('fails when its reader waits too long', async ({ database }) => {
    const client = new pg.Client(database.url);
    client.on('error', () => {});
    await client.connect();
    await client.query('BEGIN');
    const sql = 'SELECT pg_sleep(2)';
    const answer = readBatches(client, { sql, values: [], size, limitMs: 50 });
    await expect(answer.next()).rejects.toThrow('Query read timeout');
    await expect(client.query('SELECT 1')).rejects.toThrow(/Connection terminated|not queryable/);
    // The server hears of it when it answers.
    await expect.poll(() => database.query(running, [sql]), { timeout: 20_000 }).toEqual([{ count: 0 }]);
  });
});

describe('a server that compiles plans (jit), as a stock Postgres does', () => {
  test('compiles none of a transaction, and the session stays as it was', async ({ db }) => {
    const [name] = await db.query<{ name: string }>('SELECT current_database() AS name');
    await db.query(`ALTER DATABASE ${name?.name} SET jit = on`);
    // A setting of the database holds for new sessions.
    await db.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {});
    expect(await db.query('SHOW jit')).toEqual([{ jit: 'on' }]);
    expect(await db.transaction((tx) => tx.query('SHOW jit'))).toEqual([{ jit: 'off' }]);
    expect(await db.query('SHOW jit')).toEqual([{ jit: 'on' }]);
  });
});

describe('a server that shuts down', () => {
  // What a server sends to a connection that it accepts and ends at once, in one piece.
  const message = (type: string, ...parts: readonly (string | number)[]) => {
    const body = Buffer.concat(
      parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from([0, 0, 0, part]))),
    );
    const length = Buffer.alloc(4);
    length.writeUInt32BE(body.length + 4);
    return Buffer.concat([Buffer.from(type), length, body]);
  };
  const accepted = [message('R', 0), message('Z', 'I')];
  const shuttingDown = message('E', 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0');

  base('right after it accepted a connection fails the statement, not the process', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(Buffer.concat([...accepted, shuttingDown])));
    });
    await using local = await listenLocally(server);
    const { port } = local;
    await using db = openDatabase({ url: `postgres://anyone@127.0.0.1:${port}/any?sslmode=disable`, role: 'test' });
    await expect(db.query('SELECT 1')).rejects.toThrow(`The database at 127.0.0.1:${port} cannot`);
  });
});

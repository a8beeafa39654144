import { createServer } from 'node:net';
import { describe, expect } from 'vitest';
import { toCopy } from '../../../src/store/postgres/copy.ts';
import { openDatabase, retryOnConflict, type Transaction } from '../../../src/store/postgres/database.ts';
import { test as base } from '../../support/database/test-database.ts';
import { listenLocally } from '../../support/servers/local-server.ts';

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

  test('fail together: who goes on after another has failed writes nothing outside of the transaction', async ({
    db,
  }) => {
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
    ['a lock that could not be taken', 2 ** 40, /pg_advisory_xact_lock/],
    ['a BEGIN that was refused as a whole', ')', /syntax error/],
  ] as const)('never come to be behind %s, which says why', async ([, kind, reason], { db }) => {
    const work = db.transaction((tx) => Promise.all([tx.query(...insert(1)), tx.copy([rows(2)])]), {
      ...{ class: kind as number, key: 1n, shared: false },
    });
    await expect(work).rejects.toThrow(reason);
    expect(await db.query(counted)).toEqual([{ count: 0 }]);
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

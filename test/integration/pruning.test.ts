// What the worker prunes of its own records, and what it must keep however old it is.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pruneQuarantine } from '../../src/store/applications/quarantine.ts';
import { type Database, openDatabase } from '../../src/store/postgres/database.ts';
import { pruneSweeps } from '../../src/store/sweeps/sweeps.ts';
import { openTestDatabase, type TestDatabase } from '../support/database/test-database.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await openTestDatabase();
  db = openDatabase({ url: database.url, role: 'test', connections: 1 });
});
afterAll(async () => {
  await db[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

describe('pruning', () => {
  test('takes ended sweeps after 90 days, but not gaps, not what coverage rests on, and not the newest', async () => {
    await database.query(
      `INSERT INTO intake.sweeps (advertiser_id, sweep_id, lane, purpose, axis, low, state, started_at, last_progress_at)
       SELECT advertiser_id, id, 'live', 'live', 'id', 1, state, now() - days * interval '1 day', now()
       FROM (VALUES (1, 1, 'closed', 91), (1, 2, 'dropped', 95), (1, 3, 'open', 99), (1, 4, 'running', 99), (1, 5, 'closed', 99),
         (1, 6, 'closed', 89), (2, 7, 'closed', 400)) AS s (advertiser_id, id, state, days)`,
    );
    await database.query(`INSERT INTO intake.coverage (advertiser_id, axis, low, certificate, risk, reason, as_of, complete_through, sweep_id)
       VALUES (1, 'id', 1, 'proven', 'none', 'all', now(), now(), 5)`);
    expect(await pruneSweeps(db, 1)).toBe(1);
    expect(await pruneSweeps(db)).toBe(1);
    expect(await pruneSweeps(db)).toBe(0);
    expect(await database.query(`SELECT sweep_id::int AS id FROM intake.sweeps ORDER BY 1`)).toEqual(
      [3, 4, 5, 6, 7].map((id) => ({ id })),
    );
  });

  test('takes elements of quarantine 30 days after they could be read, and never one that waits', async () => {
    await database.query(
      `INSERT INTO intake.quarantine (advertiser_id, fingerprint, reason, first_seen_at, sweep_id, resolved_at)
       SELECT 1, sha256(id::text::bytea), id, now() - interval '400 days', 1, now() - days * interval '1 day'
       FROM (VALUES ('waits', NULL), ('resolved lately', 29), ('resolved long ago', 31)) AS q (id, days)`,
    );
    expect(await pruneQuarantine(db)).toBe(1);
    expect(await database.query(`SELECT reason FROM intake.quarantine ORDER BY 1`)).toEqual([
      { reason: 'resolved lately' },
      { reason: 'waits' },
    ]);
  });
});

// Applications from the sandbox to Postgres, by JSON and by XML, compared with the sandbox's truth field by field.
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openTestDatabase, test } from '../support/database/test-database.ts';
import { findDifferences } from '../support/equality.ts';
import { syncBoard } from '../support/processes/syncing.ts';

const writes = `SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE schemaname = 'intake'
  AND relname NOT IN ('leases', 'cursors', 'sweeps', 'ranges', 'coverage', 'evidence', 'advertisers', 'processes') ORDER BY relname`;

describe('a database filled from the sandbox', () => {
  test('equals its truth by JSON; a second sync, and one by XML, write no row', async ({ database }) => {
    await using board = await openSandbox({ applications: 200, choices: { pageCap: 50 } });
    const first = await syncBoard(database, board);
    expect(first.at(-1)).toMatchObject({ certificate: 'proven', added: 200 });
    expect(await findDifferences(database, board)).toEqual([]);

    const flush = `SELECT pg_stat_force_next_flush()`;
    await database.query(flush);
    const before = await database.query(writes);
    const events = await database.query(`SELECT count(*) FROM intake.events`);
    await syncBoard(database, board);
    await syncBoard(database, board, { recheck: true, env: { SOURCE_FORMAT: 'xml' } });
    await database.query(flush);
    expect(await database.query(writes)).toEqual(before);
    expect(await database.query(`SELECT count(*) FROM intake.events`)).toEqual(events);
  });

  test('equals its truth by XML', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({
      applications: 120,
      seed: 2,
      choices: { pageCap: 50, order: 'descending' },
    });
    const first = await syncBoard(database, board, { env: { SOURCE_FORMAT: 'xml' } });
    expect(first.at(-1)).toMatchObject({ certificate: 'proven', added: 120 });
    expect(await findDifferences(database, board)).toEqual([]);
  });
});

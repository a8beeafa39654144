// Two that touch the same application at once: what one of them has settled the other does not open again. Each waits for its turn among
// the events with everything else done, which is the longest that they can overlap.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSmallIntake } from '../support/draining.ts';
import { openTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const everything = { applicationId: null, kind: null, state: null } as const;

/** Runs both at once: the first has done everything but tell its events when the second begins. */
async function atOnce(advertiserId: bigint, first: () => Promise<unknown>, second: () => Promise<unknown>) {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  let running: Promise<unknown>[] = [];
  try {
    await client.query(`SELECT pg_advisory_lock(2, hashint8($1::bigint))`, [String(advertiserId)]);
    running = [first()];
    await untilWaiting(1);
    running.push(second());
    await untilWaiting(2);
  } finally {
    await client.end();
  }
  await Promise.all(running);
}

async function untilWaiting(sessions: number) {
  const load = () =>
    database.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query NOT LIKE '%pg_stat%'`,
    );
  await expect.poll(async () => (await load()).length, { timeout: 20_000 }).toBe(sessions);
}

describe('a retry of everything that waits', () => {
  test('does not open a file that is flagged at the same time', async () => {
    await using intake = await openSmallIntake({ database, choices: { virusBody: 'bytes' } });
    const { advertiserId } = intake.board;
    const [id = 0n] = intake.board.add([{ attachments: [{ kind: 'resume', content: 'a virus' }] }]);
    await intake.sweep();
    intake.board.change(id, { attachments: [{ kind: 'resume', content: 'a virus', hasVirus: true }] });
    await atOnce(
      advertiserId,
      () => intake.sweep(true),
      () => intake.store.retryDownloads(advertiserId, everything),
    );
    await intake.hasten();
    await intake.drain();
    expect((await intake.file()).state).toBe('infected');
    expect(await intake.keys()).toEqual([]);
  });

  test('does not open a file that is stored at the same time', async () => {
    await using intake = await openSmallIntake({ database });
    const { advertiserId } = intake.board;
    intake.board.add([{ attachments: [{ kind: 'resume', content: 'mine' }] }]);
    await intake.sweep();
    await atOnce(
      advertiserId,
      () => intake.drain(),
      () => intake.store.retryDownloads(advertiserId, everything),
    );
    expect((await intake.file()).state).toBe('stored');
  });

  test('opens nothing that a run stores beside it', { timeout: 120_000 }, async () => {
    await using intake = await openSmallIntake({ database });
    const { advertiserId } = intake.board;
    const attached = (content: string) => ({ attachments: [{ kind: 'resume' as const, content }] });
    intake.board.add(Array.from({ length: 300 }, (_, nth) => attached(`file ${nth}`)));
    await intake.sweep();
    let isDraining = true;
    const drained = intake.drain().finally(() => {
      isDraining = false;
    });
    while (isDraining) await intake.store.retryDownloads(advertiserId, everything);
    await drained;
    expect(await database.query(`SELECT 1 FROM intake.events WHERE type = 'application.changed'`)).toEqual([]);
  });
});

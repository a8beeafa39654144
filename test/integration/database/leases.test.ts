// Who may write: leases, their epochs and the fence.
import { describe, expect } from 'vitest';
import { fence, loadHolder, releaseLeases, renewLease } from '../../../src/store/accounts/leases.ts';
import { type Database, openDatabase, retryOnConflict } from '../../../src/store/postgres/database.ts';
import { test as base, openTestDatabase } from '../../support/database/test-database.ts';
import { claimLease, takeLease } from '../../support/leases.ts';

const test = base.extend('db', { scope: 'test' }, async ({ emptied: { url } }, { onCleanup }) => {
  const db = openDatabase({ url, role: 'test' });
  onCleanup(() => db[Symbol.asyncDispose]());
  return db;
});
/** Time passes for the database: every lease that was given has lapsed. */
const lapse = (db: Database) =>
  db.query(`UPDATE intake.leases SET expires_at = now() - interval '1 second' WHERE expires_at > now()`);

const claim = (owner: string, leaseMs = 60_000) => ({ name: 'acme', lane: 'live', owner, leaseMs }) as const;

describe('a lease', () => {
  test('is held by one at a time, and its epoch rises with every change of hands', async ({ db }) => {
    const first = await claimLease(db, claim('one'));
    expect(first?.epoch).toBe(1n);
    expect(await claimLease(db, claim('two'))).toBeNull();
    if (first) await releaseLeases(db, [{ ...first, done: false }]);
    expect(await claimLease(db, claim('two'))).toMatchObject({ epoch: 2n });
    expect(first && (await renewLease(db, first, 60_000))).toBe(false);
  });

  test('lapses by itself, and the two lanes do not know each other', async ({ db }) => {
    await claimLease(db, claim('one'));
    expect(await loadHolder(db, 'acme', 'live')).toMatchObject({ owner: 'one' });
    const other = await claimLease(db, { ...claim('two'), lane: 'backfill' });
    await lapse(db);
    // Prolonging one prolongs it alone.
    expect(other && (await renewLease(db, other, 60_000))).toBe(true);
    expect(await loadHolder(db, 'acme', 'backfill')).toMatchObject({ owner: 'two' });
    expect(await loadHolder(db, 'acme', 'live')).toBeNull();
    expect(await claimLease(db, claim('two'))).not.toBeNull();
  });

  test('of a dead holder that reaches too far ahead has lapsed: the clock was set back', async ({ db }) => {
    await claimLease(db, claim('dead'));
    await db.query(`UPDATE intake.leases SET expires_at = expires_at + interval '1 day'`);
    expect(await loadHolder(db, 'acme', 'live')).toBeNull();
    expect(await claimLease(db, claim('two'))).toMatchObject({ owner: 'two' });
    // And is as long as any other from then on.
    expect((await loadHolder(db, 'acme', 'live'))?.remainingMs).toBeLessThanOrEqual(60_000);
  });

  test('whose work came to its end in the future is free: the clock was set back', async ({ db }) => {
    const lease = await claimLease(db, claim('one'));
    if (lease) await releaseLeases(db, [{ ...lease, done: true }]);
    await db.query(`UPDATE intake.leases SET done_at = done_at + interval '1 day'`);
    const again = await claimLease(db, { ...claim('two'), skipIfDoneWithinMs: 60_000 });
    expect(again).toMatchObject({ owner: 'two' });
    if (again) await releaseLeases(db, [{ ...again, done: false }]);
    expect(await claimLease(db, claim('three'))).not.toBeNull();
  });
});

describe('the fence', () => {
  test('ends the transaction of a holder whose lane has changed hands', async ({ db }) => {
    const lease = await claimLease(db, claim('one'));
    await lapse(db);
    await claimLease(db, claim('two'));
    await expect(db.transaction(async (tx) => lease && (await fence(tx, lease)))).rejects.toMatchObject({
      name: 'LeaseLost',
    });
  });

  test('ends the transaction of a holder whose epoch a failover has given to another', async ({ db }) => {
    const lost = await takeLease(db, claim('one'));
    // The standby has not seen that claim: it gives the same epoch to the next one.
    await db.query(`UPDATE intake.leases SET owner = 'before', epoch = epoch - 1, expires_at = now()`);
    const held = await claimLease(db, claim('two'));
    expect(held?.epoch).toBe(lost.epoch);
    await expect(db.transaction((tx) => fence(tx, lost))).rejects.toMatchObject({ name: 'LeaseLost' });
    expect(await renewLease(db, lost, 60_000)).toBe(false);
    await releaseLeases(db, [{ ...lost, done: true }]);
    expect(await loadHolder(db, 'acme', 'live')).toMatchObject({ owner: 'two' });
    await db.transaction(async (tx) => held && (await fence(tx, held)));
  });

  test('does not block a successor for ever: the server ends one that stands still', async ({ db, database }) => {
    await using paused = openDatabase({ url: database.url, role: 'test' });
    const lease = await claimLease(db, claim('one'));
    await lapse(db);
    const fenced = Promise.withResolvers<void>();
    const succeeded = Promise.withResolvers<void>();
    const stuck = paused.transaction(async (tx) => {
      if (lease) await fence(tx, lease);
      // Real time, so that the server ends it.
      await tx.query(`SET LOCAL idle_in_transaction_session_timeout = '1500ms'`);
      fenced.resolve();
      await succeeded.promise;
      await tx.query('SELECT 1');
    });
    const outcome = stuck.then(
      () => 'committed',
      () => 'ended',
    );
    await fenced.promise;
    await expect.poll(() => claimLease(db, claim('two'))).not.toBeNull();
    succeeded.resolve();
    expect(await outcome).toBe('ended');
  });
});

test('a transaction sees what others have committed meanwhile, whatever the default of the server', async () => {
  await using database = await openTestDatabase();
  const name = new URL(database.url).pathname.slice(1);
  await database.query(`ALTER DATABASE "${name}" SET default_transaction_isolation = 'repeatable read'`);
  await using db = openDatabase({ url: database.url, role: 'test', connections: 2 });
  const count = `SELECT count(*)::int AS n FROM intake.advertisers`;
  await db.transaction(async (tx) => {
    expect(await tx.query(count)).toEqual([{ n: 0 }]);
    await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('seven', 7)`);
    expect(await tx.query(count)).toEqual([{ n: 1 }]);
  });
});

test('a conflict that outlasts its repeats is a database that cannot take work now', async ({ emptied: database }) => {
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('seven', 7)`);
  await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
  const bump = `UPDATE intake.advertisers SET agent_id = agent_id || 'x'`;
  let tries = 0;
  const losing = retryOnConflict(() =>
    db.transaction(async (tx) => {
      tries++;
      await tx.query(`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`);
      await tx.query(`SELECT FROM intake.advertisers`);
      await database.query(bump);
      await tx.query(bump);
    }),
  );
  await expect(losing).rejects.toMatchObject({
    name: 'Trouble',
    kind: 'local',
    message: expect.stringContaining('40001'),
  });
  expect(tries).toBe(5);
});

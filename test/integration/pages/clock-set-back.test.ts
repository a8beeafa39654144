// The clock of the database was ahead, and is right again: every stored time lies in the future, and nothing waits for it.
import { createHash } from 'node:crypto';
import { describe, expect } from 'vitest';
import { syncOnce } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { pruneEvents } from '../../../src/store/events.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { openStore } from '../../../src/store/store.ts';
import { deleteDue } from '../../../src/sync/files/delete-objects.ts';
import { setClockBack } from '../../support/database/moved-clock.ts';
import { type TestDatabase, test } from '../../support/database/test-database.ts';
import { testPrivacyKey, toEnvironment } from '../../support/processes/syncing.ts';
import { hireWorker, isDone, isRead, openSettings } from '../../support/processes/worker.ts';
import { openSmallIntake, verifyAt } from '../../support/small-intake.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';
import { until } from '../../support/suite/until.ts';

const dayMs = 86_400_000;
describe('a clock that is set back by a day', () => {
  test("keeps no command waiting: lanes, rate, files and a dead process's are free", async ({ emptied: database }) => {
    await using scratch = await openScratch();
    await using board = await openSandbox({ applications: 5 });
    const env = { ...toEnvironment(database, board, scratch.path), SOURCE_RATE: '200/s' };
    const config = loadConfig(env, { needs: ['database', 'source', 'sync', 'privacy', 'blobs'] });
    const run = (files: boolean) => syncOnce(config, { recheck: false, files, signal: AbortSignal.timeout(600_000) });
    await run(true);
    board.add(5);
    await run(false);
    // Processes that died meanwhile: one with the lane, one with a file.
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
    await store.leases.claim({ name: 'default', lane: 'live', owner: 'a dead process', leaseMs: 30_000 });
    const token = crypto.randomUUID();
    const advertisers = [board.advertiserId];
    const { claims } = await store.downloads.claimDownloads({
      advertisers,
      tier: 'usual',
      limit: 1,
      token,
      leaseMs: 30_000,
    });
    expect(claims).toHaveLength(1);
    await setClockBack(database.query, dayMs);

    board.add(5);
    const { advertisers: outcomes, files } = await run(true);
    expect(outcomes).toMatchObject([{ trouble: null }]);
    expect(await isRead(database, board)).toBe(true);
    expect(files).toMatchObject({ waiting: 0 });
  });

  test('keeps no worker waiting, whether it runs or starts', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 5 });
    await using settings = await openSettings(database, board, { SOURCE_RATE: '200/s' });
    {
      await using _worker = await hireWorker(settings.env);
      await until(() => isDone(database, board));
      await setClockBack(database.query, dayMs);
      board.add(3);
      await until(() => isDone(database, board));
    }
    board.add(3);
    await setClockBack(database.query, dayMs);
    await using _worker = await hireWorker(settings.env);
    await until(() => isDone(database, board));
  });
});

describe('a download', () => {
  test('that waits longer than any may is due; one that waits its time is not', async ({ emptied: database }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
    await store.advertisers.ensure('acme', 1n);
    const claimed = '00000000-0000-4000-8000-000000000001';
    const waits = [
      // It has not failed: it was due when it was queued.
      [null, null, null, '5 minutes', true],
      ['unreachable', '-5 seconds', null, '20 seconds', false],
      ['unreachable', '-1 minute', null, '5 minutes', false],
      ['unreachable', '-1 hour', null, '23 hours', false],
      ['unreachable', '1 hour', null, '1 hour 5 minutes', true],
      ['missing', '-1 minute', null, '12 hours', false],
      ['missing', '5 minutes', null, '15 minutes', true],
      ['throttled', '-1 minute', null, '24 hours', false],
      ['throttled', '2 days', null, '3 days', true],
      // It was due when it was claimed.
      ['unreachable', '-1 hour', claimed, '5 hours', true],
    ] as const;
    for (const [nth, [kind, failed, token, wait]] of waits.entries()) {
      await database.query(
        `WITH application AS (
           INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq) VALUES (1, $1, '', 0)
         ), attachment AS (
           INSERT INTO intake.attachments (advertiser_id, application_id, kind, state) VALUES (1, $1, 'resume', 'pending')
         )
         INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority, trouble_kind, failed_at, lease_token, leased_until, due_at)
         VALUES (1, $1, 'resume', 0, $2, now() + $3::interval, $4, CASE WHEN $4::uuid IS NOT NULL THEN now() + $5::interval END, now() + $5::interval)`,
        [nth, kind, failed, token, wait],
      );
    }
    await store.downloads.bringForward();
    const rows = await database.query<{ due: boolean }>(
      `SELECT due_at <= now() AS due FROM intake.downloads ORDER BY application_id`,
    );
    expect(rows.map((row) => row.due)).toEqual(waits.map(([, , , , due]) => due));
  });

  test('that was claimed by a clock ahead is taken up by intake retry', async ({ emptied: database }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
    await store.advertisers.ensure('acme', 1n);
    await database.query(
      `WITH application AS (
         INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq) VALUES (1, 1, '', 0)
       ), attachment AS (
         INSERT INTO intake.attachments (advertiser_id, application_id, kind, state) VALUES (1, 1, 'resume', 'pending')
       )
       INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority, attempts, lease_token, leased_until, due_at)
       VALUES (1, 1, 'resume', 0, 1, gen_random_uuid(), now() + interval '5 hours', now() + interval '5 hours')`,
    );
    await store.downloads.retryDownloads(1n, { state: 'waiting', applicationId: null, kind: null });
    const rows = await database.query(
      `SELECT due_at <= now() AS due, lease_token IS NULL AS free FROM intake.downloads`,
    );
    expect(rows).toEqual([{ due: true, free: true }]);
  });
});

describe('what was noted by a clock that was a year ahead', { tags: ['slow'] }, () => {
  const dayPasses = async ({ query }: Pick<TestDatabase, 'query'>) => {
    await query(`UPDATE intake.blobs SET intended_at = intended_at - interval '25 hours'`);
    await query(`UPDATE intake.applications SET absent_since = absent_since - interval '25 hours'`);
  };

  test('orphans are collected after their grace', async ({ emptied: database }) => {
    await using intake = await openSmallIntake({ rigor: 'proof', database });
    const { advertiserId } = intake.board;
    await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'kept' }] }]);
    const [kept = ''] = await intake.keys();
    const facts = { sizeBytes: 6, sha256: createHash('sha256').update('orphan').digest('hex') };
    const signal = AbortSignal.timeout(600_000);
    await intake.blobs.put(toBlobKey(advertiserId, facts.sha256), Buffer.from('orphan'), facts, signal);
    const run = () => verifyAt(intake, { amount: { share: 0 } });
    await run();
    await setClockBack(database.query, 365 * dayMs);
    await run();
    expect(await intake.keys()).toHaveLength(2);
    await dayPasses(database);
    await run();
    expect(await intake.keys()).toEqual([kept]);
  });

  test('an absent application becomes missing after a day', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using intake = await openSmallIntake({ rigor: 'proof', database });
    const ids = intake.board.add(Array.from({ length: 40 }, () => ({ attachments: [] })));
    const isMissing = async () =>
      (await database.query(`SELECT 1 FROM intake.events WHERE type = 'application.missing'`)).length > 0;
    await intake.sweep();
    intake.board.remove(ids[3] as bigint);
    await intake.sweep(true);
    await setClockBack(database.query, 365 * dayMs);
    await intake.sweep(true);
    expect(await isMissing()).toBe(false);
    await dayPasses(database);
    await intake.sweep(true);
    expect(await isMissing()).toBe(true);
  });

  test('infected bytes are deleted while a put may be under way, not for a year', async ({ emptied: database }) => {
    await using intake = await openSmallIntake({ rigor: 'proof', database });
    const resume = { kind: 'resume' as const, content: 'bad', uploadedAt: 1_700_000_000_000 };
    const [id = 0n] = await intake.receiveWithFiles([{ attachments: [resume] }]);
    intake.board.change(id, { attachments: [{ ...resume, hasVirus: true }] });
    await intake.sweep(true);
    await setClockBack(database.query, 365 * dayMs);
    const deleteTomorrow = async () => {
      await database.query(
        `UPDATE intake.blobs SET deleted_at = deleted_at - interval '25 hours', intended_at = intended_at - interval '25 hours'`,
      );
      return await deleteDue(intake, AbortSignal.timeout(600_000));
    };
    await verifyAt(intake, { amount: { share: 0 } });
    expect(await deleteTomorrow()).toBe(1);
    expect(await deleteTomorrow()).toBe(0);
  });

  test('events are pruned a month after the clock was right again', async ({ emptied: database }) => {
    await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
    await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('a', 1)`);
    await database.query(
      `INSERT INTO intake.events SELECT 1, n, n, 'application.received', now() + days * interval '1 day'
       FROM (VALUES (1, 364), (2, 365), (3, -1), (4, 0)) AS e (n, days)`,
    );
    expect(await pruneEvents(db)).toBe(0);
    await database.query(`UPDATE intake.events SET at = at - interval '31 days'`);
    expect(await pruneEvents(db)).toBe(3);
    expect(await database.query(`SELECT event_id::int AS id FROM intake.events`)).toEqual([{ id: 4 }]);
  });

  test('the list was not read in the future: the status tells when it was', async ({ emptied: database }) => {
    await using intake = await openSmallIntake({ rigor: 'proof', database });
    await intake.receive(3);
    await setClockBack(database.query, 365 * dayMs);
    await intake.receive(3);
    const [status] = await intake.store.reports.loadStatus();
    const [clock] = await database.query<{ now: Date }>(`SELECT now()`);
    expect(Number(clock?.now) - Number(status?.readAt)).toBeGreaterThanOrEqual(0);
  });

  test('a killed worker waits for nothing', async ({ emptied: database }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
    const { advertisers } = store;
    await advertisers.ensure('default', null);
    const wait = { task: 'reading', dependency: 'source', reason: 'ECONNREFUSED' } as const;
    await advertisers.noteTrouble(['default'], wait, 0);
    await setClockBack(database.query, 365 * dayMs);
    expect(await advertisers.loadWaits()).toEqual([]);
    await advertisers.noteTrouble(['default'], wait, 0);
    expect(await advertisers.loadWaits()).toMatchObject([wait]);
  });
});

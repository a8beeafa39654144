// The queue: who gets which download, for how long, and what becomes of claims that lapse.
import { createSecretKey, hash, randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import type { Attachment } from '../../../src/domain/application.ts';
import type { Lease } from '../../../src/store/accounts/leases.ts';
import { beginDueDeletes, dropUnneeded } from '../../../src/store/files/blobs.ts';
import {
  type CompletedClaim,
  type Completion,
  completeDownloads,
  type StoredFile,
} from '../../../src/store/files/complete-download.ts';
import {
  type Claim,
  type ClaimRequest,
  claimDownloads,
  loadDueAdvertisers,
  loadFileFacts,
  loadWaiting,
  postponeDownload,
  releaseDownloads,
  renewDownloads,
} from '../../../src/store/files/download-queue.ts';
import { coalesce } from '../../../src/store/postgres/coalesce.ts';
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts';
import { openQueueListener } from '../../../src/store/postgres/listen.ts';
import { announceResume } from '../../../src/store/prefill/prefills.ts';
import { loadAdvertiserStatus } from '../../../src/store/reports/status.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import { test as base, emptyDatabase } from '../../support/database/test-database.ts';
import { takeLease } from '../../support/leases.ts';
import { until } from '../../support/suite/until.ts';

const test = base
  .extend('opened', { scope: 'file' }, async ({ database }, { onCleanup }) => {
    const db = openDatabase({ url: database.url, role: 'test' });
    onCleanup(() => db[Symbol.asyncDispose]());
    return db;
  })
  .extend('db', { scope: 'test' }, async ({ database, opened }): Promise<Database> => {
    await emptyDatabase(database);
    return opened;
  });

async function complete(db: Database, claim: Claim, completion: Completion): Promise<unknown> {
  const [state] = await completeDownloads(db, [{ claim, completion }]);
  return state;
}

/** Queues the resumes of applications 1 to `count` of an advertiser. */
async function queue(db: Database, advertiserId: bigint, count: number, priority = 0): Promise<void> {
  await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, [
    `account ${advertiserId}`,
    advertiserId,
  ]);
  await db.query(
    `WITH a AS (INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT $1, id + $3 * 1000000, '', 1 FROM generate_series(1, $2) AS id RETURNING application_id),
     f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state)
       SELECT $1, application_id, 'resume', 'pending' FROM a RETURNING application_id)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority, due_at)
     SELECT $1, application_id, 'resume', $3, now() - interval '1 second' + application_id * interval '1 microsecond' FROM f`,
    [advertiserId, count, priority],
  );
}

const request = (some: Partial<ClaimRequest> = {}): ClaimRequest => ({
  advertisers: [7n],
  tier: 'usual',
  limit: 100,
  token: randomUUID(),
  leaseMs: 30_000,
  ...some,
});

async function claimOne(db: Database, some: Partial<ClaimRequest> = {}): Promise<Claim> {
  const { claims } = await claimDownloads(db, request({ limit: 1, ...some }));
  if (!claims[0]) throw new Error('Nothing was due.');
  return claims[0];
}

/** Lets the claim of a process that died lapse. */
async function lapse(db: Database): Promise<void> {
  await db.query(`UPDATE intake.downloads SET leased_until = now() WHERE lease_token IS NOT NULL`);
}

const key = createSecretKey(Buffer.from('a key for tests'));

/** Leases a lane of account 7. */
async function openLive(db: Database, lane: 'live' | 'backfill' = 'live'): Promise<Lease> {
  await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('acme', 7) ON CONFLICT DO NOTHING`);
  return await takeLease(db, { name: 'acme', lane, owner: 'test', leaseMs: 60_000 });
}

const givenUp = { kind: 'final', state: 'given_up', reason: 'a test' } as const;

describe('a claim', () => {
  test('goes to one worker only, however many claim at once, and none is left over', async ({ db }) => {
    await queue(db, 7n, 200);
    const claimed = await Promise.all(Array.from({ length: 8 }, () => claimDownloads(db, request({ limit: 40 }))));
    const rest = await claimDownloads(db, request({ limit: 200 }));
    const ids = [...claimed, rest].flatMap(({ claims }) => claims.map((claim) => claim.applicationId));
    expect(new Set(ids).size).toBe(200);
    expect(ids).toHaveLength(200);
  });

  test('takes live arrivals before what a backfill brought, the longest due first', async ({ db }) => {
    await queue(db, 7n, 3, 1);
    // They have waited for an hour, and wait on.
    await db.query(`UPDATE intake.downloads SET due_at = due_at - interval '1 hour'`);
    await queue(db, 7n, 2, 0);
    const { claims } = await claimDownloads(db, request({ limit: 3 }));
    expect(new Set(claims.map((claim) => claim.applicationId))).toEqual(new Set([1n, 2n, 1_000_001n]));
  });

  test('shares its batch between advertisers, and does not look at a halted one', async ({ db }) => {
    await queue(db, 7n, 50);
    await queue(db, 8n, 50);
    await queue(db, 9n, 50);
    await db.query(`UPDATE intake.advertisers SET state = 'halted', halt_kind = 'refused' WHERE advertiser_id = 9`);
    const { claims } = await claimDownloads(db, request({ advertisers: [7n, 8n, 9n], limit: 20 }));
    const of = (id: bigint) => claims.filter((claim) => claim.advertiserId === id).length;
    expect([of(7n), of(8n), of(9n)]).toEqual([10, 10, 0]);
    expect([...(await loadDueAdvertisers(db)).values()].toSorted()).toEqual([7n, 8n]);
  });

  test('is filled by the one that has work among many that have none, and not overfilled', async ({ db }) => {
    const advertisers = Array.from({ length: 60 }, (_, at) => BigInt(100 + at));
    for (const id of advertisers) await queue(db, id, id === 100n ? 50 : 0);
    const alone = await claimDownloads(db, request({ advertisers, limit: 20 }));
    expect(alone.claims).toHaveLength(20);
    for (const id of advertisers.slice(1)) await queue(db, id, 5);
    const many = await claimDownloads(db, request({ advertisers, limit: 20 }));
    expect(many.claims).toHaveLength(20);
    expect(new Set(many.claims.map((claim) => claim.advertiserId)).size).toBe(20);
  });

  test('counts an attempt; one that was throttled, or given back at shutdown, does not', async ({ db }) => {
    await queue(db, 7n, 1);
    const first = await claimOne(db);
    expect(first.attempts).toBe(1);
    const trouble = { kind: 'throttled', message: 'later' } as const;
    await postponeDownload(db, first, { delayMs: 0, countsAttempt: false, trouble });
    const second = await claimOne(db);
    expect(second.attempts).toBe(1);
    await releaseDownloads(db, [second]);
    const third = await claimOne(db);
    await postponeDownload(db, third, { delayMs: 0, countsAttempt: true, trouble });
    expect((await claimOne(db)).attempts).toBe(2);
  });

  test('is of a source that serves its account where the list was read since the failure', async ({ db }) => {
    await queue(db, 7n, 1);
    await db.query(`UPDATE intake.downloads SET failed_at = now() - interval '1 minute'`);
    await db.query(
      `INSERT INTO intake.cursors (advertiser_id, after_id, as_of) VALUES (7, 1, now() + interval '1 hour')`,
    );
    const ahead = await claimOne(db);
    expect(ahead.isServed).toBe(false);
    await releaseDownloads(db, [ahead]);
    await db.query(`UPDATE intake.cursors SET as_of = now()`);
    expect((await claimOne(db)).isServed).toBe(true);
  });

  test('that waits is not due before its time', async ({ db }) => {
    await queue(db, 7n, 1);
    await postponeDownload(db, await claimOne(db), {
      delayMs: 60_000,
      countsAttempt: true,
      trouble: { kind: 'missing', message: 'not there' },
    });
    expect((await claimDownloads(db, request())).claims).toEqual([]);
    expect(await loadWaiting(db, [7n])).toEqual({ waiting: 1, notThere: 1, nextInMs: null });
    // Nor does it wake a worker that would find nothing to claim.
    expect((await loadDueAdvertisers(db)).size).toBe(0);
    await db.query(`UPDATE intake.downloads SET due_at = now()`);
    expect([...(await loadDueAdvertisers(db)).values()]).toEqual([7n]);
  });

  test('is prolonged by its heartbeat, and by nobody who lost it', async ({ db }) => {
    await queue(db, 7n, 1);
    const claim = await claimOne(db, { leaseMs: 1 });
    await renewDownloads(db, [claim], 60_000);
    expect(await claimDownloads(db, request())).toEqual({ claims: [], expired: 0 });
    await lapse(db);
    await claimDownloads(db, request());
    await renewDownloads(db, [claim], 60_000);
    expect((await claimDownloads(db, request({ tier: 'suspects' }))).claims).toHaveLength(1);
  });

  test('is nobody else’s until it lapses: not due, not counted, and the next to look for', async ({ db }) => {
    await queue(db, 7n, 1);
    const look = async () => {
      const [[status], due, { nextInMs }] = await Promise.all([
        loadAdvertiserStatus(db),
        loadDueAdvertisers(db),
        loadWaiting(db, [7n]),
      ]);
      return { counted: status?.due, woken: due.size, isLater: (nextInMs ?? 0) > 50_000 };
    };
    await claimOne(db, { leaseMs: 60_000 });
    expect(await look()).toEqual({ counted: 0, woken: 0, isLater: true });
    await lapse(db);
    expect(await look()).toEqual({ counted: 1, woken: 1, isLater: false });
  });
});

describe('a claim that lapsed', () => {
  test('makes its download a suspect, which only those who fetch alone get', async ({ db }) => {
    await queue(db, 7n, 2);
    await claimDownloads(db, request({ limit: 2 }));
    await lapse(db);
    expect(await claimDownloads(db, request())).toEqual({ claims: [], expired: 2 });
    expect(await claimDownloads(db, request())).toEqual({ claims: [], expired: 0 });
    const suspect = await claimOne(db, { tier: 'suspects' });
    expect(suspect).toMatchObject({ attempts: 1, lapses: 0 });
  });

  test('can end nothing any more: neither its completion nor its failure is written', async ({ db }) => {
    await queue(db, 7n, 1);
    const stale = await claimOne(db);
    await lapse(db);
    await claimDownloads(db, request());
    const current = await claimOne(db, { tier: 'suspects' });
    expect(await complete(db, stale, givenUp)).toBe('lost');
    await postponeDownload(db, stale, { delayMs: 0, countsAttempt: true, trouble: null });
    await releaseDownloads(db, [stale]);
    expect(await db.query(`SELECT lease_token FROM intake.downloads`)).toEqual([{ lease_token: current.token }]);
    expect(await db.query(`SELECT state FROM intake.attachments`)).toEqual([{ state: 'pending' }]);
    expect(await complete(db, current, givenUp)).toBe('given_up');
    expect(await complete(db, current, givenUp)).toBe('lost');
  });
});

test('the last attachment makes its application ready in one transaction, with an event', async ({ db }) => {
  await queue(db, 7n, 1);
  await db.query(
    `INSERT INTO intake.attachments (advertiser_id, application_id, kind, state) VALUES (7, 1, 'screen', 'pending')`,
  );
  await db.query(
    `INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) VALUES (7, 1, 'screen', 0)`,
  );
  const { claims } = await claimDownloads(db, request());
  const [first, second] = claims as [Claim, Claim];
  await complete(db, first, givenUp);
  expect(await db.query(`SELECT ready_at FROM intake.applications`)).toEqual([{ ready_at: null }]);
  await complete(db, second, givenUp);
  expect(await db.query(`SELECT ready_at IS NOT NULL AS ready FROM intake.applications`)).toEqual([{ ready: true }]);
  expect(await db.query(`SELECT application_id, type FROM intake.events`)).toEqual([
    { application_id: 1n, type: 'application.ready' },
  ]);
});

describe('bytes that are announced while equal ones are deleted', () => {
  const sha256 = hash('sha256', 'equal bytes');

  test('do not wait for a delete that began before the clock was set back', async ({ db }) => {
    await db.transaction((tx) => dropUnneeded(tx, 7n, [sha256]));
    await beginDueDeletes(db, 10);
    await db.query(`UPDATE intake.blobs SET delete_until = delete_until + interval '1 hour'`);
    const prefillId = crypto.randomUUID();
    await db.query(
      `INSERT INTO intake.prefills (advertiser_id, prefill_id, form_url, return_url, resume_sha256) VALUES (7, $1, '', '', $2)`,
      [prefillId, sha256],
    );
    expect(await announceResume(db, { advertiserId: 7n, prefillId }, { sha256, sizeBytes: 11 })).toBe('put');
  });
});

describe('downloads that end together', () => {
  const stored = (text: string, some: Partial<StoredFile> = {}): StoredFile => ({
    ...{ kind: 'stored', contentType: null, detectedType: null, fileName: null, notes: [] },
    ...{ linkedBy: null, compared: null, screens: null },
    blob: { sizeBytes: text.length, sha256: hash('sha256', text) },
    ...some,
  });
  const states = (db: Database) => db.query(`SELECT state FROM intake.attachments ORDER BY application_id`);

  test('cost each other nothing when one of them cannot be written', async ({ db }) => {
    await queue(db, 7n, 3);
    const { claims } = await claimDownloads(db, request());
    const [first, second, third] = claims as [Claim, Claim, Claim];
    const completeOne = coalesce((all: readonly CompletedClaim[]) => completeDownloads(db, all));
    const completed = await Promise.allSettled(
      [
        { claim: first, completion: stored('first') },
        { claim: second, completion: stored('a name that Postgres refuses', { fileName: '\0' }) },
        { claim: third, completion: stored('bytes that are not held', { linkedBy: 'given' }) },
      ].map(completeOne),
    );
    expect(completed.map((one) => one.status === 'fulfilled' && one.value)).toEqual(['stored', false, 'unlinkable']);
    expect(await states(db)).toEqual([{ state: 'stored' }, { state: 'pending' }, { state: 'pending' }]);
    expect(await db.query(`SELECT 1 FROM intake.downloads`)).toHaveLength(2);
  });
});

test('a listener hears of queued downloads again after its connection ended', async ({ database }) => {
  const heard: string[] = [];
  await using _listener = await openQueueListener(database.url, { onQueued: (id) => heard.push(id) });
  const isHeard = (id: string) =>
    until(async () => {
      await database.query(`SELECT pg_notify('intake_downloads', $1)`, [id]);
      return heard.includes(id);
    });
  await isHeard('1');
  await database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'intake listen' AND datname = current_database()`,
  );
  await isHeard('2');
});

describe('a page', () => {
  test('wakes those who listen for work, when it is committed', async ({ db, database }) => {
    const heard: string[] = [];
    await using _listener = await openQueueListener(database.url, { onQueued: (id) => heard.push(id) });
    const lease = await openLive(db);
    await commitPage(db, key, aPage(lease, [anApplication(1, { attachments: [] })]));
    await commitPage(db, key, aPage(lease, [anApplication(2)]));
    await expect.poll(() => heard).toEqual(['7']);
  });

  test("of the live lane queues its files, of new and changed applications, before a backfill's", async ({ db }) => {
    for (const [lane, id] of [
      ['backfill', 1],
      ['live', 2],
    ] as const) {
      const lease = await openLive(db, lane);
      const page = (...kinds: string[]) =>
        aPage(lease, [anApplication(id, { attachments: kinds.map((kind) => anAttachment(kind)) })]);
      await commitPage(db, key, page('resume'));
      await commitPage(db, key, page('resume', 'coverLetter'));
    }
    expect(await db.query(`SELECT application_id::int, priority FROM intake.downloads ORDER BY 1`)).toEqual([
      ...Array(2).fill({ application_id: 1, priority: 1 }),
      ...Array(2).fill({ application_id: 2, priority: 0 }),
    ]);
  });

  test('that changes a file takes the claim on the earlier one back', async ({ db }) => {
    const lease = await openLive(db);
    await commitPage(db, key, aPage(lease, [anApplication(1)]));
    const stale = await claimOne(db);
    const changed = anApplication(1, { attachments: [anAttachment('resume', { sourceHash: 'another' })] });
    await commitPage(db, key, aPage(lease, [changed]));
    expect(await complete(db, stale, givenUp)).toBe('lost');
    // That was nobody's fault: no try is spent.
    const again = await claimOne(db);
    expect(again.attempts).toBe(1);
    const [facts] = await loadFileFacts(db, [again], 'learn');
    expect(facts).toMatchObject({ listedBytes: 1_000, twin: null });
  });

  test('that shows another upload gives it all tries at once, one with another Hash alone does not', async ({ db }) => {
    const lease = await openLive(db);
    const page = (facts: Partial<Attachment>) =>
      aPage(lease, [anApplication(1, { attachments: [anAttachment('resume', facts)] })]);
    await commitPage(db, key, page({ sourceHash: 'one' }));
    await db.query(`UPDATE intake.downloads SET attempts = 6, due_at = now() + interval '11 hours'`);
    await commitPage(db, key, page({ sourceHash: 'two' }));
    expect((await claimDownloads(db, request())).claims).toEqual([]);
    await commitPage(db, key, page({ sourceHash: 'three', uploadedAt: Date.now() }));
    expect((await claimOne(db)).attempts).toBe(1);
  });

  test('that shows another upload has its file fetched like a new one, whatever came before', async ({ db }) => {
    const lease = await openLive(db);
    const page = (uploadedAt: number) =>
      aPage(lease, [anApplication(1, { attachments: [anAttachment('resume', { uploadedAt })] })]);
    await commitPage(db, key, page(1));
    const load = () => db.query(`SELECT to_jsonb(d) - 'due_at' AS download FROM intake.downloads d`);
    const fresh = await load();
    await claimOne(db, { leaseMs: 1 });
    // Its process ended twice, and in between it failed.
    await db.query(
      `UPDATE intake.downloads SET priority = 2, lapses = 1, trouble = 'not there', trouble_kind = 'missing', failed_at = now()`,
    );
    await commitPage(db, key, page(2));
    expect(await load()).toEqual(fresh);
  });

  test('that changes something else takes no claim back, and brings no try forward', async ({ db }) => {
    const lease = await openLive(db);
    const page = (email: string) => aPage(lease, [anApplication(1, { email }), anApplication(2, { email })]);
    await commitPage(db, key, page('before@example.com'));
    const { claims } = await claimDownloads(db, request());
    const [waits, flies] = claims as [Claim, Claim];
    const trouble = { kind: 'missing', message: 'not there' } as const;
    await postponeDownload(db, waits, { delayMs: 3_600_000, countsAttempt: true, trouble });
    expect(await commitPage(db, key, page('after@example.com'))).toMatchObject({ changed: 2 });
    expect((await claimDownloads(db, request())).claims).toEqual([]);
    expect(await complete(db, flies, givenUp)).toBe('given_up');
  });
});

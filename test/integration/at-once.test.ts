// Two that touch the same application at once: what one of them has completed the other does not open again, and the last event agrees with
// the state (P26). Each waits for the lock of the events with everything else done, which is the longest that they can overlap.
import { hash, randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { anApplication, anAttachment, aPage, commitPageOf, loadEventTypes } from '../support/applications.ts';
import { openAccount } from '../support/leases.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { shareDatabase } from '../support/test-database.ts';

const database = shareDatabase();

const everything = { applicationId: null, kind: null, state: null } as const;

const loadTypes = (applicationId: bigint) => loadEventTypes(database, applicationId);

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
  await expect.poll(async () => (await load()).length).toBe(sessions);
}

describe('a retry of everything that waits', () => {
  test('does not open a file that is flagged at the same time', async () => {
    await using intake = await openSmallIntake({ database, choices: { virusBody: 'bytes' } });
    const { advertiserId } = intake.board;
    const [id = 0n] = await intake.receive([{ attachments: [{ kind: 'resume', content: 'a virus' }] }]);
    intake.board.change(id, { attachments: [{ kind: 'resume', content: 'a virus', hasVirus: true }] });
    await atOnce(
      advertiserId,
      () => intake.sweep(true),
      () => intake.store.downloads.retry(advertiserId, everything),
    );
    await intake.hasten();
    await intake.runDownloads();
    expect((await intake.file()).state).toBe('infected');
    expect(await intake.keys()).toEqual([]);
  });
});

describe('the last event of an erased application is that it was erased', () => {
  async function eraseBeside(intake: SmallIntake, applicationId: bigint, other: () => Promise<unknown>) {
    const { advertiserId } = intake.board;
    const sought = { by: 'application', applicationId } as const;
    await atOnce(advertiserId, () => intake.store.erasures.begin({ advertiserId, sought, by: 'test' }), other);
    expect((await loadTypes(applicationId)).at(-1)).toBe('erased');
    expect(await database.query(`SELECT ready_at FROM intake.applications`)).toEqual([{ ready_at: null }]);
  }

  test('beside a look at the store that finds its bytes gone', async () => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'mine' }] }]);
    await eraseBeside(intake, id, () =>
      intake.store.blobs.markDamaged(intake.board.advertiserId, hash('sha256', 'mine')),
    );
  });
});

describe('the last event of a missing application is that it is missing', () => {
  const advertiserId = 77n;
  const sha256 = hash('sha256', 'the same');
  const blob = { sha256, sizeBytes: 8 };
  const toApplication = (id: bigint, { hasVirus = false, uploads = 0 } = {}) =>
    anApplication(id, {
      attachments: [
        anAttachment('resume', {
          sourceHash: `hash ${id} ${uploads}`,
          sizeBytes: hasVirus ? 0 : 8,
          hasVirus,
          uploadedAt: Date.UTC(2026, 0, 1 + uploads),
        }),
      ],
    });

  /** Application 1 has the bytes, and the next sweep that ends without it calls it missing. */
  async function openWorld({ store }: SmallIntake) {
    const lease = await openAccount(store, 'acme', advertiserId);
    let seq = 1_000n;
    const commit = (applications: Parameters<typeof aPage>[1], progress: object = {}, sweepId = seq + 1n) => {
      seq += 1n;
      return commitPageOf(store, aPage(lease, applications, { advertiserId, seq, sweepId, progress }));
    };
    const claim = async () => {
      const { claims } = await store.downloads.claim({
        ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, leaseMs: 60_000, token: randomUUID() },
      });
      const [facts] = await store.downloads.loadFacts(claims, 'never');
      if (!facts) throw new Error('Nothing was due.');
      return facts;
    };
    const lacked = [{ id: 1n, old: true, again: false }];
    const ended = { ...{ certificate: 'proven', risk: 'none', reason: '', openRanges: 0 }, absent: 1, tryDates: false };
    /** The second answer of the sweep that lacks application 1. */
    const end = () => commit([], { lacked, ended: { ...ended, pages: null, completeThrough: new Date() } }, 9n);
    await commit([toApplication(1n)]);
    await commit([], { lacked }, 9n);
    const first = await claim();
    await store.blobs.announce(first.claim, blob);
    const said = { contentType: null, detectedType: null, fileName: null, notes: [], screens: null };
    await store.downloads.complete(first.claim, { kind: 'stored', blob, linkedBy: null, compared: null, ...said });
    const age = () =>
      database.query(
        `UPDATE intake.applications SET absent_since = now() - interval '25 hours' WHERE application_id = 1`,
      );
    return { commit, claim, end, age };
  }

  test('beside a flag on the same bytes, which another file was fetched with', async () => {
    await using intake = await openSmallIntake({ database });
    const world = await openWorld(intake);
    await world.commit([toApplication(2n)]);
    const fetched = await world.claim();
    await world.commit([toApplication(2n, { hasVirus: true })]);
    await world.age();
    await atOnce(advertiserId, world.end, () => intake.store.blobs.markFetched(fetched, sha256));
    expect((await loadTypes(1n)).slice(-2)).toEqual(['changed', 'missing']);
  });

  test('beside a look at the store that finds the bytes of an earlier version gone', async () => {
    await using intake = await openSmallIntake({ database });
    const world = await openWorld(intake);
    await world.commit([toApplication(1n, { uploads: 1 })]);
    await world.age();
    await atOnce(advertiserId, world.end, () => intake.store.blobs.markDamaged(advertiserId, sha256));
    expect((await loadTypes(1n)).slice(-2)).toEqual(['changed', 'missing']);
  });
});

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type BlobStore, toBlobKey } from '../../src/domain/blob.ts';
import type { Sought } from '../../src/domain/erasure.ts';
import { deleteDue } from '../../src/sync/files/delete-objects.ts';
import { openResume, redeemPrefill } from '../../src/sync/prefill.ts';
import { exportPerson } from '../../src/sync/privacy/export.ts';
import { findTraces } from '../support/database/dump.ts';
import { setClockBack } from '../support/database/moved-clock.ts';
import { shareDatabase } from '../support/database/test-database.ts';
import { bytes, resume, type Visit, visit } from '../support/prefill/prefill-visit.ts';
import { eraseAt, loadProblems, openSmallIntake, type SmallIntake, verifyAt } from '../support/small-intake.ts';
import { testFirst } from '../support/suite/variants.ts';

const database = shareDatabase();

const signal = () => AbortSignal.timeout(600_000);
const zelda = { firstName: 'Zeldabeth', lastName: 'Quarlesworth', emailAddress: 'zelda@example.com' };
const link = '/v2/resumes/00000000-0000-4000-8000-000000000001';
const byAddress = { by: 'address', email: zelda.emailAddress } as const;
const words = ['quarlesworth', 'zeldabeth', 'zelda@example.com', 'zelda-cv', 'zeldas resume', resume.sha256];
const traces = (intake: SmallIntake) => findTraces({ database, folders: [intake.folder], words });
const outcomes = async () =>
  (await database.query(`SELECT outcome FROM intake.prefills ORDER BY created_at`)).map(({ outcome }) => outcome);
/** Lapses what is due, and deletes what was let go of, as a worker does when the tokens have expired. */
const lapse = async (intake: SmallIntake) => {
  await intake.store.prefills.lapsePrefills();
  await database.query(`UPDATE intake.blobs SET delete_until = now() WHERE delete_until IS NOT NULL`);
  await deleteDue(intake, signal());
};
const isOver = `UPDATE intake.prefills SET expires_at = expires_at - interval '25 hours'`;
const flagged = { kind: 'resume', content: bytes.toString(), hasVirus: true } as const;
const clean = { ...flagged, hasVirus: false } as const;
const loadResumes = () =>
  database.query(
    `SELECT resume_reason, resume_stored_at IS NOT NULL AS stored FROM intake.prefills ORDER BY created_at`,
  );

test('a resume whose put fails after the object was stored is deleted with its person', async () => {
  await using intake = await openSmallIntake({ database });
  const over = new AbortController();
  const put: BlobStore['put'] = async (key, body, facts) => {
    await intake.blobs.put(key, body, facts, signal());
    over.abort();
    throw over.signal.reason;
  };
  const { handle, deps } = await visit(intake, { profile: { ...zelda, link }, blobs: { put }, signal: over.signal });
  expect(await redeemPrefill(deps, handle ?? '', ['default'])).toMatchObject({ resume: null });
  expect(await intake.keys()).toHaveLength(1);
  expect(await eraseAt(intake, byAddress)).toMatchObject([
    { closedAt: expect.any(Date), counts: { prefills: 1, files: 1 } },
  ]);
  expect(await intake.keys()).toEqual([]);
  expect(await traces(intake)).toEqual([]);
});

test('a profile that comes after its prefill has ended is not kept, and the log does not blame an erasure alone', async () => {
  await using intake = await openSmallIntake({ database });
  const onProfile = () => database.query(`UPDATE intake.prefills SET outcome = 'expired', ended_at = now()`);
  const ends: unknown[] = [];
  const { handle } = await visit(intake, { profile: zelda, onProfile, onEnd: (end) => void ends.push(end) });
  expect([handle, await outcomes()]).toEqual([null, ['expired']]);
  expect(ends).toMatchObject([{ trouble: { message: expect.stringContaining('The prefill ended') } }]);
  expect(await traces(intake)).toEqual([]);
});

test('a resume whose prefill lapses while it is put is deleted after it', async () => {
  await using intake = await openSmallIntake({ database });
  const put: BlobStore['put'] = async (...args) => {
    await database.query(isOver);
    await lapse(intake);
    return await intake.blobs.put(...args);
  };
  await visit(intake, { profile: { ...zelda, link }, blobs: { put } });
  expect([await outcomes(), await intake.keys()]).toMatchObject([['lapsed'], [expect.any(String)]]);
  // As after half a minute.
  await database.query(`UPDATE intake.blobs SET deleted_at = deleted_at - interval '31 seconds'`);
  await deleteDue(intake, signal());
  expect(await intake.keys()).toEqual([]);
  expect(await database.query(`SELECT state FROM intake.blobs`)).toEqual([{ state: 'deleting' }]);
});

describe('a profile that is on its way while its person is erased', () => {
  test.for([
    ['by address', byAddress, {}],
    ['by an account that the profile names', { by: 'jobseeker', jobSeekerId: 's-7' }, { jobSeekerId: 's-7' }],
  ] as const)('%s is not kept; one that begins later is', async ([, sought, more]) => {
    await using intake = await openSmallIntake({ database });
    const { advertiserId } = intake.board;
    const profile = { ...zelda, ...more, link };
    await visit(intake, { profile });
    const onProfile = () => intake.store.erasures.begin({ advertiserId, sought, by: 'test' });
    const { handle } = await visit(intake, { profile, onProfile });
    expect([handle, await outcomes()]).toEqual([null, ['erased', 'failed']]);
    await eraseAt(intake, sought);
    expect(await traces(intake)).toEqual([]);
    await visit(intake, { profile });
    expect(await outcomes()).toEqual(['erased', 'failed', 'prefilled']);
  });

  testFirst([
    ['in an object of a list', { contact: { emails: [{ value: `'zelda@example.com'` }] } }, byAddress],
    ['by an account two levels down', { a: { b: { JobSeekerID: ' s-7' } } }, { by: 'jobseeker', jobSeekerId: 's-7' }],
  ] as const)('whose name stands %s is not kept', async ([, profile, sought]) => {
    await using intake = await openSmallIntake({ database });
    const { handle } = await visit(intake, { profile, onProfile: () => eraseAt(intake, sought) });
    expect([handle, await outcomes()]).toEqual([null, ['failed']]);
  });

  testFirst(['grizelda@example.com', 'o.zelda@example.com', 'zelda@example.com.au', `o'zelda@example.com`])(
    'is kept where somebody else was erased: %s',
    async (email) => {
      await using intake = await openSmallIntake({ database });
      const { handle } = await visit(intake, {
        profile: { list: [email] },
        onProfile: () => eraseAt(intake, byAddress),
      });
      expect(handle).not.toBeNull();
    },
  );

  test.for([
    ['by address', byAddress],
    ['by account', { by: 'jobseeker', jobSeekerId: 's-7' }],
  ] as const)(
    '%s is not kept when it began before a second request, while the job of the first is open',
    async ([, sought]) => {
      await using intake = await openSmallIntake({ database });
      const { advertiserId } = intake.board;
      intake.board.add([{ attachments: [], email: zelda.emailAddress, jobSeekerId: 's-7' }]);
      await intake.sweep();
      const request = { advertiserId, sought, by: 'test' };
      expect(await intake.store.erasures.begin(request)).not.toBeNull();
      const onProfile = async () => {
        expect(await intake.store.erasures.begin(request)).toMatchObject({ closedAt: expect.any(Date) });
      };
      const { handle } = await visit(intake, { profile: zelda, onProfile });
      expect([handle, await outcomes()]).toEqual([null, ['failed']]);
      expect(await eraseAt(intake, sought)).toHaveLength(2);
      expect((await visit(intake, { profile: zelda })).handle).not.toBeNull();
    },
  );

  test('by the account of an application with the same address is not kept', async () => {
    await using intake = await openSmallIntake({ database });
    const sought = { by: 'jobseeker', jobSeekerId: 's-7' } as const;
    for (const _ of ['the first time', 'and again']) {
      intake.board.add([{ attachments: [], email: ` ${zelda.emailAddress.toUpperCase()}`, jobSeekerId: 's-7' }]);
      await intake.sweep();
      const { handle } = await visit(intake, { profile: zelda, onProfile: () => eraseAt(intake, sought) });
      expect(handle).toBeNull();
      expect(await traces(intake)).toEqual([]);
    }
    expect((await visit(intake, { profile: zelda })).handle).not.toBeNull();
  });
});

describe('a prefill is found', () => {
  const profiles: readonly (readonly [string, Visit, Sought])[] = [
    [
      'by an address under another name',
      { profile: { contact: { primaryMail: 'Zelda <zelda@example.com>' } } },
      byAddress,
    ],
    ['by an address deep in the profile', { profile: { a: { b: [{ c: 'write to zelda@example.com' }] } } }, byAddress],
    ['by the account at the top', { profile: { id: 's-7' } }, { by: 'jobseeker', jobSeekerId: 's-7' }],
    ['by the account below', { profile: { me: { candidate_id: 7 } } }, { by: 'jobseeker', jobSeekerId: '7' }],
    ['by the account of the session', { profile: {}, sessionIds: ['s-7'] }, { by: 'jobseeker', jobSeekerId: 's-7' }],
  ];
  test.for(profiles)('%s, and erased', async ([, how, sought]) => {
    await using intake = await openSmallIntake({ database });
    await visit(intake, { profile: { id: 'x', emailAddress: 'banjo-zelda@example.com', me: { countryId: 7 } } });
    await visit(intake, how);
    expect(await eraseAt(intake, sought)).toMatchObject([{ counts: { prefills: 1 } }]);
    expect(await outcomes()).toEqual(['prefilled', 'erased']);
  });

  test('by the account of an application; by its address alone in an erasure, not in an export', async () => {
    await using intake = await openSmallIntake({ database });
    const { advertiserId } = intake.board;
    const jobSeekerId = 's-7';
    const [applicationId = 0n] = intake.board.add([{ attachments: [], email: zelda.emailAddress, jobSeekerId }]);
    await intake.sweep();
    await visit(intake, { profile: zelda });
    await visit(intake, { profile: { jobSeekerId } });
    const folder = join(intake.folder, 'export');
    const exported = await exportPerson(intake, { advertiserId, applicationId, folder, by: 'test', signal: signal() });
    expect(exported).toMatchObject({ prefills: 1, prefillsLeftOut: 1 });
    expect(await eraseAt(intake, { by: 'jobseeker', jobSeekerId })).toMatchObject([
      { counts: { applications: 1, prefills: 2 } },
    ]);
    expect(await outcomes()).toEqual(['erased', 'erased']);
  });
});

test('a redeemed profile by which nobody can be found lapses; the others stay until they are erased', async () => {
  await using intake = await openSmallIntake({ database });
  for (const profile of [{ name: 'Quarlesworth', link }, zelda]) {
    const { handle, deps } = await visit(intake, { profile });
    expect(await redeemPrefill(deps, handle ?? '', ['default'])).not.toBeNull();
  }
  await intake.store.prefills.lapsePrefills();
  expect(await outcomes()).toEqual(['redeemed', 'redeemed']);
  await database.query(`UPDATE intake.prefills SET redeemed_at = redeemed_at - interval '25 hours'`);
  await intake.store.prefills.lapsePrefills();
  expect(await outcomes()).toEqual(['lapsed', 'redeemed']);
  expect(await database.query(`SELECT redeemed::int, lapsed::int FROM intake_analytics.prefill_funnel_daily`)).toEqual([
    { redeemed: 2, lapsed: 0 },
  ]);
});

describe('after the database clock was a month ahead and has been set back', () => {
  const month = 30 * 86_400_000;

  test('a profile that nobody has redeemed is not handed out, and lapses', async () => {
    await using intake = await openSmallIntake({ database });
    const { handle, deps } = await visit(intake, { profile: { ...zelda, link } });
    await setClockBack(database.query, month);
    expect(await redeemPrefill(deps, handle ?? '', ['default'])).toBeNull();
    await lapse(intake);
    expect(await outcomes()).toEqual(['lapsed']);
    expect(await traces(intake)).toEqual([]);
  });

  test('a profile that was on its way then is not kept where its person is erased', async () => {
    await using intake = await openSmallIntake({ database });
    const onProfile = async () => {
      await setClockBack(database.query, month);
      await eraseAt(intake, byAddress);
    };
    expect((await visit(intake, { profile: { ...zelda, link }, onProfile })).handle).toBeNull();
    expect(await traces(intake)).toEqual([]);
  });
});

test('starts that come to nothing are numbers after an hour, however many there are and from any address', async () => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  await visit(intake, { profile: zelda });
  // Autovacuum may have looked just before the table grew: the planner then believes in a single row.
  await database.query('VACUUM ANALYZE intake.prefills');
  await database.query(
    `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, form_url, return_url, ended_at)
     SELECT $1, gen_random_uuid(), o, 'https://x', 'https://x', CASE WHEN o <> 'started' THEN now() END
     FROM unnest('{started,denied,failed,expired}'::text[]) AS o, generate_series(1, 2600)`,
    [advertiserId],
  );
  const funnel = () =>
    database.query(
      `SELECT sum(started)::int AS started, sum(denied)::int AS denied, sum(failed)::int AS failed, sum(prefilled)::int AS prefilled
       FROM intake_analytics.prefill_funnel_daily`,
    );
  const counted = [{ started: 10_401, denied: 2_600, failed: 2_600, prefilled: 1 }];
  await intake.store.prefills.lapsePrefills();
  expect(await database.query(`SELECT count(*)::int AS n FROM intake.prefills`)).toEqual([{ n: 10_401 }]);
  expect(await funnel()).toEqual(counted);
  await database.query(
    `UPDATE intake.prefills SET created_at = created_at - interval '61 minutes', ended_at = ended_at - interval '61 minutes'`,
  );
  await intake.store.prefills.lapsePrefills();
  expect(await outcomes()).toEqual(['prefilled']);
  expect(await database.query(`SELECT count(*)::int AS n FROM intake.oauth_states`)).toEqual([{ n: 1 }]);
  expect(await funnel()).toEqual(counted);
});

describe('a resume has the life of every other file', () => {
  const key = (intake: SmallIntake) => toBlobKey(intake.board.advertiserId, resume.sha256);
  const path = (intake: SmallIntake) => join(intake.folder, 'blobs', key(intake));
  const check = verifyAt;
  const redeem = async ({ handle, deps }: Awaited<ReturnType<typeof visit>>) => {
    const redeemed = await redeemPrefill(deps, handle ?? '', ['default']);
    if (redeemed === null) throw new Error('not redeemed');
    return { redeemed, open: () => openResume(deps, redeemed, signal()) };
  };

  test('it shares its bytes with attachments, and neither goes while the other stays', async () => {
    await using intake = await openSmallIntake({ database });
    const [applicationId = 0n] = intake.board.add([{ attachments: [clean] }]);
    await visit(intake, { profile: { ...zelda, link } });
    await intake.sweep();
    await intake.runDownloads();
    expect(await intake.keys()).toEqual([key(intake)]);
    await eraseAt(intake, { by: 'application', applicationId });
    expect(await intake.keys()).toEqual([key(intake)]);
    await intake.receiveWithFiles([{ attachments: [clean] }]);
    await database.query(isOver);
    await lapse(intake);
    expect([await outcomes(), await intake.keys()]).toEqual([['lapsed'], [key(intake)]]);
    expect(await check(intake)).toMatchObject({ missing: 0, damaged: 0, orphans: 0 });
  });

  test('bytes that are known to be infected are not stored and not handed out', async () => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = await intake.receiveWithFiles([{ attachments: [clean] }]);
    intake.board.change(id, { attachments: [flagged] });
    await intake.sweep();
    await deleteDue(intake, signal());
    const { redeemed } = await redeem(await visit(intake, { profile: { ...zelda, link } }));
    expect(redeemed.resume).toBeNull();
    expect(await loadResumes()).toEqual([{ resume_reason: expect.stringContaining('flagged'), stored: false }]);
    expect(await intake.keys()).toEqual([]);
  });

  test('a flag that comes later recalls it', async () => {
    await using intake = await openSmallIntake({ database });
    const { open } = await redeem(await visit(intake, { profile: { ...zelda, link } }));
    expect(await open()).not.toBeNull();
    const [id = 0n] = await intake.receiveWithFiles([{ attachments: [clean] }]);
    intake.board.change(id, { attachments: [flagged] });
    await intake.sweep();
    expect(await open()).toBeNull();
    await deleteDue(intake, signal());
    expect(await intake.keys()).toEqual([]);
  });

  test.for([
    ['comes before it is put, whose object is deleted before', [true], []],
    ['is lifted again before it is put', [true, false], []],
    ['comes when it is put, and is lifted again when its object is deleted', [], [true, false]],
  ] as const)('a flag that %s leaves no row without its object', async ([, before, after]) => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = await intake.receiveWithFiles([{ attachments: [clean] }]);
    const say = async (flags: readonly boolean[]) => {
      for (const hasVirus of flags) {
        intake.board.change(id, { attachments: [{ ...clean, hasVirus }] });
        await intake.sweep();
        await deleteDue(intake, signal());
      }
    };
    const put: BlobStore['put'] = async (...args) => {
      await say(before);
      const answer = await intake.blobs.put(...args);
      await say(after);
      return answer;
    };
    const { redeemed } = await redeem(await visit(intake, { profile: { ...zelda, link }, blobs: { put } }));
    expect(redeemed.resume).toBeNull();
    expect(await loadResumes()).toEqual([{ resume_reason: expect.stringContaining('flagged'), stored: false }]);
    expect(await check(intake)).toMatchObject({ missing: 0, damaged: 0, extra: 0 });
    // What is deleted again and again, and what was freed.
    await database.query(`UPDATE intake.blobs SET deleted_at = NULL WHERE state = 'infected'`);
    await deleteDue(intake, signal());
    const isFreed = [...before, ...after].at(-1) === false;
    await intake.runDownloads();
    expect(await intake.keys()).toEqual(isFreed ? [key(intake)] : []);
    expect(await check(intake)).toMatchObject({ missing: 0, damaged: 0, extra: 0, orphans: 0 });
  });

  test.for([
    ['missing', rmSync],
    ['damaged', (file: string) => writeFileSync(file, 'zeldas rEsume')],
  ] as const)('verify notices that it is %s', async ([condition, plant]) => {
    await using intake = await openSmallIntake({ database });
    const { open } = await redeem(await visit(intake, { profile: { ...zelda, link } }));
    expect(await check(intake)).toMatchObject({ blobs: 1, read: 1, lost: 0 });
    plant(path(intake));
    expect(await check(intake)).toMatchObject({ [condition]: 1, lost: 1 });
    expect(await open()).toBeNull();
    expect(await loadResumes()).toEqual([{ resume_reason: 'the stored bytes were lost', stored: true }]);
  });

  test('damaged bytes are not handed over to the end; the next verify reads them first, and repairs what has them', async () => {
    await using intake = await openSmallIntake({ database });
    await intake.receiveWithFiles([{ attachments: [clean] }]);
    await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'read last week' }] }]);
    await database.query(`UPDATE intake.blobs SET verified_at = now() - interval '7 days' WHERE sha256 <> $1`, [
      resume.sha256,
    ]);
    const { open } = await redeem(await visit(intake, { profile: { ...zelda, link } }));
    const read = async () => Buffer.concat(await Array.fromAsync((await open())?.bytes ?? []));
    writeFileSync(path(intake), 'zeldas rEsume');
    await expect(read()).rejects.toMatchObject({ kind: 'mismatch' });
    // As after an answer that was wrong once: nothing is lost.
    writeFileSync(path(intake), bytes);
    expect(await read()).toEqual(bytes);
    writeFileSync(path(intake), 'zeldas rEsume');
    await expect(read()).rejects.toMatchObject({ kind: 'mismatch' });
    // A budget of one byte: only what is read first.
    expect(await check(intake, { amount: { share: 0.01 } })).toMatchObject({ damaged: 1, requeued: 1 });
    expect(await open()).toBeNull();
  });

  test('resumes of earlier releases, to which no row refers, are deleted by verify', async () => {
    await using intake = await openSmallIntake({ database });
    const { advertiserId } = intake.board;
    await visit(intake, { profile: { ...zelda, link } });
    for (const nth of [7, 8]) {
      const old = `prefills/${advertiserId}/00000000-0000-4000-8000-00000000000${nth}`;
      await intake.blobs.put(old, bytes, resume, signal());
    }
    // Not Intake's: the store of another database below this one, and files of the operator.
    const names = [`${advertiserId}/aa/a-blob`, `${advertiserId}/my notes.txt`, '7/aa/a-blob'];
    const others = names.map((name) => join(intake.folder, 'blobs/prefills', name));
    for (const path of others) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, 'x');
    }
    const keeping: BlobStore['delete'] = async (one, ended) => ({
      ...(await intake.blobs.delete(one, ended)),
      keptVersions: 1,
    });
    const keepingIntake = { ...intake, blobs: { ...intake.blobs, delete: keeping } };
    expect(await check(keepingIntake)).toMatchObject({ blobs: 1, collected: 2, foreign: 2, braked: false });
    // Versions of them are told until they are gone.
    const loadTold = async () =>
      (await loadProblems(intake)).map(({ what }) => what).filter((what) => /versions/.test(what));
    for (const time of [1, 2]) {
      const told = [expect.stringContaining('2 files are deleted, but the storage keeps versions')];
      expect({ time, told: await loadTold() }).toEqual({ time, told });
      expect(await check(keepingIntake)).toMatchObject({ collected: 0, missing: 0, extra: 0 });
    }
    await check(intake);
    expect(await loadTold()).toEqual([]);
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.blobs`)).toEqual([{ n: 1 }]);
    expect(others.filter((path) => existsSync(path))).toEqual(others);
    for (const path of others) rmSync(path);
    expect(await intake.keys()).toEqual([key(intake)]);
  });
});

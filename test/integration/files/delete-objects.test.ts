// Deleting objects beside equal bytes that come at the same moment: however slow the delete is, and if a process dies or stands still, a
// file that is called stored has its object.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMaintenance } from '../../../src/app/maintenance.ts';
import { loadConfig } from '../../../src/config.ts';
import { type BlobStore, toBlobKey } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { openStore } from '../../../src/store/store.ts';
import { deleteDue } from '../../../src/sync/files/delete-objects.ts';
import { adoptStore } from '../../../src/sync/files/store-owner.ts';
import { finishErasures } from '../../../src/sync/privacy/erase.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { testPrivacyKey, toEnvironment } from '../../support/processes/syncing.ts';
import { eraseAt, openSmallIntake, type SmallIntake, verifyAt } from '../../support/small-intake.ts';
import { quietLog } from '../../support/suite/quiet-log.ts';

const database = shareDatabase();

const content = 'the bytes of two people';
const sha256 = createHash('sha256').update(content).digest('hex');
const resume = { kind: 'resume', content, hasVirus: false, uploadedAt: 1_700_000_000_000 };
const signal = () => AbortSignal.timeout(600_000);
const sha = (text: string) => createHash('sha256').update(text).digest('hex');

/** One person's stored resume. */
async function openOne(): Promise<SmallIntake & { id: bigint }> {
  const intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receiveWithFiles([{ attachments: [resume] }]);
  return Object.assign(intake, { id });
}

/** A store of blobs whose deletes are asked for, and done when told. */
function toSlow(blobs: BlobStore) {
  const asked = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  const slow: BlobStore = {
    ...blobs,
    async delete(key, until) {
      asked.resolve();
      await open.promise;
      return await blobs.delete(key, until);
    },
  };
  return { slow, asked: asked.promise, open: open.resolve };
}

/** Flags the resume and deletes what is due, as every deletion of objects does. */
async function recall(intake: SmallIntake & { id: bigint }, blobs: BlobStore): Promise<void> {
  await intake.change(intake.id, { attachments: [{ ...resume, hasVirus: true }] });
  await deleteDue({ store: intake.store, blobs }, signal());
}

/** Starts one in a process of its own, and returns once its delete is asked for. */
async function start(intake: SmallIntake & { id: bigint }) {
  const { slow, asked, open } = toSlow(intake.blobs);
  const store = openStore({ url: database.url, role: 'deleter', privacyKey: Buffer.from(testPrivacyKey) });
  const deleting = recall({ ...intake, store }, slow)
    // A run that was broken off is repeated by the next.
    .catch((error: unknown) => {
      if (!(error instanceof Trouble)) throw error;
    })
    .finally(() => store[Symbol.asyncDispose]());
  await Promise.race([asked, deleting]);
  return { deleting, open };
}

/** Another person comes with the same bytes, and the flag on the first one is over. */
async function comeAgain(intake: SmallIntake & { id: bigint }): Promise<void> {
  intake.board.add([{ attachments: [resume] }]);
  intake.board.change(intake.id, { attachments: [resume] });
  await intake.syncWithFiles();
}

async function expectStored(intake: SmallIntake): Promise<void> {
  await intake.hasten();
  await intake.runDownloads();
  const states = (await intake.files()).map(({ state }) => state);
  expect(new Set(states)).toEqual(new Set(['stored']));
  expect(await intake.keys()).toEqual([expect.stringContaining(sha256)]);
  expect(await database.query(`SELECT state, delete_token FROM intake.blobs`)).toEqual([
    { state: 'stored', delete_token: null },
  ]);
}

describe('a delete', () => {
  test('that takes long does not take the object of equal bytes that come meanwhile', async () => {
    await using intake = await openOne();
    const { deleting, open } = await start(intake);
    await comeAgain(intake);
    expect((await intake.files()).filter(({ state }) => state === 'stored')).toEqual([]);
    open();
    await deleting;
    await expectStored(intake);
  });

  test('whose process stands still until others have taken over repairs what it deletes then', async () => {
    await using intake = await openOne();
    const { deleting, open } = await start(intake);
    await database.query(`UPDATE intake.blobs SET delete_until = now() - interval '1 second'`);
    await comeAgain(intake);
    expect((await intake.files()).some(({ state }) => state === 'stored')).toBe(true);
    open();
    await deleting;
    await expectStored(intake);
  });

  test('whose process died is finished by the next run', async () => {
    await using intake = await openOne();
    const dying: BlobStore = { ...intake.blobs, delete: () => Promise.reject(new Error('killed')) };
    await expect(recall(intake, dying)).rejects.toThrow('killed');
    // Not before the one that died can no longer come in between.
    await deleteDue(intake, signal());
    expect(await intake.keys()).toHaveLength(1);
    await database.query(`UPDATE intake.blobs SET delete_until = now() - interval '1 second'`);
    await deleteDue(intake, signal());
    expect(await intake.keys()).toEqual([]);
    expect(
      await database.query(`SELECT state FROM intake.blobs WHERE delete_token IS NOT NULL AND deleted_at IS NULL`),
    ).toEqual([]);
  });
});

/** Announces and puts the only resume; what happens around the put is the test's. The process dies before it says what became of it. */
async function putAndDie(intake: SmallIntake, around: (put: () => Promise<unknown>) => Promise<void>): Promise<void> {
  const blobs: BlobStore = {
    ...intake.blobs,
    async put(...args) {
      await around(() => intake.blobs.put(...args));
      throw new Error('killed');
    },
  };
  await intake.runDownloads({ leaseMs: 900, deps: { blobs } });
}

/** Half a minute passes. */
const pass = () =>
  database.query(`UPDATE intake.blobs SET deleted_at = deleted_at - interval '31 seconds',
    intended_at = intended_at - interval '31 seconds', infected_at = infected_at - interval '31 seconds'`);

describe('infected bytes', () => {
  const flag = async (intake: SmallIntake, id: bigint) => {
    await intake.change(id, { attachments: [{ ...resume, hasVirus: true }] });
  };

  test('that were put just before the flag was read are deleted, although their process died', async () => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = await intake.receive([{ attachments: [resume] }]);
    await putAndDie(intake, async (put) => {
      await put();
      await flag(intake, id);
    });
    expect(await intake.file()).toMatchObject({ state: 'infected', sha256 });
    await deleteDue(intake, signal());
    expect(await intake.keys()).toEqual([]);
  });

  test.each(['the flagged file', 'the equal file of another person'])(
    'of %s whose put ends after they were deleted are deleted again within a minute',
    async (whose) => {
      await using intake = await openSmallIntake({ database });
      const [id = 0n] = await intake.receive([{ attachments: [resume] }]);
      if (whose !== 'the flagged file') {
        await intake.runDownloads();
        await intake.receive([{ attachments: [resume] }]);
      }
      await putAndDie(intake, async (put) => {
        await flag(intake, id);
        await deleteDue(intake, signal());
        await put();
      });
      expect(await intake.keys()).toHaveLength(1);
      await pass();
      await deleteDue(intake, signal());
      expect(await intake.keys()).toEqual([]);
    },
  );

  test('whose put took longer than ten minutes, by a process that then died, are deleted again before any verify', async () => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = await intake.receive([{ attachments: [resume] }]);
    await putAndDie(intake, async (put) => {
      await flag(intake, id);
      for (let halfMinutes = 0; halfMinutes < 60; halfMinutes++) {
        await deleteDue(intake, signal());
        await pass();
      }
      await put();
    });
    expect(await intake.keys()).toHaveLength(1);
    // Half an hour later at most: as long again as the put took.
    for (let halfMinutes = 0; halfMinutes < 60; halfMinutes++) await pass();
    await deleteDue(intake, signal());
    expect(await intake.keys()).toEqual([]);
  });
});

test('erased bytes whose put ends after the receipt are deleted again within a minute, and forgotten after a day', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receive([{ attachments: [resume] }]);
  await putAndDie(intake, async (put) => {
    const receipts = await eraseAt(intake, { by: 'application', applicationId: id });
    expect(receipts).toMatchObject([{ closedAt: expect.any(Date) }]);
    await put();
  });
  expect(await intake.keys()).toHaveLength(1);
  await pass();
  await deleteDue(intake, signal());
  expect(await intake.keys()).toEqual([]);
  // A verify leaves the row alone; it finds what was put behind the last delete.
  const key = toBlobKey(intake.board.advertiserId, sha256);
  await intake.blobs.put(key, Buffer.from(content), { sizeBytes: content.length, sha256 }, signal());
  await verifyAt(intake);
  expect([await intake.keys(), await database.query(`SELECT state FROM intake.blobs`)]).toEqual([
    [],
    [{ state: 'deleting' }],
  ]);
  await database.query(
    `UPDATE intake.blobs SET intended_at = intended_at - interval '25 hours', deleted_at = deleted_at - interval '6 hours 1 second'`,
  );
  await deleteDue(intake, signal());
  expect(await database.query(`SELECT 1 FROM intake.blobs`)).toEqual([]);
});

test('an erasure of many files asks the store for no more at once than it deletes in time', async () => {
  await using intake = await openSmallIntake({ database });
  const person = { email: 'zelda@example.com' };
  await intake.receiveWithFiles(
    Array.from({ length: 23 }, (_, at) => ({ ...person, attachments: [{ kind: 'resume', content: `file ${at}` }] })),
  );
  let [asked, most] = [0, 0];
  const blobs: BlobStore = {
    ...intake.blobs,
    async delete(key, until) {
      asked++;
      most = Math.max(most, asked);
      const deleted = await intake.blobs.delete(key, until);
      asked--;
      return deleted;
    },
  };
  const receipts = await eraseAt({ ...intake, blobs }, { by: 'address', ...person });
  expect(receipts).toMatchObject([{ closedAt: expect.any(Date), counts: { files: 23 } }]);
  expect(await intake.keys()).toEqual([]);
  expect(most).toBe(10);
});

// One object that the store refuses to delete, or to show, costs only itself.

const refusal = new Trouble('local', 'AccessDenied', { at: 'storage', status: 200 });

/** The same store, except that it refuses to delete one object, or does not answer a request for it. */
function refusing(blobs: BlobStore, refused: string, isAnswered = true): BlobStore {
  return {
    ...blobs,
    delete: async (key, until) => {
      if (key !== refused) return await blobs.delete(key, until);
      if (!isAnswered) throw new Trouble('local', 'no answer', { at: 'storage' });
      return { keptVersions: 0, refusal };
    },
  };
}

test.for([
  ['refuses to delete', 'AccessDenied', true],
  ['gives no answer about', 'no answer', false],
] as const)('an object that the store %s keeps no other erasure from its receipt', async ([, message, isAnswered]) => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  const ids = intake.board.add([
    { attachments: [{ kind: 'resume', content: 'held' }] },
    { attachments: [{ kind: 'resume', content: 'other' }] },
  ]);
  await intake.syncWithFiles();
  for (const applicationId of ids)
    await intake.store.erasures.begin({ advertiserId, sought: { by: 'application', applicationId }, by: 'retention' });
  // Both are due, as after an earlier run has failed.
  await intake.store.deletions.drop(advertiserId, [sha('held'), sha('other')]);
  const held = toBlobKey(advertiserId, sha('held'));
  const deps = { store: intake.store, blobs: refusing(intake.blobs, held, isAnswered) };
  const open = await intake.store.erasures.loadOpenErasures(advertiserId);
  await expect(finishErasures(deps, open, signal())).rejects.toMatchObject({ message });
  expect(await intake.keys()).toEqual([held]);
  expect(await database.query(`SELECT step FROM intake.erasure_jobs ORDER BY step`)).toEqual([
    { step: 'bytes' },
    { step: 'closed' },
  ]);
});

test('objects that the store refuses for longer than their tokens hold end a run, and are not before others in the next', async () => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  const contents = Array.from({ length: 12 }, (_, nth) => `held ${nth}`);
  await intake.receiveWithFiles(
    [...contents, 'other'].map((content) => ({ attachments: [{ kind: 'resume', content }] })),
  );
  await database.query('DELETE FROM intake.attachments');
  await intake.store.deletions.drop(advertiserId, contents.map(sha));
  const asked: string[] = [];
  const other = toBlobKey(advertiserId, sha('other'));
  const blobs: BlobStore = {
    ...intake.blobs,
    async delete(key, until) {
      if (asked.push(key) > 30) throw new Error('The same objects again and again.');
      if (key === other) return await intake.blobs.delete(key, until);
      await database.query(`UPDATE intake.blobs SET delete_until = now() - interval '1 minute' WHERE key = $1`, [key]);
      return { keptVersions: 0, refusal };
    },
  };
  const run = () => deleteDue({ store: intake.store, blobs }, signal());
  await expect(run()).rejects.toBe(refusal);
  expect(new Set(asked).size).toBe(12);
  await intake.store.deletions.drop(advertiserId, [sha('other')]);
  asked.length = 0;
  await expect(run()).rejects.toBe(refusal);
  expect(asked[0]).toBe(other);
});

test('verify collects orphans also where one object cannot be looked at', async () => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  await intake.receiveWithFiles([
    { attachments: [{ kind: 'resume', content: 'unreadable' }] },
    { attachments: [{ kind: 'resume', content: 'fine' }] },
  ]);
  const orphan = toBlobKey(advertiserId, sha('orphan'));
  await intake.blobs.put(orphan, Buffer.from('orphan'), { sizeBytes: 6, sha256: sha('orphan') }, signal());
  const unreadable = toBlobKey(advertiserId, sha('unreadable'));
  const blobs: BlobStore = {
    ...intake.blobs,
    verify: async (key, ...rest) => {
      if (key === unreadable) throw new Trouble('local', 'AccessDenied', { at: 'storage', status: 403 });
      return await intake.blobs.verify(key, ...rest);
    },
  };
  for (let night = 0; night < 2; night++) {
    await expect(verifyAt({ ...intake, blobs })).rejects.toMatchObject({ message: 'AccessDenied' });
    await database.query(`UPDATE intake.blobs SET intended_at = intended_at - interval '25 hours'`);
  }
  expect(new Set(await intake.keys())).toEqual(new Set([unreadable, toBlobKey(advertiserId, sha('fine'))]));
});

// Bytes that were put without an answer, and that no download remembers: an erasure deletes them, and so does verify after its grace.

/** The same store, except that the answers to its first puts are lost. */
function losingAnswers(blobs: BlobStore, count: number): BlobStore {
  let left = count;
  return {
    ...blobs,
    put: async (...args) => {
      const put = await blobs.put(...args);
      if (left-- > 0) throw new Trouble('local', 'no answer', { at: 'storage' });
      return put;
    },
  };
}

test('bytes of a put without an answer do not survive an erasure where the file was replaced since', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receive([{ attachments: [{ kind: 'resume', content: 'first' }] }]);
  const blobs = losingAnswers(intake.blobs, 1);
  await intake.runDownloads({ deps: { blobs } }).catch(() => {});
  await intake.change(id, { attachments: [{ kind: 'resume', content: 'second' }] });
  await intake.hasten();
  await intake.runDownloads({ deps: { blobs } });
  expect(await intake.keys()).toHaveLength(2);
  await eraseAt(intake, { by: 'application', applicationId: id });
  expect(await intake.keys()).toEqual([]);
});

test('an erasure leaves alone what another download has announced', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receive([
    { attachments: [] },
    { attachments: [{ kind: 'resume', content: 'on its way' }] },
  ]);
  await intake.runDownloads({ deps: { blobs: losingAnswers(intake.blobs, 1) } }).catch(() => {});
  await eraseAt(intake, { by: 'application', applicationId: id });
  expect(await intake.keys()).toEqual([toBlobKey(intake.board.advertiserId, sha('on its way'))]);
});

test('verify collects bytes that nobody names also at an account that is no longer configured', async () => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'kept' }] }]);
  const orphan = { sizeBytes: 6, sha256: sha('orphan') };
  await intake.blobs.put(toBlobKey(advertiserId, orphan.sha256), Buffer.from('orphan'), orphan, signal());
  await database.query(`UPDATE intake.advertisers SET name = 'given up'`);
  const env = toEnvironment(database, intake.board, join(intake.folder, 'blobs'));
  const config = loadConfig(env, { needs: ['source', 'sync', 'blobs', 'privacy'] });
  const task = createMaintenance(config, intake.store, quietLog).find(({ name }) => name === 'verify');
  await adoptStore(intake, signal());
  for (let night = 0; night < 2; night++) {
    await task?.run(signal(), () => {});
    await database.query(`UPDATE intake.blobs SET intended_at = intended_at - interval '25 hours'`);
  }
  await task?.run(signal(), () => {});
  expect(await intake.keys()).toEqual([toBlobKey(advertiserId, sha('kept'))]);
});

// Deleting objects beside equal bytes that come at the same moment: however slow the delete is, and if a process dies or stands still, a file that
// is called stored has its object.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { BlobStore } from '../../src/domain/blob.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import { openStore } from '../../src/store/store.ts';
import { deleteDue } from '../../src/sync/files/delete-objects.ts';
import { verify } from '../../src/sync/files/verify.ts';
import { erase } from '../../src/sync/privacy/erase.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { testPrivacyKey } from '../support/syncing.ts';
import { shareDatabase } from '../support/test-database.ts';

const database = shareDatabase();

const content = 'the bytes of two people';
const sha256 = createHash('sha256').update(content).digest('hex');
const resume = { kind: 'resume', content, hasVirus: false, uploadedAt: 1_700_000_000_000 };
const signal = () => AbortSignal.timeout(600_000);

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
    async delete(keys, until) {
      asked.resolve();
      await open.promise;
      return await blobs.delete(keys, until);
    },
  };
  return { slow, asked: asked.promise, open: open.resolve };
}

/** The three who delete objects. Each runs in a process of its own, whose idle transactions the server ends after 300 ms. */
const deleters = {
  async erasure(intake: SmallIntake & { id: bigint }, blobs: BlobStore) {
    const { advertiserId } = intake.board;
    const sought = { by: 'application', applicationId: intake.id } as const;
    await erase({ store: intake.store, blobs }, { advertiserId, sought, by: 'test', signal: signal() });
  },
  async collection(intake: SmallIntake & { id: bigint }, blobs: BlobStore) {
    await database.query(`DELETE FROM intake.attachments`);
    await database.query(`UPDATE intake.blobs SET intended_at = now() - interval '2 days'`);
    const request = {
      advertisers: [intake.board.advertiserId],
      amount: { share: 0 },
      signal: signal(),
    };
    await verify({ store: intake.store, blobs }, request);
  },
  async recall(intake: SmallIntake & { id: bigint }, blobs: BlobStore) {
    await intake.change(intake.id, { attachments: [{ ...resume, hasVirus: true }] });
    await deleteDue({ store: intake.store, blobs }, signal());
  },
};

const names = Object.keys(deleters) as (keyof typeof deleters)[];

/** Starts one, and returns once its delete is asked for. */
async function start(intake: SmallIntake & { id: bigint }, name: keyof typeof deleters) {
  const { slow, asked, open } = toSlow(intake.blobs);
  const store = openStore({ url: database.url, role: 'deleter', privacyKey: Buffer.from(testPrivacyKey) });
  const deleting = deleters[name]({ ...intake, store }, slow)
    // A run that was broken off is repeated by the next.
    .catch((error: unknown) => {
      if (!(error instanceof Trouble)) throw error;
    })
    .finally(() => store[Symbol.asyncDispose]());
  await Promise.race([asked, deleting]);
  return { deleting, open };
}

/** Another person comes with the same bytes; where the first one was flagged, that is over. */
async function comeAgain(intake: SmallIntake & { id: bigint }, name: keyof typeof deleters): Promise<void> {
  intake.board.add([{ attachments: [resume] }]);
  if (name === 'recall') intake.board.change(intake.id, { attachments: [resume] });
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

for (const name of names)
  describe(name, { tags: name === 'recall' ? [] : ['slow'] }, () => {
    test('that takes long does not take the object of equal bytes that come meanwhile', async () => {
      await using intake = await openOne();
      const { deleting, open } = await start(intake, name);
      await comeAgain(intake, name);
      expect((await intake.files()).filter(({ state }) => state === 'stored')).toEqual([]);
      open();
      await deleting;
      await expectStored(intake);
    });

    test('holds no transaction while it waits for the store', async () => {
      await using intake = await openOne();
      const { deleting, open } = await start(intake, name);
      expect(
        await database.query(
          `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'intake deleter%'
           AND xact_start IS NOT NULL`,
        ),
      ).toEqual([]);
      open();
      await deleting;
    });

    test('whose process stands still until others have taken over repairs what it deletes then', async () => {
      await using intake = await openOne();
      const { deleting, open } = await start(intake, name);
      await database.query(`UPDATE intake.blobs SET delete_until = now() - interval '1 second'`);
      await comeAgain(intake, name);
      expect((await intake.files()).some(({ state }) => state === 'stored')).toBe(true);
      open();
      await deleting;
      await expectStored(intake);
    });

    test('that was not answered and is carried out later takes no object that was put since', async () => {
      await using intake = await openOne();
      const asked: (readonly string[])[] = [];
      const mute: BlobStore = {
        ...intake.blobs,
        async delete(keys) {
          asked.push(keys);
          throw new Trouble('local', 'The store cannot be reached.');
        },
      };
      await expect(deleters[name](intake, mute)).rejects.toThrow('cannot be reached');
      await comeAgain(intake, name);
      expect((await intake.files()).filter(({ state }) => state === 'stored')).toEqual([]);
      expect(asked).toHaveLength(1);
      await intake.blobs.delete(asked[0] ?? [], signal());
      await database.query(`UPDATE intake.blobs SET delete_until = now() - interval '1 second'`);
      await expectStored(intake);
    });

    test('whose process died is finished by the next run', async () => {
      await using intake = await openOne();
      const dying: BlobStore = { ...intake.blobs, delete: () => Promise.reject(new Error('killed')) };
      await expect(deleters[name](intake, dying)).rejects.toThrow('killed');
      // Not before the one that died can no longer come in between.
      await deleteDue(intake, signal());
      expect(await intake.keys()).toHaveLength(1);
      await database.query(`UPDATE intake.blobs SET delete_until = now() - interval '1 second'`);
      await deleteDue(intake, signal());
      expect(await intake.keys()).toEqual([]);
      expect(await database.query(`SELECT state FROM intake.blobs WHERE delete_token IS NOT NULL`)).toEqual([]);
    });
  });

describe('an object that is being deleted by one', () => {
  test('is waited for by another who has to see it gone', async () => {
    await using intake = await openOne();
    const { deleting, open } = await start(intake, 'erasure');
    const { advertiserId } = intake.board;
    const sought = { by: 'application', applicationId: intake.id } as const;
    let isClosed = false;
    const other = erase(intake, { advertiserId, sought, by: 'another', signal: signal() }).then(() => {
      isClosed = true;
    });
    await expect.poll(() => database.query(`SELECT 1 FROM intake.blobs WHERE state = 'deleting'`)).toHaveLength(1);
    expect(isClosed).toBe(false);
    open();
    await Promise.all([deleting, other]);
    expect(await intake.keys()).toEqual([]);
    expect(await database.query(`SELECT 1 FROM intake.blobs`)).toEqual([]);
  });
});

test('a verify does not take a delete from the run that has it in hand, also when the flag was lifted meanwhile', async () => {
  await using intake = await openOne();
  await database.query(`UPDATE intake.blobs SET intended_at = now() - interval '2 days'`);
  const { deleting, open } = await start(intake, 'recall');
  await intake.change(intake.id, { attachments: [resume] });
  const advertisers = [intake.board.advertiserId];
  await verify(intake, { advertisers, amount: { share: 1 }, signal: signal() });
  await intake.runDownloads();
  expect(await intake.file()).toMatchObject({ state: 'pending' });
  open();
  await deleting;
  await expectStored(intake);
});

describe('infected bytes', () => {
  /** Announces and puts the only resume; what happens around the put is the test's. The process dies before it says what became of it. */
  async function putAndDie(intake: SmallIntake, around: (put: () => Promise<unknown>) => Promise<void>): Promise<void> {
    const blobs: BlobStore = {
      ...intake.blobs,
      async put(...args) {
        await around(() => intake.blobs.put(...args));
        throw new Error('killed');
      },
    };
    await intake.runDownloads({ deps: { blobs } });
  }

  const flag = async (intake: SmallIntake, id: bigint) => {
    await intake.change(id, { attachments: [{ ...resume, hasVirus: true }] });
  };

  /** Half a minute passes. */
  const pass = () =>
    database.query(`UPDATE intake.blobs SET deleted_at = deleted_at - interval '31 seconds',
      intended_at = intended_at - interval '31 seconds', infected_at = infected_at - interval '31 seconds'`);

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

  test('are asked for ever more rarely, and no longer than a day', { tags: ['slow'] }, async () => {
    await using intake = await openOne();
    await flag(intake, intake.id);
    let deletes = 0;
    const blobs: BlobStore = {
      ...intake.blobs,
      delete: async (...args) => {
        deletes += 1;
        return await intake.blobs.delete(...args);
      },
    };
    const wait = async (halfMinutes: number) => {
      await deleteDue({ store: intake.store, blobs }, signal());
      await deleteDue({ store: intake.store, blobs }, signal());
      for (let n = 0; n < halfMinutes; n++) await pass();
    };
    for (let n = 0; n < 20; n++) await wait(1);
    expect(deletes).toBeGreaterThan(10);
    expect(deletes).toBeLessThanOrEqual(21);
    for (let n = 0; n < 30; n++) await wait(120);
    expect(deletes).toBeLessThanOrEqual(30);
    expect(await intake.store.deletions.hasDueDeletes()).toBe(false);
  });

  test('of a replaced file that was announced before are not what a flag on its replacement is about', async () => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = await intake.receive([{ attachments: [resume] }, { attachments: [resume] }]);
    const other = { ...resume, content: 'other bytes of the same person', uploadedAt: resume.uploadedAt + 60_000 };
    const blobs: BlobStore = { ...intake.blobs, put: () => Promise.reject(new Trouble('local', 'not now')) };
    await intake.runDownloads({ deps: { blobs } }).catch(() => {});
    await intake.change(id, { attachments: [other] });
    await intake.change(id, { attachments: [{ ...other, hasVirus: true }] });
    await intake.hasten();
    await intake.runDownloads();
    expect((await intake.files()).map(({ state }) => state)).toEqual(['infected', 'stored']);
    expect(await intake.keys()).toHaveLength(1);
  });
});

test('an erasure of many files asks the store for no more at once than it deletes in time', async () => {
  await using intake = await openSmallIntake({ database });
  const person = { email: 'zelda@example.com' };
  await intake.receiveWithFiles(
    Array.from({ length: 23 }, (_, at) => ({ ...person, attachments: [{ kind: 'resume', content: `file ${at}` }] })),
  );
  const asked: number[] = [];
  const blobs: BlobStore = {
    ...intake.blobs,
    delete: (keys, until) => {
      asked.push(keys.length);
      return intake.blobs.delete(keys, until);
    },
  };
  const { advertiserId } = intake.board;
  const sought = { by: 'address', ...person } as const;
  const receipts = await erase({ store: intake.store, blobs }, { advertiserId, sought, by: 'test', signal: signal() });
  expect(receipts).toMatchObject([{ step: 'closed', counts: { files: 23 } }]);
  expect(await intake.keys()).toEqual([]);
  expect(Math.max(...asked)).toBe(10);
});

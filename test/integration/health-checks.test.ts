// What `intake doctor` says of a storage.
import { describe, expect } from 'vitest';
import type { BlobStore } from '../../src/domain/blob.ts';
import { ensureOwned } from '../../src/sync/files/store-owner.ts';
import { checkBlobs } from '../../src/sync/worker/health-checks.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { openSmallIntake } from '../support/small-intake.ts';

const signal = AbortSignal.timeout(600_000);

/** The same store, with some of its methods spoilt; it stays open. */
function spoil(blobs: BlobStore, some: Partial<BlobStore>): BlobStore {
  return { ...blobs, ...some, [Symbol.asyncDispose]: async () => {} };
}

describe('a storage', () => {
  test('is fine when it takes, gives back and deletes; nothing stays or is marked as ours', async ({ database }) => {
    await using intake = await openSmallIntake({ database });
    const [finding] = await checkBlobs(intake.store, async () => spoil(intake.blobs, {}), signal);
    expect(finding).toMatchObject({
      check: 'storage',
      ok: true,
      detail: expect.stringContaining('put, get and delete'),
    });
    expect(await intake.keys()).toEqual([]);
    expect([await intake.blobs.loadIdentity(signal), await intake.store.blobStore.loadRecordedStore()]).toEqual([
      null,
      null,
    ]);
  });

  test.for<[string, Partial<BlobStore>, RegExp]>([
    ['gives back other bytes', { get: () => ReadableStream.from([Buffer.from('other')]) }, /other bytes/],
    ['does not delete', { delete: async () => ({ keptVersions: 0, refusal: null }) }, /still holds/],
    ['is nearly full', { freeBytes: async () => 1_000 }, /nearly full/],
  ])('that %s is not', async ([, some, words], { database }) => {
    await using intake = await openSmallIntake({ database });
    const [finding] = await checkBlobs(intake.store, async () => spoil(intake.blobs, some), signal);
    expect(finding).toMatchObject({ ok: false, detail: expect.stringMatching(words) });
  });

  test('that is another than the one in use is not touched', async ({ database }) => {
    await using intake = await openSmallIntake({ database });
    await intake.blobs.replaceIdentity(null, 'the id of another', signal);
    const put = () => Promise.reject(new Error('It was touched.'));
    const [finding] = await checkBlobs(intake.store, async () => spoil(intake.blobs, { put }), signal);
    expect(finding).toMatchObject({ ok: false, detail: expect.stringContaining('belongs to another database') });
  });
});

test("a storage that names an owner is not touched while this database may be another's", async ({ database }) => {
  await using intake = await openSmallIntake({ database });
  await ensureOwned(intake, signal);
  const put = () => Promise.reject(new Error('It was touched.'));
  const [finding] = await checkBlobs(null, async () => spoil(intake.blobs, { put }), signal);
  expect(finding).toMatchObject({ ok: false, trouble: { name: 'WrongStore' } });
  expect(finding?.detail).toContain('belongs to the database');
});

describe('a storage that keeps what is deleted', () => {
  const runChecks = async (database: TestDatabase, some: Partial<BlobStore>) => {
    await using intake = await openSmallIntake({ database });
    return await checkBlobs(intake.store, async () => spoil(intake.blobs, some), signal);
  };
  const keeping = (versions: boolean, locks: boolean) => ({ loadDeletePolicy: async () => ({ versions, locks }) });

  test('is fine when Intake may delete the versions as well', async ({ database }) => {
    expect(await runChecks(database, keeping(true, false))).toEqual([
      expect.objectContaining({ check: 'storage', ok: true }),
      { check: 'erasure', ok: true, detail: expect.stringContaining('deletes them with their files') },
    ]);
  });

  test('is not when versions stay, or when objects can be locked: nothing could be erased', async ({ database }) => {
    const stays: Partial<BlobStore> = {
      ...keeping(true, false),
      delete: async () => ({ keptVersions: 1, refusal: null }),
    };
    await using intake = await openSmallIntake({ database });
    const verify: BlobStore['verify'] = async () => 'missing';
    const findings = await checkBlobs(intake.store, async () => spoil(intake.blobs, { ...stays, verify }), signal);
    expect(findings[1]).toMatchObject({ check: 'erasure', ok: false, detail: expect.stringContaining('versions') });
    const locked = await runChecks(database, keeping(true, true));
    expect(locked[1]).toMatchObject({ check: 'erasure', ok: false, detail: expect.stringContaining('object lock') });
    expect(locked[1]?.trouble).toMatchObject({ name: 'SettingTrouble' });
  });
});

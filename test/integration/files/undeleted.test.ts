// Files that were to be deleted and are still there: the status names the cause from the first failure on, and a receipt what stays.
import { describe, expect, test } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { BlobStore } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { deleteDue } from '../../../src/sync/files/delete-objects.ts';
import { emptyDatabase, shareDatabase } from '../../support/database/test-database.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { openSettings, spawnWorker } from '../../support/processes/worker.ts';
import { eraseAt, loadProblems, openSmallIntake, type SmallIntake, verifyAt } from '../../support/small-intake.ts';
import { openStrictS3 } from '../../support/stores/strict-s3.ts';
import { until } from '../../support/suite/until.ts';

const database = shareDatabase();

const resume = { kind: 'resume', content: 'bytes of one person', hasVirus: null, uploadedAt: 1_700_000_000_000 };

/** One person's stored resume, and the erasure of it with a storage that behaves so. */
async function openOne() {
  const intake = await openSmallIntake({ database });
  const [applicationId = 0n] = intake.board.add([{ attachments: [resume] }]);
  await intake.sweep();
  await intake.runDownloads();
  const eraseWith = (some: Partial<BlobStore>) =>
    eraseAt({ ...intake, blobs: { ...intake.blobs, ...some } }, { by: 'application', applicationId });
  /** Deletes, and says that the storage keeps two versions of everything. */
  const keeping: BlobStore['delete'] = async (key, signal) => ({
    ...(await intake.blobs.delete(key, signal)),
    keptVersions: 2,
  });
  return Object.assign(intake, { eraseWith, keeping, applicationId });
}

const loadErasureProblems = async (intake: SmallIntake) =>
  (await loadProblems(intake)).map(({ what }) => what).filter((what) => /erasure/i.test(what));

describe('an erasure', () => {
  test('whose files the storage will not delete is a problem at once, with the cause, until they are deleted', async () => {
    await using intake = await openOne();
    const cause = 'The store at s3.example.com:443 failed (MissingContentMD5, 400).';
    // Without a status: it is not asked again within the run.
    const refused = intake.eraseWith({ delete: () => Promise.reject(new Trouble('local', cause, { at: 'storage' })) });
    await expect(refused).rejects.toThrow(cause);
    expect(await loadErasureProblems(intake)).toEqual([
      expect.stringMatching(/not deleted: The store at .*MissingContentMD5/),
    ]);
    // The token of the delete that failed has to lapse before another may begin.
    await database.query(`UPDATE intake.blobs SET delete_until = now() WHERE delete_until IS NOT NULL`);
    await intake.eraseWith({});
    expect(await loadErasureProblems(intake)).toEqual([]);
    expect(await intake.keys()).toEqual([]);
  });

  test('counts in its receipt the versions that the storage keeps', async () => {
    await using intake = await openOne();
    const [receipt] = await intake.eraseWith({ delete: intake.keeping });
    expect(receipt).toMatchObject({ closedAt: expect.any(Date), counts: { files: 1, keptVersions: 2 } });
  });
});

test('unneeded files of which the storage keeps versions are a problem until those are gone', async () => {
  await using intake = await openOne();
  const keeping = { ...intake.blobs, delete: intake.keeping };
  // As the resume of a prefill that lapsed, or an orphan.
  await database.query(`DELETE FROM intake.attachments`);
  await database.query(`UPDATE intake.blobs SET intended_at = now() - interval '2 days'`);
  const check = (blobs: BlobStore) => verifyAt({ ...intake, blobs }, { amount: { share: 0 } });
  for (const time of [1, 2]) {
    await check(keeping);
    expect({ time, problems: await loadProblems(intake) }).toMatchObject({
      time,
      problems: [{ what: expect.stringContaining('1 file is deleted, but the storage keeps versions') }],
    });
    expect(await intake.store.deletions.hasDueDeletes()).toBe(false);
  }
  await check(intake.blobs);
  expect(await loadProblems(intake)).toEqual([]);
  expect(await database.query(`SELECT 1 FROM intake.blobs`)).toEqual([]);
});

describe('infected files', () => {
  test('of which the storage keeps versions are a problem until the versions are gone', async () => {
    await using intake = await openOne();
    intake.board.change(intake.applicationId, { attachments: [{ ...resume, hasVirus: true }] });
    await intake.sweep(true);
    const keeping = { ...intake.blobs, delete: intake.keeping };
    await deleteDue({ store: intake.store, blobs: keeping }, AbortSignal.timeout(600_000));
    expect(await loadProblems(intake)).toMatchObject([{ what: expect.stringContaining('1 file is deleted, but') }]);
    await verifyAt(intake, { amount: { share: 0 } });
    expect(await loadProblems(intake)).toEqual([]);
  });

  test('that the storage will not delete are a problem of every status', { tags: ['slow'] }, async () => {
    await emptyDatabase(database);
    await using s3 = await openStrictS3();
    await using board = await openSandbox({ applications: 0 });
    const [id = 0n] = board.add([{ attachments: [resume] }]);
    await using settings = await openSettings(database, board, {
      ...s3.settings,
      // Each costs some forty requests.
      RECHECK_SCHEDULE: '*/4 * * * * *',
    });
    await using _worker = await spawnWorker(settings.env);
    const isHeld = () => [...s3.objects.keys()].some((key) => /[0-9a-f]{64}$/.test(key));
    await until(isHeld);
    s3.fail('DeleteObject', { kind: 'answer', status: 403, code: 'AccessDenied' }, 1_000);
    board.change(id, { attachments: [{ ...resume, hasVirus: true }] });
    const told = async () => {
      const { stdout } = await callIntake(['status', '--json'], settings.env);
      const { problems } = JSON.parse(stdout) as { problems: { what: string }[] };
      return problems
        .map(({ what }) => what)
        .filter((what) => what.startsWith('Deletion has been waiting for the storage since'));
    };
    await until(async () => (await told()).length > 0);
    expect((await told())[0]).toMatch(/infected, erased or unused files are still there\. .*AccessDenied/i);
    s3.clearFaults();
    await until(async () => {
      // The token of a delete that failed has to lapse before another may begin.
      await database.query(`UPDATE intake.blobs SET delete_until = now() WHERE delete_until IS NOT NULL`);
      return !isHeld() && (await told()).length === 0;
    });
  });
});

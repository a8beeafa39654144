// Bytes that were put without an answer, and that no download remembers: an erasure deletes them, and so does verify after its grace.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMaintenance } from '../../src/app/maintenance.ts';
import { loadConfig } from '../../src/config.ts';
import { type BlobStore, toBlobKey } from '../../src/domain/blob.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import { adoptStore } from '../../src/sync/files/store-owner.ts';
import { erase } from '../../src/sync/privacy/erase.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { toEnvironment } from '../support/syncing.ts';
import { shareDatabase } from '../support/test-database.ts';

const database = shareDatabase();

const signal = () => AbortSignal.timeout(600_000);
const sha = (text: string) => createHash('sha256').update(text).digest('hex');

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

async function eraseOnly({ board, store, blobs }: SmallIntake, applicationId: bigint): Promise<void> {
  const { advertiserId } = board;
  const sought = { by: 'application', applicationId } as const;
  const receipts = await erase({ store, blobs }, { advertiserId, sought, by: 'tests', signal: signal() });
  expect(receipts).toMatchObject([{ step: 'closed' }]);
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
  await eraseOnly(intake, id);
  expect(await intake.keys()).toEqual([]);
});

test('nor where the source took the file away since', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receive([{ attachments: [{ kind: 'resume', content: 'only' }] }]);
  await intake.runDownloads({ deps: { blobs: losingAnswers(intake.blobs, 1) } }).catch(() => {});
  intake.board.fault({ kind: 'fail', status: 410, on: 'resume', times: null, applicationId: id });
  await intake.hasten();
  await intake.runDownloads();
  expect((await intake.file()).state).toBe('missing');
  expect(await intake.keys()).toHaveLength(1);
  await eraseOnly(intake, id);
  expect(await intake.keys()).toEqual([]);
});

test('an erasure leaves alone what another download has announced', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receive([
    { attachments: [] },
    { attachments: [{ kind: 'resume', content: 'on its way' }] },
  ]);
  await intake.runDownloads({ deps: { blobs: losingAnswers(intake.blobs, 1) } }).catch(() => {});
  await eraseOnly(intake, id);
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
  const config = loadConfig(env, { needs: ['source', 'sync', 'blobs'] });
  const task = createMaintenance(config, intake.store).find(({ name }) => name === 'verify');
  await adoptStore(intake, signal());
  for (let night = 0; night < 2; night++) {
    await task?.run(signal(), () => {});
    await database.query(`UPDATE intake.blobs SET intended_at = intended_at - interval '25 hours'`);
  }
  await task?.run(signal(), () => {});
  expect(await intake.keys()).toEqual([toBlobKey(advertiserId, sha('kept'))]);
});

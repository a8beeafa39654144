// One object that the blob store refuses to delete, or to show, costs only itself: everybody else's bytes go all the same.
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type BlobStore, toBlobKey } from '../../src/domain/blob.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import { deleteDue } from '../../src/sync/files/delete-objects.ts';
import { verify } from '../../src/sync/files/verify.ts';
import { erase, finishErasures } from '../../src/sync/privacy/erase.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';

const signal = () => AbortSignal.timeout(600_000);
const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const refusal = new Trouble('local', 'AccessDenied', { at: 'storage', status: 200 });

/** The same store, except that it refuses to delete one object. */
function refusing(blobs: BlobStore, refused: string): BlobStore {
  return {
    ...blobs,
    delete: async (keys, until) => {
      const deleted = await blobs.delete(
        keys.filter((key) => key !== refused),
        until,
      );
      return { ...deleted, refused: keys.includes(refused) ? [{ key: refused, trouble: refusal }] : [] };
    },
  };
}

test('one erasure that cannot be finished keeps no other from its receipt', async ({ database }) => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  const ids = intake.board.add([
    { attachments: [{ kind: 'resume', content: 'held' }] },
    { attachments: [{ kind: 'resume', content: 'other' }] },
  ]);
  await intake.syncWithFiles();
  for (const applicationId of ids)
    await intake.store.erasures.begin({ advertiserId, sought: { by: 'application', applicationId }, by: 'retention' });
  await database.query(`UPDATE intake.erasure_jobs SET check_again_at = now() - interval '1 second'`);
  const held = toBlobKey(advertiserId, sha('held'));
  const deps = { store: intake.store, blobs: refusing(intake.blobs, held) };
  await expect(finishErasures(deps, { advertisers: [advertiserId], signal: signal() })).rejects.toMatchObject({
    message: 'AccessDenied',
  });
  expect(await intake.keys()).toEqual([held]);
  expect(await database.query(`SELECT step FROM intake.erasure_jobs ORDER BY step`)).toEqual([
    { step: 'bytes' },
    { step: 'closed' },
  ]);
});

test('a resume of someone else that cannot be deleted keeps nobody from their receipt', async ({ database }) => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  const [applicationId = 0n] = await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'other' }] }]);
  const held = await lendResume(intake, 'held@example.com');
  await database.query(
    `UPDATE intake.prefills SET expires_at = now() - interval '1 hour', prefilled_at = now() - interval '2 hours', created_at = now() - interval '2 hours'`,
  );
  await intake.store.prefills.lapse();
  const deps = { store: intake.store, blobs: refusing(intake.blobs, held) };
  const request = {
    advertiserId,
    sought: { by: 'application', applicationId },
    by: 'tests',
    signal: signal(),
  } as const;
  expect(await erase(deps, request)).toMatchObject([{ step: 'closed' }]);
});

test('the own resume of an erased person that cannot be deleted leaves the receipt open', async ({ database }) => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  const held = await lendResume(intake, 'zelda@example.com');
  const deps = { store: intake.store, blobs: refusing(intake.blobs, held) };
  const sought = { by: 'address', email: 'zelda@example.com' } as const;
  await expect(erase(deps, { advertiserId, sought, by: 'tests', signal: signal() })).rejects.toMatchObject({
    message: 'AccessDenied',
  });
});

test('infected bytes that the file system does not delete keep no others', async ({ database }) => {
  await using intake = await openSmallIntake({ database });
  const contents = Array.from({ length: 6 }, (_, nth) => `virus ${nth}`);
  const ids = intake.board.add(contents.map((content) => ({ attachments: [{ kind: 'resume', content }] })));
  await intake.syncWithFiles();
  for (const [nth, id] of ids.entries())
    await intake.change(id, { attachments: [{ kind: 'resume', content: contents[nth] as string, hasVirus: true }] });
  const [first] = await database.query<{ key: string }>(
    `SELECT key FROM intake.blobs WHERE state = 'infected' LIMIT 1`,
  );
  const path = join(intake.folder, 'blobs', first?.key ?? '');
  // A folder in place of the file is not deleted.
  rmSync(path);
  mkdirSync(path);
  await expect(deleteDue(intake, signal())).rejects.toBeInstanceOf(Trouble);
  expect(await intake.keys()).toEqual([]);
  expect(await database.query(`SELECT 1 FROM intake.blobs WHERE deleted_at IS NOT NULL`)).toHaveLength(5);
});

test('verify collects orphans also where one object cannot be looked at', async ({ database }) => {
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
  const request = { advertisers: [advertiserId], amount: { share: 1 }, signal: signal() };
  for (let night = 0; night < 2; night++) {
    await expect(verify({ store: intake.store, blobs }, request)).rejects.toMatchObject({ message: 'AccessDenied' });
    await database.query(`UPDATE intake.blobs SET intended_at = intended_at - interval '25 hours'`);
  }
  expect(new Set(await intake.keys())).toEqual(new Set([unreadable, toBlobKey(advertiserId, sha('fine'))]));
});

test('verify stops where the store answers nothing at all', async ({ database }) => {
  await using intake = await openSmallIntake({ database });
  const { advertiserId } = intake.board;
  await intake.receiveWithFiles(
    Array.from({ length: 40 }, (_, nth) => ({ attachments: [{ kind: 'resume', content: `file ${nth}` }] })),
  );
  let asked = 0;
  const fail = async () => {
    asked += 1;
    throw new Trouble('local', 'no answer', { at: 'storage' });
  };
  const blobs: BlobStore = { ...intake.blobs, verify: fail, loadIdentity: fail };
  const request = {
    advertisers: [advertiserId],
    amount: { share: 1 },
    parallel: 2,
    signal: signal(),
  };
  await expect(verify({ store: intake.store, blobs }, request)).rejects.toMatchObject({ message: 'no answer' });
  expect(asked).toBeLessThan(12);
});

/** A resume that a candidate lent to a form; gives its key. */
async function lendResume({ board, store, blobs }: SmallIntake, email: string): Promise<string> {
  const { advertiserId } = board;
  const prefillId = '00000000-0000-4000-8000-000000000001';
  const secret = createHash('sha256').update('secret').digest();
  const address = 'https://careers.example/apply';
  await store.prefills.begin({
    ...{ advertiserId, prefillId, stateHash: secret, bindingHash: secret },
    request: {
      ...{ advertiserId, formUrl: address, returnUrl: address },
      ...{ positionTitle: null, positionUri: null, countryCode: null, postalCode: null },
    },
  });
  const facts = { sizeBytes: 4, sha256: sha('lent') };
  await store.prefills.keepProfile({
    ...{ advertiserId, prefillId, ttlMs: 60_000 },
    profile: {
      ...{ raw: JSON.stringify({ email }), rawText: null, notes: [], firstName: null, lastName: null, phone: null },
      ...{ email, emails: [email], accountIds: [], named: { emails: [], accountIds: [] }, resumeId: null },
    },
    resume: { ...facts, fileName: 'cv.pdf', contentType: 'application/pdf' },
  });
  const key = toBlobKey(advertiserId, facts.sha256);
  await store.prefills.announceResume(advertiserId, facts);
  await blobs.put(key, Buffer.from('lent'), facts, signal());
  await store.prefills.offer({ advertiserId, prefillId }, Buffer.from(prefillId), null);
  return key;
}

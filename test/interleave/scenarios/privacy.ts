// Erasure while other clients write data of the same person (P17).
import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import type { ErasureJob, Sought } from '../../../src/domain/erasure.ts';
import { insertPrefill, keepProfile, offerPrefill, takeProfile } from '../../../src/store/prefill/prefills.ts';
import { beginErasure, closeErasure } from '../../../src/store/privacy/erasure-jobs.ts';
import { deleteUnneeded } from '../../../src/sync/files/delete-objects.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import type { Actor } from '../schedule.ts';
import type { Scenarios, Stage } from '../stage.ts';
import {
  addBlob,
  checkEvents,
  claimAll,
  commit,
  deleteLater,
  fetch,
  lapses,
  retryWaiting,
  toStored,
} from './clients.ts';
import { openLane, privacyKey } from './lanes.ts';
import { alone, Busy, content, never, sha256, stopWhenBusy, toBlobs, toFiles } from './objects.ts';

const email = 'person1@example.com';
const byAddress: Sought = { by: 'address', email };
const byId: Sought = { by: 'application', applicationId: 1n };

/** Creates an advertiser with one stored application and a leased live lane. */
export async function openPerson(stage: Stage, facts: Parameters<typeof anApplication>[1] = { attachments: [] }) {
  const { advertiserId, name, lease } = await openLane(stage);
  await commitPage(stage.direct, privacyKey, aPage(lease, [anApplication(1, { email, ...facts })], { advertiserId }));
  return { advertiserId, name, lease };
}

/** Checks that no table with personal data contains the person. */
export async function checkErased(stage: Stage, advertiserId: bigint): Promise<void> {
  const [row] = await stage.query<{ found: string | null }>(
    `SELECT concat_ws(', ',
       (SELECT 'applications' FROM intake.applications WHERE advertiser_id = $1 AND (raw IS NOT NULL OR email IS NOT NULL OR erased_at IS NULL) LIMIT 1),
       (SELECT 'attachments' FROM intake.attachments WHERE advertiser_id = $1 LIMIT 1),
       (SELECT 'downloads' FROM intake.downloads WHERE advertiser_id = $1 LIMIT 1),
       (SELECT 'info' FROM intake.primary_job_seeking_info WHERE advertiser_id = $1 LIMIT 1),
       (SELECT 'quarantine' FROM intake.quarantine WHERE advertiser_id = $1 LIMIT 1),
       (SELECT 'prefills' FROM intake.prefills WHERE advertiser_id = $1 AND (profile IS NOT NULL OR email IS NOT NULL OR outcome = 'erased' AND handle_hash IS NOT NULL) LIMIT 1)) AS found`,
    [advertiserId],
  );
  if (row?.found) throw new Error(`P17: an erased person is in ${row.found}.`);
  await checkEvents({ stage, advertiserId });
}

const erase = (stage: Stage, advertiserId: bigint, sought: Sought) => async (actor: Actor) => {
  const job = await beginErasure(stage.database(actor.name), privacyKey, { advertiserId, sought, by: 'test' });
  if (job === null) throw new Error('Nobody was found to erase.');
};

/** Erases the first person. */
export const eraseFirst = (stage: Stage, advertiserId: bigint) => erase(stage, advertiserId, byId);

export const privacyScenarios = {
  /** A page that was read before the erasure writes the person again, with changed fields. */
  'erase-page': (stage) => ({
    promise: 'an erased person does not come back with a page (P17)',
    async open() {
      const { advertiserId, lease } = await openPerson(stage);
      const page = aPage(lease, [anApplication(1, { email, lastName: 'Other' })], { advertiserId });
      return {
        programs: { page: commit(stage, page), erase: eraseFirst(stage, advertiserId) },
        mortal: ['page'],
        check: () => checkErased(stage, advertiserId),
      };
    },
  }),

  /** A page with an unreadable element that contains the person's address, and a replay of the same element. */
  'erase-quarantine': (stage) => ({
    promise: 'an erased person comes back neither with an element that cannot be read nor with its replay (P17)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openPerson(stage);
      const raw = JSON.stringify({ Email: email });
      const reject = { reason: 'no id', raw, rawText: null, identity: 'e1', applicant: null, members: {} };
      const seen = (sweepId: bigint) => aPage(lease, [], { advertiserId, rejects: [reject], sweepId });
      await commitPage(stage.direct, privacyKey, seen(1n));
      const [element] = await stage.directStore.quarantine.loadQuarantine(advertiserId, 1);
      if (!element) throw new Error('Nothing is in quarantine.');
      const read = { ...aPage(lease, [anApplication(2, { email, attachments: [] })], { advertiserId, seq: -1n }) };
      const replayed = [{ id: element.id, applicationId: 2n }];
      return {
        programs: {
          page: commit(stage, seen(2n)),
          replay: commit(stage, { ...read, replayed }),
          erase: erase(stage, advertiserId, byAddress),
        },
        check: () => checkErased(stage, advertiserId),
      };
    },
  }),

  /** An operator retries the files of a person who is erased. */
  'erase-retry': (stage) => ({
    promise: 'the last event of an erased application is its erasure (P17, P26)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await openPerson(stage, { attachments: [anAttachment('resume')] });
      return {
        programs: { retry: retryWaiting({ stage, advertiserId }), erase: eraseFirst(stage, advertiserId) },
        mortal: ['retry'],
        check: () => checkErased(stage, advertiserId),
      };
    },
  }),

  /** A download of the person's file completes while the person is erased. */
  'erase-file': (stage) => ({
    promise: 'nothing of an erased person is left, neither rows nor bytes (P17)',
    async open() {
      const attachments = [anAttachment('resume', { sizeBytes: content.length })];
      const { advertiserId } = await openPerson(stage, { attachments });
      const files = toFiles({ stage, advertiserId });
      // The same bytes were there before, and nothing refers to them any more.
      await addBlob(files, `intended_at = now() - interval '2 days'`);
      files.objects.clear();
      return {
        programs: {
          run: fetch(files),
          erase: async (actor) => {
            const sought = { advertiserId, sought: byId, by: 'test' };
            const job = await beginErasure(stage.database(actor.name), privacyKey, sought);
            const deps = { store: stopWhenBusy(stage.store(actor.name)), blobs: toBlobs(actor, files.objects) };
            try {
              await deleteUnneeded(deps, advertiserId, job?.hashes ?? [], never);
              if (job) await deps.store.erasures.closeErasure(job, { shared: 0, keptVersions: 0 });
            } catch (error) {
              if (!(error instanceof Busy)) throw error;
            }
          },
        },
        mortal: ['run', 'erase'],
        lapses,
        async check({ lines }) {
          if (lines.some(({ client, text }) => client === 'erase' && text === 'dies')) return;
          // Any process continues the erasure later, when the tokens of dead processes have lapsed.
          await stage.query(
            `UPDATE intake.blobs SET delete_until = now() - interval '1 second' WHERE advertiser_id = $1`,
            [advertiserId],
          );
          const store = stage.directStore;
          for (const job of await store.erasures.loadOpenErasures(advertiserId)) {
            await deleteUnneeded(
              { store, blobs: toBlobs(alone, files.objects) },
              advertiserId,
              job.hashes ?? [],
              never,
            );
          }
          await checkErased(stage, advertiserId);
          await deleteLater(files);
          const named = await stage.query(`SELECT 1 FROM intake.blobs WHERE advertiser_id = $1`, [advertiserId]);
          if (files.objects.size > named.length) throw new Error('P17: nobody knows of bytes of an erased person.');
          if (files.objects.size > 0 && !lines.some(({ text }) => text === 'dies'))
            throw new Error('P17: bytes of an erased person are left.');
        },
      };
    },
  }),

  /** A candidate returns with a profile while an erasure of the same address runs; two clients try to redeem the profile. */
  'erase-prefill': (stage) => ({
    promise: 'an erased person is in no prefill, and a profile is handed out once (P17, P20)',
    async open() {
      const { advertiserId } = await openPerson(stage);
      const key = { advertiserId, prefillId: randomUUID() };
      const site = 'https://careers.example.com/apply';
      const request = {
        ...{ advertiserId, formUrl: site, returnUrl: site },
        ...{ positionTitle: null, positionUri: null, countryCode: null, postalCode: null },
      };
      const secret = (text: string) => hash('sha256', `${text} ${key.prefillId}`, 'buffer');
      const handleHash = secret('handle');
      const hashes = { stateHash: secret('state'), bindingHash: secret('browser') };
      await insertPrefill(stage.direct, { ...key, request, ...hashes });
      const profile = {
        ...{ raw: JSON.stringify({ email }), rawText: null, notes: [] },
        ...{ firstName: 'Ada', lastName: 'One', email, phone: null },
        ...{ emails: [email], accountIds: [], named: { emails: [], accountIds: [] }, resumeId: null },
      };
      let redeemed = 0;
      const redeem = async (actor: Actor) => {
        if (await takeProfile(stage.database(actor.name), { advertiserId, handleHash })) redeemed++;
      };
      return {
        programs: {
          visit: async (actor) => {
            const db = stage.database(actor.name);
            const kept = { ...key, profile, resume: { reason: 'none' }, ttlMs: 86_400_000 };
            if (!(await keepProfile(db, privacyKey, kept))) return;
            await offerPrefill(db, key, handleHash, null);
            await redeem(actor);
          },
          site: redeem,
          erase: erase(stage, advertiserId, byAddress),
        },
        mortal: ['visit'],
        async check() {
          if (redeemed > 1) throw new Error('P20: a profile was handed out twice.');
          await checkErased(stage, advertiserId);
        },
      };
    },
  }),

  /** A stopping run releases its claims while their person is erased. */
  'erase-release': (stage) => ({
    promise: 'nobody fails, and nothing of an erased person is left (P17)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const attachments = [anAttachment('resume', { sizeBytes: content.length })];
      const applications = [1, 2, 3].map((id) => anApplication(id, { email, attachments }));
      await commitPage(stage.direct, privacyKey, aPage(lease, applications, { advertiserId }));
      const claimed = await claimAll({ stage, advertiserId });
      const { blob } = toStored(sha256);
      return {
        programs: {
          // Holds a lock on the second file, so that the others stop midway: the rows that one statement locks are not separate steps.
          second: (actor) => stage.store(actor.name).blobs.announce(claimed(2), blob),
          erase: erase(stage, advertiserId, byAddress),
          release: (actor) => stage.store(actor.name).downloads.releaseDownloads([claimed(3), claimed(2), claimed(1)]),
        },
        mortal: ['release'],
        commitsApart: true,
        check: () => checkErased(stage, advertiserId),
      };
    },
  }),

  /** Two processes continue the same erasure, each from the job as it loaded it. */
  'erase-twice': (stage) => ({
    promise: 'an erasure is closed once, and stays closed and empty (P17)',
    async open() {
      const { advertiserId } = await openPerson(stage);
      const job = await beginErasure(stage.direct, privacyKey, { advertiserId, by: 'test', sought: byId });
      if (!job) throw new Error('Nobody was found to erase.');
      const receipts: ErasureJob[] = [];
      const finish = (shared: number) => async (actor: Actor) => {
        receipts.push(await closeErasure(stage.database(actor.name), job, { shared, keptVersions: 0 }));
      };
      return {
        programs: { a: finish(1), b: finish(2) },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          for (const { applicationIds, hashes, closedAt, counts } of receipts) {
            assert.deepEqual([applicationIds, hashes], [null, null], 'P17: a receipt names applications or files');
            const first = [receipts[0]?.closedAt, receipts[0]?.counts];
            assert.deepEqual([closedAt, counts], first, 'P17: an erasure was closed twice');
          }
        },
      };
    },
  }),
} satisfies Scenarios;

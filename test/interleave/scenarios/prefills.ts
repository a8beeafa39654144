// A candidate's browser calls back twice, and a resume is uploaded while its person is erased.
import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import { stateLifetimeMs, toTicket } from '../../../src/domain/prefill.ts';
import type { PrefillSource } from '../../../src/source/prefill.ts';
import { insertPrefill } from '../../../src/store/prefill/prefills.ts';
import { beginErasure } from '../../../src/store/privacy/erasure-jobs.ts';
import { deleteDue, deleteUnneeded } from '../../../src/sync/files/delete-objects.ts';
import { createSlots } from '../../../src/sync/limits.ts';
import { createSecret, finishPrefill } from '../../../src/sync/prefill.ts';
import type { Actor } from '../schedule.ts';
import type { Scenarios, Stage } from '../stage.ts';
import { addBlob, deleteLater, failOnWaiting, openShown, setStored, shown, unqueue, verify } from './clients.ts';
import { privacyKey } from './lanes.ts';
import { alone, content, never, type Objects, sha256, spool, toBlobs, toFiles } from './objects.ts';
import { checkErased, openPerson } from './privacy.ts';

const email = 'person1@example.com';
const page = 'https://careers.example.com/apply';

/**
 * Starts a prefill whose profile can be redeemed for that long. `comeBack` runs the product's callback, `sessions` counts the exchanged
 * codes.
 */
async function openVisit(
  stage: Stage,
  { advertiserId, name }: { advertiserId: bigint; name: string },
  objects: Objects = new Set<string>(),
  ttlMs = 86_400_000,
) {
  const state = toTicket(advertiserId, createSecret());
  const binding = 'browser';
  const toHash = (text: string) => hash('sha256', text, 'buffer');
  const nothing = { positionTitle: null, positionUri: null, countryCode: null, postalCode: null };
  await insertPrefill(stage.direct, {
    ...{ advertiserId, prefillId: randomUUID(), stateHash: toHash(state), bindingHash: toHash(binding) },
    request: { advertiserId, formUrl: page, returnUrl: page, ...nothing },
  });
  const visit = { sessions: 0, objects, comeBack };
  const source: Pick<PrefillSource, 'openSession'> = {
    async openSession() {
      visit.sessions++;
      return {
        loadProfile: async () => ({
          ...{ raw: JSON.stringify({ email }), rawText: null, notes: [], firstName: 'Ada', lastName: 'One', email },
          ...{
            phone: null,
            emails: [email],
            accountIds: [],
            named: { emails: [], accountIds: [] },
            resumeId: 'resume',
          },
        }),
        loadResume: async () => ({
          ...{ body: content, sizeBytes: content.length, sha256, fileName: 'cv.txt', contentType: 'text/plain' },
          async [Symbol.asyncDispose]() {},
        }),
      };
    },
  };
  async function comeBack(actor: Actor, store = stage.store(actor.name)) {
    // The time limit of the callback: the first answer that equal bytes are being deleted ends the wait for them.
    const limit = new AbortController();
    const announceResume: typeof store.prefills.announceResume = async (...args) => {
      const answer = await store.prefills.announceResume(...args);
      if (answer === 'deleting') limit.abort();
      return answer;
    };
    const deps = {
      ...{
        store: { ...store, prefills: { ...store.prefills, announceResume } },
        blobs: toBlobs(actor, visit.objects),
        ttlMs,
        onEnd: () => {},
      },
      accounts: new Map([[name, { source: source as PrefillSource, returnUrls: [], bearerToken: () => 'key' }]]),
      slots: createSlots(1),
      spool,
    };
    await finishPrefill(deps, { state, binding, answer: { code: 'code' }, signal: limit.signal });
  }
  return visit;
}

export const prefillScenarios = {
  /** A browser calls back twice with one state, as after a reload. */
  'state-twice': (stage) => ({
    promise: 'a state is taken once, so that its code is exchanged once (P20)',
    async open() {
      const visit = await openVisit(stage, await stage.openAdvertiser());
      return {
        programs: { first: visit.comeBack, second: visit.comeBack },
        commitsApart: true,
        async check() {
          assert.equal(visit.sessions, 1, 'P20: a state was taken twice');
        },
      };
    },
  }),

  /** A browser calls back twice while the state expires. */
  'state-late': (stage) => ({
    promise: 'a prefill has one end: a profile that is kept is not ended, and one that has ended is not kept (P20)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const visit = await openVisit(stage, { advertiserId, name });
      return {
        programs: { first: visit.comeBack, second: visit.comeBack },
        lapses: [stateLifetimeMs + 1_000],
        commitsApart: true,
        async check() {
          const [row] = await stage.query<{ outcome: string; ended: boolean }>(
            `SELECT outcome, ended_at IS NOT NULL AS ended FROM intake.prefills WHERE advertiser_id = $1`,
            [advertiserId],
          );
          assert.ok(row && row.outcome !== 'started', 'the prefill has an outcome');
          assert.equal(row.ended, row.outcome !== 'prefilled', `P20: a prefill that has ended is ${row.outcome}`);
        },
      };
    },
  }),

  /** A resume is uploaded while its person is erased; the uploading process may die. */
  'erase-resume': (stage) => ({
    promise: 'no resume of an erased person stays in the blob store (P17)',
    async open() {
      const person = await openPerson(stage);
      const { advertiserId } = person;
      const visit = await openVisit(stage, person);
      const erase = async (actor: Actor) => {
        const job = await beginErasure(stage.database(actor.name), privacyKey, {
          ...{ advertiserId, by: 'test', sought: { by: 'address', email } },
        });
        const blobs = toBlobs(actor, visit.objects);
        await deleteUnneeded({ store: stage.store(actor.name), blobs }, advertiserId, job?.hashes ?? [], never);
      };
      return {
        programs: { visit: visit.comeBack, erase },
        mortal: ['visit'],
        async check() {
          // A worker finishes the erasure, once no upload can be in progress any more.
          const deps = { store: stage.directStore, blobs: toBlobs(alone, visit.objects) };
          await stage.query(`UPDATE intake.blobs SET delete_until = now() WHERE delete_until IS NOT NULL`);
          for (const { hashes } of await deps.store.erasures.loadOpenErasures(advertiserId))
            await deleteUnneeded(deps, advertiserId, hashes ?? [], never);
          assert.equal(visit.objects.size, 0, 'P17: the resume of an erased person stays in the blob store');
          await checkErased(stage, advertiserId);
        },
      };
    },
  }),

  /** A profile lapses while its resume is on its way, and another worker lets profiles lapse too. */
  'lapse-early': (stage) => ({
    promise: 'no bytes stay of a resume that has lapsed, and no worker waits for another (P15)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const visit = await openVisit(stage, { advertiserId, name }, new Set<string>(), 0);
      const lapse = (actor: Actor) => stage.store(actor.name).prefills.lapsePrefills();
      return {
        programs: { visit: (actor) => visit.comeBack(actor), lapse, other: lapse },
        async check(outcome) {
          failOnWaiting(
            outcome,
            /^WITH ended AS MATERIALIZED \( SELECT advertiser_id, prefill_id/,
            'profiles that lapse',
          );
          await stage.directStore.prefills.lapsePrefills();
          await deleteLater({ stage, advertiserId, objects: visit.objects, bytes: () => content });
          assert.equal(visit.objects.size, 0, 'P15: the bytes of a resume that has lapsed stay');
        },
      };
    },
  }),

  /** A candidate brings a resume while a page flags a file with the same bytes, and the object is deleted. */
  'flag-resume': (stage) => ({
    promise: 'no resume with flagged bytes is handed out, and its object is deleted (P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, advertiserId, name, read } = await openShown(stage, shown(1));
      await addBlob(files);
      await unqueue(files, 1);
      await setStored(files, 1);
      const visit = await openVisit(stage, { advertiserId, name }, files.objects);
      return {
        programs: { visit: (actor) => visit.comeBack(actor), page: read(shown(1, { hasVirus: true })) },
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.prefills WHERE advertiser_id = $1 AND resume_sha256 IS NOT NULL AND resume_reason IS NULL`,
            [advertiserId],
          );
          assert.deepEqual(rows, [], 'P8: a resume with flagged bytes is handed out');
          await deleteLater(files);
          assert.equal(files.objects.size, 0, 'P8: flagged bytes stay');
        },
      };
    },
  }),

  /** The object of a resume is lost while its prefill is under way, and verify looks for it. */
  'lost-resume': (stage) => ({
    promise: 'a resume that is called stored is in the blob store (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const files = toFiles({ stage, advertiserId });
      const visit = await openVisit(stage, { advertiserId, name }, files.objects);
      return {
        programs: {
          visit: (actor) => visit.comeBack(actor),
          verify: async (actor) => {
            await actor.act('the object is lost', () => files.objects.clear());
            await verify(files)(actor);
          },
        },
        mortal: ['visit'],
        async check() {
          const stored = await stage.query(
            `SELECT 1 FROM intake.prefills WHERE advertiser_id = $1 AND resume_stored_at IS NOT NULL AND resume_reason IS NULL`,
            [advertiserId],
          );
          if (stored.length > files.objects.size) throw new Error('P6: a resume is called stored, and has no object.');
        },
      };
    },
  }),

  /** A resume lapses, and its bytes are deleted, while another candidate brings equal bytes. */
  'lapse-resume': (stage) => ({
    promise: 'a resume that is called stored is in the blob store (P7)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const visit = await openVisit(stage, { advertiserId, name });
      const first = await openVisit(stage, { advertiserId, name }, visit.objects);
      await first.comeBack(alone, stage.directStore);
      await stage.query(
        `UPDATE intake.prefills SET expires_at = now() - interval '1 second' WHERE advertiser_id = $1 AND outcome = 'prefilled'`,
        [advertiserId],
      );
      const lapse = async (actor: Actor) => {
        const store = stage.store(actor.name);
        await store.prefills.lapsePrefills();
        const expired = `UPDATE intake.blobs SET delete_until = now() WHERE advertiser_id = $1 AND delete_until IS NOT NULL`;
        await stage.database(actor.name).query(expired, [advertiserId]);
        await deleteDue({ store, blobs: toBlobs(actor, visit.objects) }, never);
      };
      return {
        programs: { visit: (actor) => visit.comeBack(actor), lapse },
        async check() {
          const [row] = await stage.query<{ stored: boolean }>(
            `SELECT bool_or(resume_stored_at IS NOT NULL AND resume_reason IS NULL) AS stored FROM intake.prefills
             WHERE advertiser_id = $1 AND outcome = 'prefilled'`,
            [advertiserId],
          );
          if (row?.stored) assert.equal(visit.objects.size, 1, 'P7: a stored resume is not in the blob store');
        },
      };
    },
  }),
} satisfies Scenarios;

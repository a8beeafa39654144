// A candidate's browser calls back twice, and a resume is uploaded while its person is erased.
import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import { stateLifetimeMs, toTicket } from '../../../src/domain/prefill.ts';
import type { PrefillSource } from '../../../src/source/prefill.ts';
import { insertPrefill } from '../../../src/store/prefill/prefills.ts';
import { beginErasure } from '../../../src/store/privacy/erasure-jobs.ts';
import { deleteDue, deleteUnneeded } from '../../../src/sync/files/delete-objects.ts';
import { createSecret, finishPrefill } from '../../../src/sync/prefill.ts';
import { createSlots } from '../../../src/sync/slots.ts';
import type { Actor } from '../schedule.ts';
import type { Scenarios, Stage } from '../stage.ts';
import { privacyKey } from './lanes.ts';
import { alone, content, never, type Objects, sha256, spool, toBlobs } from './objects.ts';
import { checkErased, openPerson } from './privacy.ts';

const email = 'person1@example.com';
const page = 'https://careers.example.com/apply';

/** Starts a prefill. `comeBack` runs the product's callback, `sessions` counts the exchanged codes. */
async function openVisit(
  stage: Stage,
  { advertiserId, name }: { advertiserId: bigint; name: string },
  objects: Objects = new Set<string>(),
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
        ttlMs: 86_400_000,
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
          for (const { hashes } of await deps.store.erasures.loadOpen(advertiserId))
            await deleteUnneeded(deps, advertiserId, hashes ?? [], never);
          assert.equal(visit.objects.size, 0, 'P17: the resume of an erased person stays in the blob store');
          await checkErased(stage, advertiserId);
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
        await store.prefills.lapse();
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

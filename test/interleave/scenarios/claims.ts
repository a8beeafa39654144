// Download claims that another run has taken over, files that are requested again, and concurrent updates of the trust in Hash.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { mostUnchanged } from '../../../src/domain/download-verdict.ts';
import { type CompletedState, completeDownloads } from '../../../src/store/files/complete-download.ts';
import type { Claim } from '../../../src/store/files/download-queue.ts';
import type { Scenarios, Situation, Stage } from '../stage.ts';
import {
  addBlob,
  checkEvents,
  checkNoneStored,
  checkObjects,
  checkQueue,
  checkStored,
  checks,
  claimAll,
  complete,
  completeOne,
  deleteAll,
  drop,
  dropOrphans,
  failOnWaiting,
  lapses,
  loadFiles,
  makeReady,
  missing,
  openQueued,
  openShown,
  retryWaiting,
  setStored,
  shown,
  toStored,
  unqueue,
} from './clients.ts';
import { longMs } from './lanes.ts';
import { claim, sha256 } from './objects.ts';

/** Sets up two stored files, the first with these bytes, that are queued for another fetch because only their Hash changed. */
async function openConfirmations(stage: Stage, bytes: string) {
  const account = await openShown(stage, shown(1), shown(2));
  const { files } = account;
  await addBlob(files);
  if (bytes !== sha256) await addBlob(files, `verified_at = now()`, bytes);
  await setStored(files);
  await setStored(files, 1, bytes);
  await makeReady(files);
  return account;
}

/** A repeated fetch finds the same bytes or other ones, while a page flags these bytes at another application. */
function createConfirmed(stage: Stage, bytes: string): Situation {
  return {
    promise: 'no file, and no earlier version of one, with flagged bytes is called stored (P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, read } = await openConfirmations(stage, bytes);
      await unqueue(files, 2);
      const claimed = await claimAll(files);
      return {
        programs: { run: complete(stage, claimed(1)), page: read(shown(2, { hasVirus: true })) },
        mortal: ['run'],
        check: checks(files, checkStored, checkEvents),
      };
    },
  };
}

/** The hashes of two blobs. The store locks blob rows in the order of their hashes. */
const lower = '1'.repeat(64);
const higher = '2'.repeat(64);

export const claimScenarios = {
  /** A run stalls until its claims lapse and another run takes them, and then tries to renew, postpone and release them. */
  claims: (stage) => ({
    promise: 'a run changes nothing about a claim that another run has (P6)',
    async open() {
      const files = await openQueued(stage, [1, 2, 3]);
      const old = await claimAll(files);
      const taken: Claim[] = [];
      return {
        programs: {
          old: async (actor) => {
            const { downloads } = stage.store(actor.name);
            await downloads.renewDownloads([old(1)], longMs);
            await downloads.postponeDownload(old(2), { delayMs: 0, countsAttempt: false, trouble: null });
            await downloads.releaseDownloads([old(3)]);
          },
          new: async (actor) => {
            for (const tier of ['usual', 'suspects'] as const) taken.push(...(await claim(files, actor, tier)));
          },
        },
        lapses,
        async check() {
          const rows = await stage.query<{ application_id: string; lease_token: string | null; left: number }>(
            `SELECT application_id, lease_token, extract(epoch FROM leased_until - now())::float8 * 1000 AS left
             FROM intake.downloads WHERE advertiser_id = $1`,
            [files.advertiserId],
          );
          for (const { applicationId, token } of taken) {
            const row = rows.find((one) => BigInt(one.application_id) === applicationId);
            if (row?.lease_token !== token)
              throw new Error(`P6: the claim of ${applicationId} was given back by another run.`);
            if (row.left > longMs * 0.6)
              throw new Error(`P6: the claim of ${applicationId} was prolonged by another run.`);
          }
        },
      };
    },
  }),

  /** An operator retries waiting files while a run completes one of them. */
  retried: (stage) => ({
    promise: 'a file that a run stored stays stored, and each that waits is queued (P4, P6)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1]);
      files.objects.add(toBlobKey(files.advertiserId, sha256));
      const claimed = await claimAll(files);
      let ended: CompletedState | null = null;
      return {
        programs: {
          retry: retryWaiting(files),
          run: async (actor) => {
            ended = await completeOne(stage, actor, claimed(1), toStored(sha256));
          },
        },
        mortal: ['retry'],
        lapses,
        async check({ lines }) {
          await checks(files, checkObjects, checkQueue, checkEvents)();
          const [file] = await loadFiles(files);
          if (ended === 'lost' && !lines.some(({ client }) => client === 'time'))
            throw new Error('A retry took the claim of a run that holds it.');
          if (ended === 'stored' && file?.state !== 'stored')
            throw new Error(`P6: a file that was stored is ${file?.state}.`);
        },
      };
    },
  }),

  /** An operator retries one file of an application while a run completes the other, which is the last that waits. */
  'retried-other': (stage) => ({
    promise: 'an application is ready when none of its files waits (P4)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1], ['coverLetter', 'resume']);
      const claimed = await claimAll(files);
      await completeDownloads(stage.direct, [{ claim: claimed(1, 'resume'), completion: missing }]);
      const choice = { applicationId: null, kind: null, state: 'missing' as const };
      return {
        programs: {
          run: complete(stage, claimed(1, 'coverLetter'), missing),
          retry: (actor) => stage.store(actor.name).downloads.retryDownloads(files.advertiserId, choice),
        },
        mortal: ['run', 'retry'],
        check: checks(files, checkQueue, checkEvents),
      };
    },
  }),

  /** A download links its file to bytes that an erasure, or a verify, is deleting because no other file refers to them. */
  linked: (stage) => ({
    promise: 'a file that is called stored has its object (P6)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1]);
      await addBlob(files, `verified_at = now(), intended_at = now() - interval '2 days'`);
      const claimed = await claimAll(files);
      return {
        programs: {
          drop: drop(files),
          verify: (actor) => dropOrphans(stage.store(actor.name), files.advertiserId),
          link: complete(stage, claimed(1), toStored(sha256, { linkedBy: 'given' })),
        },
        mortal: ['drop'],
        lapses,
        check: checks(files, checkObjects, checkQueue),
      };
    },
  }),

  /** Two runs report the first comparisons of an account at the same time, and both agree. */
  compared: (stage) => ({
    promise: 'each comparison counts, and no file is lost for it (P7)',
    async open() {
      const files = await openQueued(stage, [1, 2]);
      const claimed = await claimAll(files);
      const agree = (id: number) =>
        complete(stage, claimed(id), toStored(hash('sha256', `bytes of ${id}`), { compared: 'agreed' }));
      return {
        programs: { a: agree(1), b: agree(2) },
        async check() {
          const rows = await stage.query(`SELECT agreed FROM intake.hash_trust WHERE advertiser_id = $1`, [
            files.advertiserId,
          ]);
          assert.deepEqual(rows, [{ agreed: 2 }], 'P7: both comparisons count');
          await checkQueue(files);
        },
      };
    },
  }),

  confirmed: (stage) => createConfirmed(stage, sha256),
  'confirmed-other': (stage) => createConfirmed(stage, hash('sha256', 'before')),

  /** Hash changed too often while the bytes stayed the same: a run drops the queued confirmations while another run claims some of them. */
  'confirmations-dropped': (stage) => ({
    promise: 'a run does not wait for a claim, and a claim that was given is not taken away (P6, P11)',
    async open() {
      const { advertiserId, files } = await openConfirmations(stage, sha256);
      await stage.query(
        `UPDATE intake.downloads SET due_at = now() + interval '1 hour' WHERE advertiser_id = $1 AND application_id = 2`,
        [advertiserId],
      );
      await stage.query(`INSERT INTO intake.hash_trust (advertiser_id, unchanged) VALUES ($1, $2)`, [
        advertiserId,
        mostUnchanged - 1,
      ]);
      const claimed = await claimAll(files);
      await stage.query(`UPDATE intake.downloads SET due_at = now() WHERE advertiser_id = $1`, [advertiserId]);
      return {
        programs: {
          run: complete(stage, claimed(1)),
          other: async (actor) => {
            for (const one of await claim(files, actor)) {
              const ended = await completeOne(stage, actor, one, toStored(sha256));
              if (ended === 'lost') throw new Error('P6: a claim that was given is taken away.');
            }
          },
        },
        mortal: ['other'],
        commitsApart: true,
        async check(outcome) {
          failOnWaiting(outcome, /^DELETE FROM intake\.downloads WHERE ctid/, 'the confirmations that it drops');
          await checks(files, checkObjects, checkEvents)();
        },
      };
    },
  }),

  /** A process shuts down and releases its claims while an operator retries the same files. */
  released: (stage) => ({
    promise: 'nobody fails, and each file that waits is queued (P4)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1, 2, 3]);
      const claimed = await claimAll(files);
      // The release locks the last row first, whether it follows its claims or the order of the table. The retry locks the first row first.
      await stage.query(
        `WITH queued AS (DELETE FROM intake.downloads WHERE advertiser_id = $1 RETURNING *)
         INSERT INTO intake.downloads SELECT * FROM queued ORDER BY application_id DESC`,
        [files.advertiserId],
      );
      return {
        programs: {
          // Holds a lock on the second file, so that the others stop midway: the rows that one statement locks are not separate steps.
          second: (actor) => stage.store(actor.name).blobs.announce(claimed(2), toStored(sha256).blob),
          retry: retryWaiting(files),
          release: (actor) => stage.store(actor.name).downloads.releaseDownloads([claimed(3), claimed(1)]),
        },
        mortal: ['release'],
        commitsApart: true,
        check: checks(files, checkQueue),
      };
    },
  }),

  /** A run announces the bytes of two files while a resumed erasure drops both blobs; one of the blobs has no row. */
  'drop-two': (stage) => ({
    promise: 'a file that is called stored has its object, and nobody fails (P6)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1, 2]);
      const { advertiserId, objects } = files;
      await addBlob(files, `verified_at = now()`, lower);
      const claimed = await claimAll(files);
      const announced = [toStored(lower), toStored(higher)];
      return {
        programs: {
          drop: drop(files, [lower, higher]),
          fetch: async (actor) => {
            const { announce } = stage.store(actor.name).blobs;
            const answers = await Promise.all(announced.map(({ blob }, at) => announce(claimed(at + 1), blob)));
            for (const [at, completion] of announced.entries()) {
              if (answers[at] !== 'put') continue;
              await actor.act('put', () => objects.add(toBlobKey(advertiserId, completion.blob.sha256)));
              await completeOne(stage, actor, claimed(at + 1), completion);
            }
          },
        },
        mortal: ['drop'],
        check: checks(files, checkObjects),
      };
    },
  }),

  /** Two infected blobs are deleted while a batch completes: one file was put with the bytes of one blob, one is linked to the other. */
  'confirmed-delete': (stage) => ({
    promise: 'no file with infected bytes is called stored, and nobody fails (P8)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1, 2]);
      const infected = `state = 'infected', infected_at = now(), verified_at = NULL`;
      for (const bytes of [lower, higher]) await addBlob(files, infected, bytes);
      const claimed = await claimAll(files);
      const batch = [
        { claim: claimed(1), completion: toStored(higher) },
        { claim: claimed(2), completion: toStored(lower, { linkedBy: 'given' }) },
      ];
      return {
        programs: {
          delete: deleteAll(files),
          run: (actor) => completeDownloads(stage.database(actor.name), batch),
        },
        mortal: ['delete'],
        commitsApart: true,
        check: checks(files, checkNoneStored, checkQueue),
      };
    },
  }),
} satisfies Scenarios;

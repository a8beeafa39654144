// Download claims that another run has taken over, files that are requested again, and concurrent updates of the trust in Hash.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { mostUnchanged } from '../../../src/domain/hash-trust.ts';
import {
  type CompletedState,
  type Completion,
  completeDownloads,
  type StoredFile,
} from '../../../src/store/files/complete-download.ts';
import { type Claim, claimDownloads } from '../../../src/store/files/download-queue.ts';
import { deleteDue, deleteUnneeded } from '../../../src/sync/files/delete-objects.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import type { Scenario } from '../explorer.ts';
import type { Actor, Program } from '../schedule.ts';
import type { Stage } from '../stage.ts';
import { giveUp, toDeleting } from './deletions.ts';
import { checkEvents, checkQueue, failOnWaiting } from './files.ts';
import { leaseMs, longMs, openLane, privacyKey } from './lanes.ts';
import {
  addBlob,
  addFiles,
  checkObjects,
  claim,
  content,
  dropBlobs,
  type FilesOf,
  makeReady,
  never,
  sha256,
  stopWhenBusy,
} from './objects.ts';

/** Claims all due downloads during setup, outside the schedule. */
export async function claimAll(stage: Stage, advertiserId: bigint): Promise<(id: number) => Claim> {
  const { claims } = await claimDownloads(stage.direct, {
    ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
  });
  return (id) => {
    const found = claims.find(({ applicationId }) => applicationId === BigInt(id));
    if (!found) throw new Error('Nothing was claimed.');
    return found;
  };
}

/** A completion with these bytes. `more` overrides the other fields. */
export function toStored(bytes: string, more: Partial<StoredFile> = {}): StoredFile {
  return {
    ...{ kind: 'stored', blob: { sha256: bytes, sizeBytes: content.length } },
    ...{ contentType: null, detectedType: null, fileName: null },
    ...{ notes: [], linkedBy: null, compared: null, screens: null },
    ...more,
  };
}

/** Completes one download and returns its state. */
export async function completeOne(
  stage: Stage,
  actor: Actor,
  claimed: Claim,
  completion: Completion,
): Promise<CompletedState> {
  const [state = 'lost'] = await completeDownloads(stage.database(actor.name), [{ claim: claimed, completion }]);
  return state;
}

/** A run stalls until its claims lapse and another run takes them, and then tries to renew, postpone and release them. */
export function createClaims(stage: Stage): Scenario {
  return {
    name: 'claims that changed hands are renewed, postponed and released',
    promise: 'a run changes nothing about a claim that another run has (P6)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addFiles(files, [1, 2, 3]);
      const old = await claimAll(stage, advertiserId);
      const taken: Claim[] = [];
      return {
        programs: new Map<string, Program>([
          [
            'old',
            async (actor) => {
              const { downloads } = stage.store(actor.name);
              await downloads.renew([old(1)], longMs);
              await downloads.postpone(old(2), { delayMs: 0, countsAttempt: false, trouble: null });
              await downloads.release([old(3)]);
            },
          ],
          [
            'new',
            async (actor) => {
              for (const tier of ['usual', 'suspects'] as const)
                taken.push(...(await claim(files, actor, leaseMs, tier)));
            },
          ],
        ]),
        mortal: [],
        lapses: [leaseMs + 1_000],
        async check() {
          const rows = await stage.query<{ application_id: string; lease_token: string | null; left: number }>(
            `SELECT application_id, lease_token, extract(epoch FROM leased_until - now())::float8 * 1000 AS left
             FROM intake.downloads WHERE advertiser_id = $1`,
            [advertiserId],
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
  };
}

/** An operator retries waiting files while a run completes one of them. */
export function createRetried(stage: Stage): Scenario {
  return {
    name: 'waiting files are asked for again while a run completes one',
    promise: 'a file that a run stored stays stored, and each that waits is queued (P4, P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set([toBlobKey(advertiserId, sha256)]) };
      await addFiles(files, [1]);
      const claimed = await claimAll(stage, advertiserId);
      let ended: CompletedState | null = null;
      return {
        programs: new Map<string, Program>([
          [
            'retry',
            async (actor) =>
              void (await stage
                .store(actor.name)
                .downloads.retry(advertiserId, { applicationId: null, kind: null, state: 'waiting' })),
          ],
          [
            'run',
            async (actor) => {
              ended = await completeOne(stage, actor, claimed(1), toStored(sha256));
            },
          ],
        ]),
        mortal: ['retry'],
        lapses: [leaseMs + 1_000],
        async check({ lines }) {
          await checkObjects(files);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          const [row] = await stage.query<{ state: string }>(
            `SELECT state FROM intake.attachments WHERE advertiser_id = $1`,
            [advertiserId],
          );
          if (ended === 'lost' && !lines.some(({ client }) => client === 'time'))
            throw new Error('A retry took the claim of a run that holds it.');
          if (ended === 'stored' && row?.state !== 'stored')
            throw new Error(`P6: a file that was stored is ${row?.state}.`);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** A download links its file to bytes that an erasure is deleting because no other file refers to them. */
export function createLinked(stage: Stage): Scenario {
  return {
    name: 'a file is linked to bytes that are dropped',
    promise: 'a file that is called stored has its object (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addBlob(files, `verified_at = now()`);
      await addFiles(files, [1]);
      const claimed = await claimAll(stage, advertiserId);
      return {
        programs: new Map<string, Program>([
          [
            'drop',
            (actor) => {
              const deps = toDeleting(files, actor, false);
              return giveUp(
                deleteUnneeded({ ...deps, store: stopWhenBusy(deps.store) }, advertiserId, [sha256], never),
              );
            },
          ],
          [
            'link',
            async (actor) =>
              void (await completeOne(stage, actor, claimed(1), toStored(sha256, { linkedBy: 'given' }))),
          ],
        ]),
        mortal: ['drop'],
        lapses: [leaseMs + 1_000],
        async check() {
          await checkObjects(files);
          await checkQueue(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Two runs report the first comparisons of an account at the same time, and both agree. */
export function createCompared(stage: Stage): Scenario {
  return {
    name: 'two files compare their Hash for the first time',
    promise: 'each comparison counts, and no file is lost for it (P7)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addFiles(files, [1, 2]);
      const claimed = await claimAll(stage, advertiserId);
      const end = (id: number) => async (actor: Actor) => {
        const completion = toStored(hash('sha256', `bytes of ${id}`), { compared: 'agreed' });
        await completeOne(stage, actor, claimed(id), completion);
      };
      return {
        programs: new Map<string, Program>([
          ['a', end(1)],
          ['b', end(2)],
        ]),
        mortal: [],
        lapses: [],
        async check() {
          const rows = await stage.query(`SELECT agreed FROM intake.hash_trust WHERE advertiser_id = $1`, [
            advertiserId,
          ]);
          assert.deepEqual(rows, [{ agreed: 2 }], 'P7: both comparisons count');
          await checkQueue(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Sets up stored files that are queued for another fetch because only their Hash changed. */
async function openConfirmations(stage: Stage, bytes: string) {
  const { advertiserId, lease } = await openLane(stage);
  const files: FilesOf = { stage, advertiserId, objects: new Set() };
  const shown = (id: number, hasVirus: boolean) =>
    anApplication(id, { attachments: [anAttachment('resume', { hasVirus, sizeBytes: content.length })] });
  await commitPage(stage.direct, privacyKey, aPage(lease, [shown(1, false), shown(2, false)], { advertiserId }));
  await addBlob(files, `verified_at = now()`);
  await stage.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, verified_at) VALUES ($1, $2, 1, $3, 'stored', now()) ON CONFLICT DO NOTHING`,
    [advertiserId, bytes, toBlobKey(advertiserId, bytes)],
  );
  await stage.query(
    `UPDATE intake.attachments SET state = 'stored', stored_at = now(), sha256 = CASE WHEN application_id = 1 THEN $2 ELSE $3 END
     WHERE advertiser_id = $1`,
    [advertiserId, bytes, sha256],
  );
  await makeReady(files);
  return { advertiserId, lease, files, shown };
}

/** A repeated fetch finds other bytes, while a page flags these bytes at another application. */
export function createConfirmedOther(stage: Stage): Scenario {
  return {
    name: 'a file is found to have other bytes while these are flagged elsewhere',
    promise: 'no file, and no earlier version of one, with flagged bytes is called stored (P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease, files, shown } = await openConfirmations(stage, hash('sha256', 'before'));
      await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1 AND application_id = 2`, [advertiserId]);
      const claimed = await claimAll(stage, advertiserId);
      const page = aPage(lease, [shown(2, true)], { advertiserId });
      return {
        programs: new Map<string, Program>([
          ['run', async (actor) => void (await completeOne(stage, actor, claimed(1), toStored(sha256)))],
          ['page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page))],
        ]),
        mortal: ['run'],
        lapses: [],
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.attachments WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored'
             UNION ALL SELECT 1 FROM intake.attachment_versions WHERE advertiser_id = $1 AND sha256 = $2 AND state = 'stored'`,
            [advertiserId, sha256],
          );
          if (rows.length > 0) throw new Error('P8: flagged bytes are called stored.');
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Hash changed too often while the bytes stayed the same: a run drops the queued confirmations while another run claims some of them. */
export function createDroppedConfirmations(stage: Stage): Scenario {
  return {
    name: 'confirmations are dropped while another run claims one',
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
      const claimed = await claimAll(stage, advertiserId);
      await stage.query(`UPDATE intake.downloads SET due_at = now() WHERE advertiser_id = $1`, [advertiserId]);
      return {
        programs: new Map<string, Program>([
          ['run', async (actor) => void (await completeOne(stage, actor, claimed(1), toStored(sha256)))],
          [
            'other',
            async (actor) => {
              for (const one of await claim(files, actor, leaseMs)) {
                const ended = await completeOne(stage, actor, one, toStored(sha256));
                if (ended === 'lost') throw new Error('P6: a claim that was given is taken away.');
              }
            },
          ],
        ]),
        mortal: ['other'],
        lapses: [],
        commitsApart: true,
        async check(outcome) {
          failOnWaiting(outcome, /^DELETE FROM intake\.downloads WHERE ctid/, 'the confirmations that it drops');
          await checkObjects(files);
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** A process shuts down and releases its claims while an operator retries the same files. */
export function createReleased(stage: Stage): Scenario {
  return {
    name: 'claims are released while their files are asked for again',
    promise: 'nobody fails, and each file that waits is queued (P4)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addFiles(files, [1, 2, 3]);
      const claimed = await claimAll(stage, advertiserId);
      // The release locks the last row first, whether it follows its claims or the order of the table. The retry locks the first row first.
      await stage.query(
        `WITH queued AS (DELETE FROM intake.downloads WHERE advertiser_id = $1 RETURNING *)
         INSERT INTO intake.downloads SELECT * FROM queued ORDER BY application_id DESC`,
        [advertiserId],
      );
      const { blob } = toStored(sha256);
      return {
        programs: new Map<string, Program>([
          // Holds a lock on the second file, so that the others stop midway: the rows that one statement locks are not separate steps.
          ['second', (actor) => stage.store(actor.name).blobs.announce(claimed(2), blob)],
          [
            'retry',
            (actor) =>
              stage
                .store(actor.name)
                .downloads.retry(advertiserId, { applicationId: null, kind: null, state: 'waiting' }),
          ],
          ['release', (actor) => stage.store(actor.name).downloads.release([claimed(3), claimed(1)])],
        ]),
        mortal: ['release'],
        lapses: [],
        commitsApart: true,
        async check() {
          await checkQueue(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** The hashes of two blobs. The store locks blob rows in the order of their hashes. */
const lower = '1'.repeat(64);
const higher = '2'.repeat(64);

/** A run announces the bytes of two files while a resumed erasure drops both blobs; one of the blobs has no row. */
export function createDropTwo(stage: Stage): Scenario {
  return {
    name: 'two announced bytes while both are dropped',
    promise: 'a file that is called stored has its object, and nobody fails (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const key = toBlobKey(advertiserId, lower);
      const files: FilesOf = { stage, advertiserId, objects: new Set([key]) };
      await stage.query(
        `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, verified_at) VALUES ($1, $2, 1, $3, 'stored', now())`,
        [advertiserId, lower, key],
      );
      await addFiles(files, [1, 2]);
      const claimed = await claimAll(stage, advertiserId);
      const announced = [toStored(lower), toStored(higher)];
      return {
        programs: new Map<string, Program>([
          [
            'drop',
            (actor) => {
              const deps = toDeleting(files, actor, false);
              return giveUp(
                deleteUnneeded({ ...deps, store: stopWhenBusy(deps.store) }, advertiserId, [lower, higher], never),
              );
            },
          ],
          [
            'fetch',
            async (actor) => {
              const { announce } = stage.store(actor.name).blobs;
              const answers = await Promise.all(announced.map(({ blob }, at) => announce(claimed(at + 1), blob)));
              for (const [at, completion] of announced.entries()) {
                if (answers[at] !== 'put') continue;
                await actor.act('put', () => files.objects.add(toBlobKey(advertiserId, completion.blob.sha256)));
                await completeOne(stage, actor, claimed(at + 1), completion);
              }
            },
          ],
        ]),
        mortal: ['drop'],
        lapses: [],
        async check() {
          await checkObjects(files);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Two infected blobs are deleted while a batch completes: one file was put with the bytes of one blob, one is linked to the other. */
export function createConfirmedDelete(stage: Stage): Scenario {
  return {
    name: 'two infected objects are deleted while a batch completes with both',
    promise: 'no file with infected bytes is called stored, and nobody fails (P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      for (const bytes of [lower, higher]) {
        const key = toBlobKey(advertiserId, bytes);
        files.objects.add(key);
        await stage.query(
          `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, infected_at) VALUES ($1, $2, 1, $3, 'infected', now())`,
          [advertiserId, bytes, key],
        );
      }
      await addFiles(files, [1, 2]);
      const claimed = await claimAll(stage, advertiserId);
      const batch = [
        { claim: claimed(1), completion: toStored(higher) },
        { claim: claimed(2), completion: toStored(lower, { linkedBy: 'given' }) },
      ];
      return {
        programs: new Map<string, Program>([
          ['delete', (actor) => giveUp(deleteDue(toDeleting(files, actor, false), never))],
          ['run', (actor) => completeDownloads(stage.database(actor.name), batch)],
        ]),
        mortal: ['delete'],
        lapses: [],
        commitsApart: true,
        async check() {
          const stored = await stage.query(
            `SELECT 1 FROM intake.attachments WHERE advertiser_id = $1 AND state = 'stored'`,
            [advertiserId],
          );
          if (stored.length > 0) throw new Error('P8: infected bytes are called stored.');
          await checkQueue(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

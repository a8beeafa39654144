// Equal bytes arrive while their object is deleted, for each reason to delete an object.
import assert from 'node:assert/strict';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { beginDueDeletes, dropOrphans } from '../../../src/store/files/delete-blobs.ts';
import { adoptBlob, markUndeleted } from '../../../src/store/files/verify-blobs.ts';
import { isConflict } from '../../../src/store/postgres/database.ts';
import type { Store } from '../../../src/store/store.ts';
import { type DeletingDeps, deleteDue, deleteUnneeded } from '../../../src/sync/files/delete-objects.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import type { Scenario } from '../explorer.ts';
import type { Actor, Program } from '../schedule.ts';
import type { Stage } from '../stage.ts';
import { checkEvents, checkQueue, failOnWaiting } from './files.ts';
import { leaseMs, openLane, privacyKey } from './lanes.ts';
import {
  addBlob,
  addFiles,
  checkObjects,
  claim,
  content,
  dropBlobs,
  type FilesOf,
  fetchClaimed,
  never,
  sha256,
  stopWhenBusy,
  toBlobs,
} from './objects.ts';

/**
 * An orphan is deleted while another person's equal bytes arrive; both clients may stall for longer than a delete token is valid.
 * `isLate`: the process sends the delete in time, and the object store executes it at any later step.
 */
function createOrphanOf(stage: Stage, isLate: boolean): Scenario {
  return {
    name: `equal bytes while an orphan is deleted${isLate ? ', late deletes' : ''}`,
    promise: 'a file that is called stored has its object (P6)',
    // The repair after a late delete locks the blob before the application.
    allowsDeadlocks: isLate,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addBlob(files, `intended_at = now() - interval '2 days'`);
      await addFiles(files, [1]);
      return {
        programs: new Map<string, Program>([
          [
            'delete',
            async (actor) => {
              const deps = toDeleting(files, actor, isLate);
              await deps.store.deletions.dropOrphans(advertiserId);
              await giveUp(deleteDue(deps, never));
            },
          ],
          ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
        ]),
        // If a stalled process deletes late and dies before it checks, only the nightly verify finds the loss. So it may not die here.
        mortal: isLate ? ['fetch'] : ['delete', 'fetch'],
        lapses: [leaseMs + 1_000],
        async check() {
          await checkObjects(files);
          await dropBlobs(files);
        },
      };
    },
  };
}

export const createOrphan = (stage: Stage) => createOrphanOf(stage, false);
export const createLateOrphan = (stage: Stage) => createOrphanOf(stage, true);

/** The flag of bytes is lifted while they are being deleted. Then nothing refers to them, verify looks for orphans, and they arrive again. */
export function createLiftedOrphan(stage: Stage): Scenario {
  return {
    name: 'orphans are dropped while one of them is being deleted',
    promise: 'a file that is called stored has its object (P6)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      const token = crypto.randomUUID();
      await addBlob(
        files,
        `state = 'writing', intended_at = now() - interval '2 days', delete_token = '${token}', delete_until = now() + interval '30 seconds'`,
      );
      await addFiles(files, [1]);
      const blobs = [{ advertiserId, sha256, sizeBytes: content.length, key: toBlobKey(advertiserId, sha256) }];
      const deleting = async (actor: Actor) => {
        const { store, ...deps } = toDeleting(files, actor, false);
        const begun = [{ token, blobs }];
        const beginDueDeletes = async () => begun.pop() ?? { token, blobs: [] };
        await deleteDue({ ...deps, store: { ...store, deletions: { ...store.deletions, beginDueDeletes } } }, never);
      };
      return {
        programs: new Map<string, Program>([
          ['delete', deleting],
          ['verify', async (actor) => void (await dropOrphans(stage.database(actor.name), advertiserId))],
          ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
        ]),
        mortal: ['delete'],
        async check() {
          await checkObjects(files);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Infected bytes are deleted while another person's equal bytes arrive and a page lifts the flag. */
export function createInfected(stage: Stage): Scenario {
  return {
    name: 'equal bytes while infected ones are deleted and their flag is lifted',
    promise: 'a file that is called stored has its object; infected bytes that are called deleted have none (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      const shown = (id: number, hasVirus: boolean) =>
        anApplication(id, { attachments: [anAttachment('resume', { hasVirus, sizeBytes: content.length })] });
      await commitPage(stage.direct, privacyKey, aPage(lease, [shown(1, true), shown(2, false)], { advertiserId }));
      await addBlob(files, `state = 'infected', infected_at = now()`);
      await stage.query(`UPDATE intake.attachments SET sha256 = $2 WHERE advertiser_id = $1 AND state = 'infected'`, [
        advertiserId,
        sha256,
      ]);
      const page = aPage(lease, [shown(1, false)], { advertiserId });
      const deleting = (actor: Actor) => giveUp(deleteDue(toDeleting(files, actor, false), never));
      return {
        programs: new Map<string, Program>([
          ['delete', deleting],
          ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
          ['page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page))],
        ]),
        mortal: ['delete'],
        lapses: [leaseMs + 1_000],
        async check() {
          await checkObjects(files);
          const emptied = await stage.query(
            `SELECT 1 FROM intake.blobs WHERE advertiser_id = $1 AND state = 'infected' AND deleted_at IS NOT NULL`,
            [advertiserId],
          );
          if (emptied.length > 0 && files.objects.size > 0)
            throw new Error('P8: infected bytes are called deleted and are there.');
          await dropBlobs(files);
        },
      };
    },
  };
}

/** A stored file is flagged and its object deleted while a run fetches another person's equal bytes. */
export function createFlagged(stage: Stage): Scenario {
  return {
    name: 'equal bytes while stored ones are flagged and deleted',
    promise: 'no byte of a flagged file can be read, however it came (P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      const shown = (id: number, hasVirus: boolean) =>
        anApplication(id, { attachments: [anAttachment('resume', { hasVirus, sizeBytes: content.length })] });
      await commitPage(stage.direct, privacyKey, aPage(lease, [shown(1, false), shown(2, false)], { advertiserId }));
      await addBlob(files, `verified_at = now()`);
      await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1 AND application_id = 1`, [advertiserId]);
      await stage.query(
        `UPDATE intake.attachments SET state = 'stored', stored_at = now(), sha256 = $2 WHERE advertiser_id = $1 AND application_id = 1`,
        [advertiserId, sha256],
      );
      const page = aPage(lease, [shown(1, true)], { advertiserId });
      return {
        programs: new Map<string, Program>([
          ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
          ['page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page))],
          ['delete', (actor) => giveUp(deleteDue(toDeleting(files, actor, false), never))],
        ]),
        mortal: ['delete'],
        lapses: [],
        async check() {
          await deleteLater(files);
          if (files.objects.size > 0) throw new Error('P8: flagged bytes are in the store, and no run deletes them.');
          const rows = await stage.query(
            `SELECT 1 FROM intake.attachments WHERE advertiser_id = $1 AND state = 'stored'`,
            [advertiserId],
          );
          if (rows.length > 0) throw new Error('P8: flagged bytes are called stored.');
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Deletes as the next run would, after the tokens of dead runs have lapsed. */
async function deleteLater({ stage, advertiserId, objects }: FilesOf): Promise<void> {
  await stage.query(`UPDATE intake.blobs SET delete_until = NULL WHERE advertiser_id = $1`, [advertiserId]);
  const next: Actor = { name: 'next', act: async (_, work) => work() };
  await deleteDue({ store: stage.directStore, blobs: toBlobs(next, objects) }, never);
}

/** A page lifts a flag while a run that lost its claim to this flag reports the bytes it fetched. */
export function createLifted(stage: Stage): Scenario {
  return {
    name: 'a flag is lifted while its bytes become known',
    promise: 'bytes that no flag names are not held to be infected (P6)',
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      const uploadedAt = new Date(Date.UTC(2026, 0, 1));
      const shown = (hasVirus: boolean) =>
        anApplication(1, { attachments: [anAttachment('resume', { hasVirus, sizeBytes: content.length })] });
      await commitPage(stage.direct, privacyKey, aPage(lease, [shown(true)], { advertiserId }));
      await addBlob(files, `verified_at = now()`);
      const lost = {
        advertiserId,
        applicationId: 1n,
        kind: 'resume' as const,
        token: crypto.randomUUID(),
        attempts: 1,
        lapses: 0,
        isServed: false,
        failedAt: Infinity,
        waitedMs: 0,
      };
      const page = aPage(lease, [shown(false)], { advertiserId });
      return {
        programs: new Map<string, Program>([
          ['run', (actor) => stage.store(actor.name).blobs.markFetched({ claim: lost, uploadedAt }, sha256)],
          ['page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page))],
        ]),
        mortal: ['run'],
        lapses: [],
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.blobs b WHERE advertiser_id = $1 AND state = 'infected' AND NOT EXISTS (
               SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = $1 AND a.has_virus)`,
            [advertiserId],
          );
          if (rows.length > 0) throw new Error('P6: bytes are held to be infected, and no flag names them.');
          const [file] = await stage.query<{ state: string }>(
            `SELECT state FROM intake.attachments WHERE advertiser_id = $1`,
            [advertiserId],
          );
          if (file?.state !== 'pending') throw new Error(`P6: a file whose flag was lifted is ${file?.state}.`);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** The dependencies of a client that deletes objects. */
export function toDeleting(files: FilesOf, actor: Actor, isLate: boolean): DeletingDeps & { readonly store: Store } {
  const { stage, objects } = files;
  const now = () => performance.now() + (isLate ? 0 : stage.gate.clockMs);
  return {
    store: toPausing(stage.store(actor.name), actor),
    blobs: toBlobs(actor, objects, isLate ? undefined : now),
    now,
  };
}

/** Adds a step after each `begin...` call, so that the process can also stall between getting its token and using it. */
function toPausing(store: Store, actor: Actor): Store {
  const pause = async <T>(answer: Promise<T>): Promise<T> => {
    const value = await answer;
    await actor.act('has its token', () => {});
    return value;
  };
  return {
    ...store,
    deletions: {
      ...store.deletions,
      beginDueDeletes: (...of) => pause(store.deletions.beginDueDeletes(...of)),
      beginDrop: (...of) => pause(store.deletions.beginDrop(...of)),
    },
  };
}

/** Ignores the Trouble with which a run ends when it was too slow: the next run deletes. Conflicts without a retry are still errors. */
export async function giveUp(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof Trouble) || isConflict(error)) throw error;
  });
}

/** Unreferenced bytes are dropped at once, as an erasure does, while another person's equal bytes arrive. */
export function createDrop(stage: Stage): Scenario {
  return {
    name: 'equal bytes while dropped ones are deleted',
    promise: 'a file that is called stored has its object (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addBlob(files, `verified_at = now()`);
      await addFiles(files, [1]);
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
          ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
        ]),
        mortal: ['drop', 'fetch'],
        lapses: [leaseMs + 1_000],
        async check() {
          await checkObjects(files);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Four runs begin to delete at once; two of them drop orphans before. */
export function createDeleters(stage: Stage): Scenario {
  return {
    name: 'four runs begin to delete at once',
    promise: 'no run waits for another, and no object is deleted by two',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const add = (hash: string, state: string, more: string, days = 2) =>
        stage.query(
          `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, intended_at, verified_at, infected_at)
           VALUES ($1, $2, 1, $2, $3, now() - $4 * interval '1 day', now() - interval '2 days', ${more})`,
          [advertiserId, hash, state, days],
        );
      await add('infected', 'infected', 'now()');
      await add('orphan', 'stored', 'NULL');
      await add('announced', 'writing', 'NULL', 0);
      const begun: string[] = [];
      const begin = async (actor: Actor) => {
        const { blobs } = await beginDueDeletes(stage.database(actor.name), 10);
        begun.push(...blobs.filter((blob) => blob.advertiserId === advertiserId).map((blob) => blob.sha256));
      };
      const ofOrphans = async (actor: Actor) => {
        await dropOrphans(stage.database(actor.name), advertiserId);
        await begin(actor);
      };
      return {
        programs: new Map<string, Program>([
          ['a', begin],
          ['b', begin],
          ['c', ofOrphans],
          ['d', ofOrphans],
        ]),
        mortal: [],
        lapses: [],
        commitsApart: true,
        async check(outcome) {
          failOnWaiting(outcome, /^\s*WITH chosen AS MATERIALIZED/, 'a delete');
          assert.deepEqual(
            new Set(begun),
            new Set(['infected', 'orphan']),
            'bytes that were announced since are deleted, or others are not',
          );
          assert.equal(begun.length, 2, 'an object is deleted by two runs');
          await stage.query(`DELETE FROM intake.blobs WHERE advertiser_id = $1`, [advertiserId]);
        },
      };
    },
  };
}

/** Verify finds an object missing while a run stores the same bytes for another person. */
export function createLost(stage: Stage): Scenario {
  return {
    name: 'bytes are found lost while another run stores the same',
    promise: 'a file that is called stored has its blob, and its object (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addBlob(files, `verified_at = now()`);
      await addFiles(files, [1, 2]);
      await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1 AND application_id = 1`, [advertiserId]);
      await stage.query(
        `UPDATE intake.attachments SET state = 'stored', stored_at = now(), sha256 = $2 WHERE advertiser_id = $1 AND application_id = 1`,
        [advertiserId, sha256],
      );
      files.objects.clear();
      return {
        programs: new Map<string, Program>([
          [
            'verify',
            async (actor) => {
              const key = toBlobKey(advertiserId, sha256);
              const facts = { sha256, sizeBytes: content.length };
              const condition = await toBlobs(actor, files.objects).verify(key, facts, 'metadata', never);
              if (condition !== 'intact') await stage.store(actor.name).blobs.markDamaged(advertiserId, sha256);
            },
          ],
          ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
        ]),
        mortal: ['verify', 'fetch'],
        lapses: [],
        async check({ lines }) {
          // If verify dies, the next verify finds the loss.
          if (!lines.some(({ client, text }) => client === 'verify' && text === 'dies')) await checkObjects(files);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Verify finds infected bytes in the store that are recorded as deleted, while a run deletes them again and may die or stall. */
export function createFoundInfected(stage: Stage): Scenario {
  return {
    name: 'infected bytes are found in the store while they are deleted',
    promise: 'infected bytes that are in the store are deleted by this run or by the next (P8)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      // The bytes were announced shortly before they were deleted, so an upload in progress may have brought them back.
      await addBlob(
        files,
        `state = 'infected', infected_at = now(), intended_at = now() - interval '65 minutes', deleted_at = now() - interval '1 hour'`,
      );
      const key = toBlobKey(advertiserId, sha256);
      return {
        programs: new Map<string, Program>([
          [
            'verify',
            async (actor) => {
              const isFound = await actor.act('lists the objects', () => files.objects.has(key));
              if (isFound) await markUndeleted(stage.database(actor.name), advertiserId, sha256);
            },
          ],
          ['delete', (actor) => giveUp(deleteDue(toDeleting(files, actor, false), never))],
        ]),
        mortal: ['delete'],
        lapses: [leaseMs + 1_000],
        commitsApart: true,
        async check() {
          await deleteLater(files);
          if (files.objects.size > 0) throw new Error('P8: infected bytes are in the store, and no run deletes them.');
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Verify adopts an object that has no row while a run announces the same bytes. */
export function createAdopted(stage: Stage): Scenario {
  return {
    name: 'an unknown object is adopted while its bytes are announced',
    promise: 'the bytes have one row, and the file is stored (P6)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set([toBlobKey(advertiserId, sha256)]) };
      await addFiles(files, [1]);
      return {
        programs: new Map<string, Program>([
          [
            'verify',
            async (actor) =>
              void (await adoptBlob(stage.database(actor.name), advertiserId, { sha256, sizeBytes: content.length })),
          ],
          ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
        ]),
        mortal: ['verify'],
        lapses: [],
        commitsApart: true,
        async check() {
          await checkObjects(files);
          const stored = await stage.query(
            `SELECT 1 FROM intake.attachments WHERE advertiser_id = $1 AND state = 'stored'`,
            [advertiserId],
          );
          assert.equal(stored.length, 1, 'P6: the file is not stored');
          await dropBlobs(files);
        },
      };
    },
  };
}

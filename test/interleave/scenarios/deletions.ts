// Equal bytes arrive while their object is deleted, for each reason to delete an object.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { beginDueDeletes, dropEarlierResume } from '../../../src/store/files/blobs.ts';
import { adoptBlob } from '../../../src/store/files/verify-blobs.ts';
import { deleteDue, deleteUnneeded } from '../../../src/sync/files/delete-objects.ts';
import type { Actor, Program } from '../schedule.ts';
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
  deleteAll,
  deleteLater,
  drop,
  dropOrphans,
  failOnWaiting,
  fetch,
  giveUp,
  lapses,
  loadFiles,
  openQueued,
  openShown,
  setStored,
  show,
  shown,
  toDeleting,
  unqueue,
  verify,
} from './clients.ts';
import { openLanes } from './lanes.ts';
import { Busy, content, type FilesOf, never, sha256, stopWhenBusy } from './objects.ts';

/**
 * An orphan is deleted while another person's equal bytes arrive; both clients may stall for longer than a delete token is valid.
 * `isLate`: the process sends the delete in time, and the object store executes it at any later step.
 */
function createOrphanOf(stage: Stage, isLate: boolean): Situation {
  return {
    promise: 'a file that is called stored has its object (P6)',
    // The repair after a late delete locks the blob before the application.
    allowsDeadlocks: isLate,
    async open() {
      const files = await openQueued(stage, [1]);
      await addBlob(files, `intended_at = now() - interval '2 days'`);
      return {
        programs: { delete: deleteOrphans(files, isLate), fetch: fetch(files) },
        // If a stalled process deletes late and dies before it checks, only the nightly verify finds the loss. So it may not die here.
        mortal: isLate ? ['fetch'] : ['delete', 'fetch'],
        lapses,
        check: checks(files, checkObjects),
      };
    },
  };
}

/** Drops orphans and deletes their objects. */
const deleteOrphans =
  (files: FilesOf, isLate: boolean): Program =>
  async (actor) => {
    const deps = toDeleting(files, actor, isLate);
    await dropOrphans(deps.store, files.advertiserId);
    await giveUp(deleteDue(deps, never));
  };

/** Checks that a flag names all bytes that are held to be infected. */
async function checkInfected({ stage, advertiserId }: FilesOf): Promise<void> {
  const rows = await stage.query(
    `SELECT 1 FROM intake.blobs b WHERE advertiser_id = $1 AND state = 'infected' AND NOT EXISTS (
       SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = $1 AND a.sha256 = b.sha256 AND a.has_virus)`,
    [advertiserId],
  );
  if (rows.length > 0) throw new Error('P6: bytes are held to be infected, and no flag names them.');
}

export const deletionScenarios = {
  orphan: (stage) => createOrphanOf(stage, false),
  'orphan-late': (stage) => createOrphanOf(stage, true),

  /** A run put its bytes two days ago and was suspended before it could complete. It completes while orphans are deleted. */
  'orphan-announced': (stage) => ({
    promise: 'a file that is called stored has its object (P6)',
    async open() {
      const files = await openQueued(stage, [1]);
      const claimed = await claimAll(files);
      await addBlob(files, `state = 'writing', verified_at = NULL, intended_at = now() - interval '2 days'`);
      await stage.query(`UPDATE intake.downloads SET sha256 = $2 WHERE advertiser_id = $1`, [
        files.advertiserId,
        sha256,
      ]);
      return {
        programs: { delete: deleteOrphans(files, false), run: complete(stage, claimed(1)) },
        mortal: ['delete', 'run'],
        check: checks(files, checkObjects, checkQueue),
      };
    },
  }),

  /**
   * The flag of bytes is lifted while they are being deleted. Then nothing refers to them, verify looks for orphans, and they arrive again.
   */
  'orphan-lifted': (stage) => ({
    promise: 'a file that is called stored has its object (P6)',
    async open() {
      const files = await openQueued(stage, [1]);
      const { advertiserId } = files;
      const token = crypto.randomUUID();
      await addBlob(
        files,
        `state = 'writing', intended_at = now() - interval '2 days', delete_token = '${token}', delete_until = now() + interval '30 seconds'`,
      );
      const blobs = [{ advertiserId, sha256, sizeBytes: content.length, key: toBlobKey(advertiserId, sha256) }];
      return {
        programs: {
          delete: async (actor) => {
            const { store, ...deps } = toDeleting(files, actor, false);
            const begun = [{ token, withinMs: 20_000, blobs }];
            const beginDueDeletes = async () => begun.pop() ?? { token, withinMs: 0, blobs: [] };
            const deletions = { ...store.deletions, beginDueDeletes };
            await deleteDue({ ...deps, store: { ...store, deletions } }, never);
          },
          verify: (actor) => dropOrphans(stage.store(actor.name), advertiserId),
          fetch: fetch(files),
        },
        mortal: ['delete'],
        check: checks(files, checkObjects),
      };
    },
  }),

  /** Infected bytes are deleted while another person's equal bytes arrive and a page lifts the flag. */
  infected: (stage) => ({
    promise: 'a file that is called stored has its object; infected bytes that are called deleted have none (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, advertiserId, read } = await openShown(stage, shown(1, { hasVirus: true }), shown(2));
      await addBlob(files, `state = 'infected', infected_at = now()`);
      await stage.query(`UPDATE intake.attachments SET sha256 = $2 WHERE advertiser_id = $1 AND state = 'infected'`, [
        advertiserId,
        sha256,
      ]);
      // A run that has ended had announced them too.
      await stage.query(`UPDATE intake.downloads SET sha256 = $2 WHERE advertiser_id = $1`, [advertiserId, sha256]);
      return {
        programs: { delete: deleteAll(files), fetch: fetch(files), page: read(shown(1)) },
        mortal: ['delete'],
        lapses,
        async check() {
          await checkObjects(files);
          const emptied = await stage.query(
            `SELECT 1 FROM intake.blobs WHERE advertiser_id = $1 AND state = 'infected' AND deleted_at IS NOT NULL`,
            [advertiserId],
          );
          if (emptied.length > 0 && files.objects.size > 0)
            throw new Error('P8: infected bytes are called deleted and are there.');
        },
      };
    },
  }),

  /** A stored file is flagged and its object deleted while a run fetches another person's equal bytes. */
  flagged: (stage) => ({
    promise: 'no byte of a flagged file can be read, however it came (P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, read } = await openShown(stage, shown(1), shown(2));
      await addBlob(files);
      await unqueue(files, 1);
      await setStored(files, 1);
      return {
        programs: { fetch: fetch(files), page: read(shown(1, { hasVirus: true })), delete: deleteAll(files) },
        mortal: ['delete'],
        async check() {
          await deleteLater(files);
          if (files.objects.size > 0) throw new Error('P8: flagged bytes are in the store, and no run deletes them.');
          await checkNoneStored(files);
        },
      };
    },
  }),

  /** A page lifts a flag while a run that lost its claim to this flag reports the bytes it fetched. */
  lifted: (stage) => ({
    promise: 'bytes that no flag names are not held to be infected (P6)',
    async open() {
      const { files, advertiserId, read } = await openShown(stage, shown(1, { hasVirus: true }));
      await addBlob(files);
      const claim = {
        ...{ advertiserId, applicationId: 1n, kind: 'resume' as const, token: crypto.randomUUID() },
        ...{ attempts: 1, lapses: 0, isServed: false, failedAt: Infinity },
      };
      const lost = { claim, uploadedAt: new Date(Date.UTC(2026, 0, 1)) };
      return {
        programs: {
          run: (actor) => stage.store(actor.name).blobs.markFetched(lost, sha256),
          page: read(shown(1)),
        },
        mortal: ['run'],
        async check() {
          await checkInfected(files);
          const [file] = await loadFiles(files);
          if (file?.state !== 'pending') throw new Error(`P6: a file whose flag was lifted is ${file?.state}.`);
          await checks(files, checkQueue, checkEvents)();
        },
      };
    },
  }),

  /** Two files have the same flagged bytes. The flag of one is lifted while the other is replaced, whose earlier version stays flagged. */
  'lifted-one': (stage) => ({
    promise: 'bytes are infected while a flag names them (P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const { live, backfill } = await openLanes(stage, name);
      const flagged = { hasVirus: true };
      const { files, read } = await show({ stage, advertiserId }, live, [shown(1, flagged), shown(2, flagged)]);
      await addBlob(files, `state = 'infected', infected_at = now()`);
      await stage.query(`UPDATE intake.attachments SET sha256 = $2 WHERE advertiser_id = $1`, [advertiserId, sha256]);
      return {
        programs: { lift: read(shown(1), 2n), replace: read(shown(2, { day: 2 }), 3n, backfill) },
        async check() {
          const [blob] = await stage.query(`SELECT state FROM intake.blobs WHERE advertiser_id = $1`, [advertiserId]);
          assert.deepEqual(blob, { state: 'infected' }, 'P8: bytes that a flag names are not infected');
          await checks(files, checkNoneStored, checkQueue, checkEvents)();
        },
      };
    },
  }),

  /** An erasure drops infected bytes while another run deletes them; a run that had announced them before puts them late. */
  'drop-infected': (stage) => ({
    promise: 'an erasure ends when the bytes that were there before it are deleted (P17)',
    async open() {
      const files = await openQueued(stage, [1]);
      const { advertiserId, objects } = files;
      const token = crypto.randomUUID();
      await addBlob(
        files,
        `state = 'infected', infected_at = now(), delete_token = '${token}', delete_until = now() + interval '30 seconds'`,
      );
      const key = toBlobKey(advertiserId, sha256);
      const ended: number[] = [];
      const deleted = [{ advertiserId, sha256, sizeBytes: content.length, key, keptVersions: 0 }];
      return {
        programs: {
          delete: async (actor) => {
            const { store, blobs } = toDeleting(files, actor, false);
            await blobs.delete(key, never);
            await store.deletions.confirmDeletion(token, deleted);
          },
          put: (actor) => actor.act('put', () => objects.add(key)),
          drop: async (actor) => {
            const deps = toDeleting(files, actor, false);
            await deleteUnneeded({ ...deps, store: stopWhenBusy(deps.store) }, advertiserId, [sha256], never).then(
              () => actor.act('ends', () => ended.push(objects.size)),
              (error: unknown) => {
                if (!(error instanceof Busy)) throw error;
              },
            );
          },
        },
        mortal: ['delete'],
        async check({ lines }) {
          const [putAt, droppedAt] = ['put', 'drop'].map((name) => lines.findIndex(({ client }) => client === name));
          if ((putAt ?? 0) < (droppedAt ?? 0) && ended.includes(1)) throw new Error('P17: bytes are called deleted.');
        },
      };
    },
  }),

  /** An erasure drops bytes and dies amid the delete, while another person's equal bytes arrive and a page replaces that file. */
  'drop-replaced': (stage) => ({
    promise: 'bytes that nothing refers to are deleted, also when the erasure dies (P17)',
    allowsDeadlocks: true,
    async open() {
      const { files, read } = await openShown(stage, shown(1));
      await addBlob(files);
      return {
        programs: { drop: drop(files), fetch: fetch(files), page: read(shown(1, { day: 2 })) },
        mortal: ['drop'],
        async check({ lines }) {
          await checkObjects(files);
          const isDropped = lines.some(({ client, text }) => client === 'drop' && text === 'COMMIT');
          await deleteLater(files);
          const needed = await stage.query(
            `SELECT 1 FROM intake.attachments WHERE advertiser_id = $1 AND sha256 = $2
             UNION SELECT 1 FROM intake.attachment_versions WHERE advertiser_id = $1 AND sha256 = $2`,
            [files.advertiserId, sha256],
          );
          if (isDropped && needed.length === 0) assert.equal(files.objects.size, 0, 'P17: bytes stay that nobody has');
        },
      };
    },
  }),

  /** Two runs of verify find a resume where earlier releases kept it. */
  'earlier-resume': (stage) => ({
    promise: 'it has one row, and nobody fails',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const key = `prefills/${advertiserId}/00000000-0000-0000-0000-000000000000`;
      const verifyIt = (actor: Actor) => dropEarlierResume(stage.database(actor.name), advertiserId, key);
      return {
        programs: { a: verifyIt, b: verifyIt },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          const rows = await stage.query(`SELECT state FROM intake.blobs WHERE advertiser_id = $1`, [advertiserId]);
          assert.deepEqual(rows, [{ state: 'deleting' }], 'it has one row');
        },
      };
    },
  }),

  /** Two runs fetched one file, each other bytes. One lost its claim; the other completes with bytes that the flag of another file names. */
  'fetched-twice': (stage) => ({
    promise: 'bytes that no flag names are not held to be infected (P6)',
    allowsDeadlocks: true,
    async open() {
      const { files, advertiserId } = await openShown(stage, shown(1), shown(2, { hasVirus: true }));
      await addBlob(files, `state = 'infected', infected_at = now()`);
      await stage.query(`UPDATE intake.attachments SET sha256 = $2 WHERE advertiser_id = $1 AND has_virus`, [
        advertiserId,
        sha256,
      ]);
      const claimed = await claimAll(files);
      const lost = { claim: { ...claimed(1), token: crypto.randomUUID() }, uploadedAt: new Date(Date.UTC(2026, 0, 1)) };
      return {
        programs: {
          lost: (actor) => stage.store(actor.name).blobs.markFetched(lost, hash('sha256', 'other bytes')),
          run: complete(stage, claimed(1)),
        },
        mortal: ['lost', 'run'],
        check: checks(files, checkInfected, checkNoneStored, checkQueue, checkEvents),
      };
    },
  }),

  /** Unreferenced bytes are dropped at once, as an erasure does, while another person's equal bytes arrive. */
  drop: (stage) => ({
    promise: 'a file that is called stored has its object (P6)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1]);
      await addBlob(files);
      return {
        programs: { drop: drop(files), fetch: fetch(files) },
        mortal: ['drop', 'fetch'],
        lapses,
        check: checks(files, checkObjects),
      };
    },
  }),

  /** Bytes are dropped at once while a page replaces the stored file that has them, which becomes an earlier version. */
  'drop-version': (stage) => ({
    promise: 'an earlier version that is called stored has its blob (P6)',
    async open() {
      const { files, read } = await openShown(stage, shown(1));
      await addBlob(files);
      await unqueue(files, 1);
      await setStored(files, 1);
      return {
        programs: { drop: drop(files), page: read(shown(1, { day: 2 })) },
        mortal: ['drop'],
        check: checks(files, checkStored),
      };
    },
  }),

  /** Four runs begin to delete at once; two of them drop orphans before. */
  deleters: (stage) => ({
    promise: 'no object is deleted by two runs, and neither waits for the other',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const add = (bytes: string, state: string, more: string, days = 2) =>
        stage.query(
          `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, intended_at, verified_at, infected_at)
           VALUES ($1, $2, 1, $2, $3, now() - $4 * interval '1 day', now() - interval '2 days', ${more})`,
          [advertiserId, hash('sha256', bytes), state, days],
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
        await dropOrphans(stage.store(actor.name), advertiserId);
        await begin(actor);
      };
      return {
        programs: { a: begin, b: begin, c: ofOrphans, d: ofOrphans },
        commitsApart: true,
        async check(outcome) {
          failOnWaiting(outcome, /^\s*WITH chosen AS MATERIALIZED/, 'a delete');
          assert.deepEqual(
            new Set(begun),
            new Set(['infected', 'orphan'].map((bytes) => hash('sha256', bytes))),
            'bytes that were announced since are deleted, or others are not',
          );
          assert.equal(begun.length, 2, 'an object is deleted by two runs');
        },
      };
    },
  }),

  /** Verify finds an object missing while a run stores the same bytes for another person. */
  lost: (stage) => ({
    promise: 'a file that is called stored has its blob, and its object (P6)',
    allowsDeadlocks: true,
    async open() {
      const files = await openQueued(stage, [1, 2]);
      await addBlob(files);
      await unqueue(files, 1);
      await setStored(files, 1);
      files.objects.clear();
      return {
        programs: { verify: verify(files), fetch: fetch(files) },
        mortal: ['verify', 'fetch'],
        async check({ lines }) {
          // If verify dies, the next verify finds the loss.
          if (!lines.some(({ client, text }) => client === 'verify' && text === 'dies')) await checkObjects(files);
        },
      };
    },
  }),

  /** Verify adopts an object that has no row while a run announces the same bytes. */
  adopted: (stage) => ({
    promise: 'the bytes have one row, and the file is stored (P6)',
    async open() {
      const files = await openQueued(stage, [1]);
      const { advertiserId } = files;
      files.objects.add(toBlobKey(advertiserId, sha256));
      const facts = { sha256, sizeBytes: content.length };
      return {
        programs: {
          verify: (actor) => adoptBlob(stage.database(actor.name), advertiserId, facts),
          fetch: fetch(files),
        },
        mortal: ['verify'],
        commitsApart: true,
        async check() {
          await checkObjects(files);
          const states = (await loadFiles(files)).map(({ state }) => state);
          assert.deepEqual(states, ['stored'], 'P6: the file is not stored');
        },
      };
    },
  }),
} satisfies Scenarios;

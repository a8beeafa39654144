// Downloads of files: which run completes one, when an application becomes ready, and what a virus flag does at the same time.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import type { ParsedScreens } from '../../../src/domain/application.ts';
import { toBlobKey } from '../../../src/domain/blob.ts';
import type { SweepEnd } from '../../../src/domain/coverage/certificate.ts';
import { completeDownloads } from '../../../src/store/files/complete-download.ts';
import { bringForward } from '../../../src/store/files/download-queue.ts';
import { replaceParsedScreens } from '../../../src/store/files/stored-files.ts';
import { deleteDue } from '../../../src/sync/files/delete-objects.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import type { Actor, Program } from '../schedule.ts';
import type { Scenarios, Situation, Stage } from '../stage.ts';
import {
  addBlob,
  addFiles,
  checkEvents,
  checkObjects,
  checkQueue,
  checks,
  claimAll,
  commit,
  complete,
  failOnWaiting,
  fetch,
  lapses,
  loadFiles,
  missing,
  openQueued,
  openShown,
  setStored,
  shown,
  toStored,
  type Upload,
} from './clients.ts';
import { holdsAt, longMs, openLane, privacyKey, proven } from './lanes.ts';
import { alone, claim, content, type FilesOf, fetchClaimed, never, sha256, toBlobs, toFiles } from './objects.ts';

/** Two runs each complete one file of the same application; the bytes may be equal. */
function createReadyOf(stage: Stage, areEqual: boolean): Situation {
  return {
    promise: 'the application becomes ready, once, and equal bytes are stored once (P4, P7, P26)',
    async open() {
      const bytes = (kind: string) => (areEqual || kind === 'resume' ? content : Buffer.from('the bytes of a  letter'));
      const files: FilesOf = { ...(await openQueued(stage, [1], ['coverLetter', 'resume'])), bytes };
      const claimed = await claimAll(files);
      const run = (kind: string) => (actor: Actor) => fetchClaimed(files, actor, [claimed(1, kind)]);
      return {
        programs: { letter: run('coverLetter'), resume: run('resume') },
        mortal: ['letter'],
        async check({ lines }) {
          await checks(files, checkObjects, checkQueue, checkEvents)();
          const [row] = await stage.query<{ ready: number; stored: number }>(
            `SELECT (SELECT count(*)::int FROM intake.events WHERE advertiser_id = $1 AND type = 'application.ready') AS ready,
               (SELECT count(*)::int FROM intake.blobs WHERE advertiser_id = $1) AS stored`,
            [files.advertiserId],
          );
          const isWhole = !lines.some(({ text }) => text === 'dies');
          if (isWhole) assert.deepEqual(row, { ready: 1, stored: areEqual ? 1 : 2 }, 'ready once, stored once');
        },
      };
    },
  };
}

/** Sets up a stored screen and a client that parses it again. */
async function openScreen(stage: Stage) {
  const { advertiserId, lease } = await openLane(stage);
  const files = toFiles({ stage, advertiserId });
  await addBlob(files);
  await addFiles(files, [1], ['screen']);
  const claimed = await claimAll(files);
  // The file is stored and also queued for another fetch, as when only its Hash changed.
  await setStored(files);
  await stage.query(`UPDATE intake.attachments SET parser_version = 1 WHERE advertiser_id = $1`, [advertiserId]);
  await stage.query(`UPDATE intake.applications SET ready_at = now() WHERE advertiser_id = $1`, [advertiserId]);
  const held = { advertiserId, applicationId: 1n, sha256, sizeBytes: 0, contentType: null };
  const reparse: Program = (actor) =>
    replaceParsedScreens(stage.database(actor.name), privacyKey, held, aParsedScreen('read again'), null);
  const flagged = anAttachment('screen', { hasVirus: true, sizeBytes: content.length });
  const page = aPage(lease, [anApplication(1, { attachments: [flagged] })], { advertiserId });
  return { advertiserId, lease, files, claim: claimed(1), reparse, read: commit(stage, page) };
}

function aParsedScreen(name: string): ParsedScreens {
  return { screens: [{ id: null, name, outcome: 'unknown', questions: [], notes: [] }], parserVersion: 2 } as never;
}

/** A file is replaced at the source while a run fetches it; the run may stall for longer than its claim, or die. */
function createReplacedOf(stage: Stage, first: Upload, second: Upload): Situation {
  return {
    promise: 'a stored file has the bytes of its newest upload (P6)',
    allowsDeadlocks: true,
    async open() {
      const { files: before, advertiserId, read } = await openShown(stage, shown(1, first));
      const replaced = Buffer.from('other bytes of a person');
      let bytes = content;
      const files: FilesOf = { ...before, bytes: () => bytes };
      const page = read(shown(1, second));
      return {
        programs: {
          run: fetch(files),
          page: async (actor) => {
            await actor.act('the file is replaced', () => {
              bytes = replaced;
            });
            await page(actor);
          },
        },
        mortal: ['run'],
        lapses,
        async check() {
          await checks(files, checkObjects, checkQueue)();
          if ((await loadFiles(files)).some((file) => file.state === 'stored' && file.sha256 === sha256))
            throw new Error('P6: stored with the bytes of an earlier upload.');
          const announced = await stage.query(
            `SELECT 1 FROM intake.downloads WHERE advertiser_id = $1 AND sha256 = $2`,
            [advertiserId, sha256],
          );
          if (announced.length > 0) throw new Error('P17: an erasure would look for the bytes of an earlier upload.');
        },
      };
    },
  };
}

export const fileScenarios = {
  ready: (stage) => createReadyOf(stage, false),
  'ready-equal': (stage) => createReadyOf(stage, true),

  /** One file, two runs, and a page that flags the file; the first run may stall for longer than its claim. */
  flag: (stage) => ({
    promise: 'one run completes it; once the flag is read no byte of it can be read (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, advertiserId, read } = await openShown(stage, shown(1));
      let ends = 0;
      const run = async (actor: Actor) => {
        for (const tier of ['usual', 'suspects'] as const) {
          const claims = await claim(files, actor, tier);
          if (claims.length === 0) continue;
          for (const end of await fetchClaimed(files, actor, claims)) {
            if (end.state === 'stored') ends++;
          }
        }
      };
      return {
        programs: { run, other: run, page: read(shown(1, { hasVirus: true })) },
        mortal: ['run'],
        lapses,
        async check(outcome) {
          if (ends > 1) throw new Error('P6: two runs completed one download.');
          failOnWaiting(outcome, /^WITH active AS/, 'a claim of downloads');
          const [file] = await loadFiles(files);
          if (file?.state !== 'infected') throw new Error(`P8: the flagged file is ${file?.state}.`);
          await deleteDue({ store: stage.directStore, blobs: toBlobs(alone, files.objects) }, never);
          if (files.objects.has(toBlobKey(advertiserId, sha256)))
            throw new Error('P8: the flagged bytes are still there.');
          await checkQueue(files);
        },
      };
    },
  }),

  replaced: (stage) => createReplacedOf(stage, { day: 1 }, { day: 2 }),
  rehashed: (stage) => createReplacedOf(stage, { uploadedAt: null }, { uploadedAt: null, sourceHash: 'another' }),

  /** A run completes a batch while its heartbeat renews the same claims in the opposite order. */
  batch: (stage) => ({
    promise: 'neither the heartbeat nor another claim waits, and nobody waits in a circle',
    async open() {
      const files = await openQueued(stage, [1, 2]);
      const { all: claims } = await claimAll(files);
      const ends: string[] = [];
      return {
        programs: {
          run: async (actor) => {
            const { downloads } = stage.store(actor.name);
            ends.push(...(await Promise.all(claims.map((one) => downloads.complete(one, missing)))));
          },
          beat: (actor) => stage.store(actor.name).downloads.renewDownloads(claims.toReversed(), longMs),
          other: (actor) => claim(files, actor),
        },
        mortal: ['run'],
        lapses,
        async check(outcome) {
          failOnWaiting(outcome, /^WITH active AS/, 'a claim of downloads');
          failOnWaiting(outcome, /^UPDATE intake\.downloads SET leased_until/, 'a heartbeat');
          // The heartbeat skips claims that a transaction locks. It must renew all others, so that they do not lapse.
          const { lines } = outcome;
          if (ends.includes('lost') && !lines.some(({ client }) => client === 'time'))
            throw new Error('P11: a claim that is held was taken by another run.');
          const renewedAt = lines.findIndex(({ client }) => client === 'beat');
          if (!holdsAt(lines, renewedAt, /^WITH ended AS/)) {
            const rows = await stage.query<{ left: number }>(
              `SELECT extract(epoch FROM leased_until - now())::float8 * 1000 AS left FROM intake.downloads
               WHERE advertiser_id = $1 AND lease_token = $2`,
              [files.advertiserId, claims[0]?.token],
            );
            if (rows.some(({ left }) => left < longMs / 2)) throw new Error('P11: a claim was not prolonged.');
          }
          await checks(files, checkQueue, checkEvents)();
        },
      };
    },
  }),

  /** A run links a file because its Hash has earned trust, while the comparison of another file contradicts the Hash. */
  trust: (stage) => ({
    promise: 'once the trust in Hash is lost, no file stays linked by it (P7)',
    async open() {
      const files = await openQueued(stage, [1, 2]);
      const { advertiserId } = files;
      await addBlob(files);
      await stage.query(`INSERT INTO intake.hash_trust (advertiser_id, agreed) VALUES ($1, 20)`, [advertiserId]);
      const claimed = await claimAll(files);
      const other = toStored(hash('sha256', 'other bytes'), { compared: 'contradicted' });
      return {
        programs: {
          link: complete(stage, claimed(1), toStored(sha256, { linkedBy: 'earned' })),
          compare: complete(stage, claimed(2), other),
        },
        mortal: ['link', 'compare'],
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.attachments JOIN intake.hash_trust USING (advertiser_id)
             WHERE advertiser_id = $1 AND linked AND state = 'stored' AND contradicted_at IS NOT NULL`,
            [advertiserId],
          );
          if (rows.length > 0) throw new Error('P7: a file is linked by a Hash that is not trusted.');
          await checkQueue(files);
        },
      };
    },
  }),

  /** Maintenance brings forward downloads whose due time came from a wrong clock, while a run completes them. */
  forward: (stage) => ({
    promise: 'maintenance waits for no run',
    async open() {
      const files = await openQueued(stage, [1, 2]);
      const { all: claims } = await claimAll(files);
      await stage.query(`UPDATE intake.downloads SET due_at = now() + interval '1 day' WHERE advertiser_id = $1`, [
        files.advertiserId,
      ]);
      const batch = claims.map((one) => ({ claim: one, completion: missing }));
      return {
        programs: {
          run: (actor) => completeDownloads(stage.database(actor.name), batch),
          maintenance: (actor) => bringForward(stage.database(actor.name)),
        },
        mortal: ['run'],
        async check(outcome) {
          failOnWaiting(outcome, /^UPDATE intake\.downloads SET due_at/, 'maintenance');
          await checkQueue(files);
        },
      };
    },
  }),

  /** A screen is read again while newer bytes of it complete. */
  reparse: (stage) => ({
    promise: 'the rows of a screen are read from the bytes that are stored (P6)',
    async open() {
      const { advertiserId, claim: claimed, reparse } = await openScreen(stage);
      const newer = toStored(hash('sha256', 'newer'), { screens: aParsedScreen('newer') });
      return {
        programs: { reparse, run: complete(stage, claimed, newer) },
        mortal: ['reparse'],
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.screens s JOIN intake.attachments a USING (advertiser_id, application_id)
             WHERE advertiser_id = $1 AND a.kind = 'screen' AND s.sha256 <> a.sha256`,
            [advertiserId],
          );
          if (rows.length > 0) throw new Error('P6: a screen shows other bytes than those that are stored.');
        },
      };
    },
  }),

  /** A screen is read again while a page flags it. */
  'reparse-flagged': (stage) => ({
    promise: 'no row is read from flagged bytes (P8)',
    async open() {
      const { advertiserId, read, reparse } = await openScreen(stage);
      return {
        programs: { reparse, page: read },
        mortal: ['reparse'],
        async check() {
          const rows = await stage.query(`SELECT 1 FROM intake.screens WHERE advertiser_id = $1`, [advertiserId]);
          assert.deepEqual(rows, [], 'P8: rows of a flagged screen');
        },
      };
    },
  }),

  /** A screen is read again while its application is found missing. */
  'reparse-missing': (stage) => ({
    promise: 'the last event of an application agrees with its state (P26)',
    async open() {
      const { advertiserId, lease, files, reparse } = await openScreen(stage);
      await stage.query(
        `UPDATE intake.applications SET absent_since = now() - interval '2 days' WHERE advertiser_id = $1`,
        [advertiserId],
      );
      const ended: SweepEnd = { ...proven, absent: 1, completeThrough: new Date() };
      // Two answers of the sweep lack it.
      const lacked = [{ id: 1n, old: true, again: false }];
      await commitPage(stage.direct, privacyKey, aPage(lease, [], { advertiserId, progress: { lacked } }));
      const page = aPage(lease, [], { advertiserId, progress: { lacked, ended } });
      return {
        programs: { reparse, page: commit(stage, page) },
        mortal: ['reparse'],
        check: checks(files, checkEvents),
      };
    },
  }),
} satisfies Scenarios;

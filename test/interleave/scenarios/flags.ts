// Virus flags and lost bytes while other clients change the files that have these bytes.
import { toBlobKey } from '../../../src/domain/blob.ts';
import type { Lease } from '../../../src/store/accounts/leases.ts';
import { claimDownloads } from '../../../src/store/files/download-queue.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import type { Scenario } from '../explorer.ts';
import type { Actor, Program } from '../schedule.ts';
import type { Stage } from '../stage.ts';
import { claimAll, completeOne, toStored } from './claims.ts';
import { checkEvents, checkQueue } from './files.ts';
import { leaseMs, openLane, openLanes, privacyKey } from './lanes.ts';
import {
  addBlob,
  checkObjects,
  claim,
  content,
  dropBlobs,
  type FilesOf,
  fetchClaimed,
  makeReady,
  never,
  sha256,
  toBlobs,
} from './objects.ts';

interface Upload {
  readonly hasVirus?: boolean;
  /** The day of the upload. */
  readonly day?: number;
}

const shown = (id: number, { hasVirus = false, day = 1 }: Upload = {}) =>
  anApplication(id, {
    attachments: [anAttachment('resume', { hasVirus, sizeBytes: content.length, uploadedAt: Date.UTC(2026, 0, day) })],
  });

/** Sets up an account whose second application has stored bytes and whose first application waits for its file. */
async function openHeld(stage: Stage) {
  const { advertiserId, name } = await stage.openAdvertiser();
  const lanes = await openLanes(stage, name);
  const files: FilesOf = { stage, advertiserId, objects: new Set() };
  await commitPage(stage.direct, privacyKey, aPage(lanes.live, [shown(1), shown(2)], { advertiserId }));
  await addBlob(files, `verified_at = now()`);
  await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1 AND application_id = 2`, [advertiserId]);
  await stage.query(
    `UPDATE intake.attachments SET state = 'stored', stored_at = now(), sha256 = $2 WHERE advertiser_id = $1 AND application_id = 2`,
    [advertiserId, sha256],
  );
  await makeReady(files);
  const read = (lease: Lease, application: ReturnType<typeof shown>, nth: bigint) => {
    const page = aPage(lease, [application], { advertiserId, sweepId: nth });
    return async (actor: Actor) => void (await commitPage(stage.database(actor.name), privacyKey, page));
  };
  return { advertiserId, ...lanes, files, read };
}

/** Checks that every stored file and every stored earlier version has a stored blob. */
async function checkStored({ stage, advertiserId }: FilesOf): Promise<void> {
  const rows = await stage.query<{ what: string; blob: string }>(
    `SELECT f.what, b.state AS blob FROM (
       SELECT 'a file' AS what, sha256 FROM intake.attachments WHERE advertiser_id = $1 AND state = 'stored'
       UNION ALL SELECT 'an earlier version', sha256 FROM intake.attachment_versions WHERE advertiser_id = $1 AND state = 'stored'
     ) AS f LEFT JOIN intake.blobs b ON b.advertiser_id = $1 AND b.sha256 = f.sha256 WHERE b.state IS DISTINCT FROM 'stored'`,
    [advertiserId],
  );
  const [wrong] = rows;
  if (wrong)
    throw new Error(
      `${wrong.blob === 'infected' ? 'P8' : 'P6'}: ${wrong.what} is called stored, and its blob is ${wrong.blob}.`,
    );
}

/** Checks that every flagged file is infected, and that its blob, if it has one, is infected (P8). */
async function checkFlags({ stage, advertiserId }: FilesOf): Promise<void> {
  const rows = await stage.query<{ application_id: string; state: string; blob: string | null }>(
    `SELECT a.application_id, a.state, b.state AS blob FROM intake.attachments a
     LEFT JOIN intake.blobs b ON b.advertiser_id = $1 AND b.sha256 = a.sha256 WHERE a.advertiser_id = $1 AND a.has_virus`,
    [advertiserId],
  );
  for (const { application_id: id, state, blob } of rows) {
    if (state !== 'infected') throw new Error(`P8: the flagged file of ${id} is ${state}.`);
    if (blob !== null && blob !== 'infected') throw new Error(`P8: flagged bytes of ${id} are ${blob}.`);
  }
}

/** A run completes a file with bytes that a page flags elsewhere, while another page replaces the file by a newer upload. */
export function createVersion(stage: Stage): Scenario {
  return {
    name: 'a file with flagged bytes is replaced while the flag is written',
    promise: 'no earlier version with flagged bytes is called stored (P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, backfill, files, read } = await openHeld(stage);
      const claimed = await claimAll(stage, advertiserId);
      return {
        programs: new Map<string, Program>([
          ['run', async (actor) => void (await completeOne(stage, actor, claimed(1), toStored(sha256)))],
          ['flag', read(backfill, shown(2, { hasVirus: true }), 2n)],
          ['replace', read(backfill, shown(1, { day: 2 }), 3n)],
        ]),
        mortal: [],
        lapses: [],
        async check() {
          await checkStored(files);
          await checkFlags(files);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Looks for the object as `intake verify` does, and records its loss. */
const verify = (files: FilesOf) => async (actor: Actor) => {
  const { stage, advertiserId, objects } = files;
  const facts = { sha256, sizeBytes: content.length };
  const condition = await toBlobs(actor, objects).verify(toBlobKey(advertiserId, sha256), facts, 'metadata', never);
  if (condition !== 'intact') await stage.store(actor.name).blobs.markDamaged(advertiserId, sha256);
};

/** Like `createVersion`, but the bytes are found lost instead of flagged. */
export function createLostVersion(stage: Stage): Scenario {
  return {
    name: 'a file with lost bytes is replaced while the loss is written',
    promise: 'no earlier version with lost bytes is called stored (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, live, files, read } = await openHeld(stage);
      const claimed = await claimAll(stage, advertiserId);
      files.objects.clear();
      return {
        programs: new Map<string, Program>([
          ['run', async (actor) => void (await completeOne(stage, actor, claimed(1), toStored(sha256)))],
          ['verify', verify(files)],
          ['replace', read(live, shown(1, { day: 2 }), 3n)],
        ]),
        mortal: [],
        lapses: [],
        async check({ lines }) {
          // If the file completes after the loss was recorded, its bytes exist again.
          const isMarked = lines.findIndex(({ text }) => text.includes(`SET state = 'damaged'`));
          const isTaken = lines.findIndex(({ text }) => text.startsWith('INSERT INTO intake.blobs'));
          if (isTaken < isMarked) await checkStored(files);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** What another client learns about the bytes: a page flags them, a run that lost its claim to a flag names them, or verify misses them. */
type Known = 'flagged' | 'named by a lost claim' | 'found lost';

/** Two files of one application complete with the same bytes while another client reports these bytes as flagged or lost. */
function createTwiceOf(stage: Stage, what: Known): Scenario {
  return {
    name: `two files of one application complete with bytes that are ${what} elsewhere`,
    promise: 'no file with flagged or lost bytes is called stored, and who gives up a deadlock tries again (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, live, files, read } = await openHeld(stage);
      await addLetter(files, 1);
      const { claims } = await claimDownloads(stage.direct, {
        ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
      });
      const [first] = claims;
      if (!first) throw new Error('Nothing was claimed.');
      const complete = (kind: string) => async (actor: Actor) => {
        for (const one of claims.filter((claimed) => claimed.kind === kind))
          await completeOne(stage, actor, one, toStored(sha256));
      };
      if (what === 'found lost') files.objects.clear();
      if (what === 'named by a lost claim') {
        await stage.query(
          `UPDATE intake.attachments SET state = 'infected', has_virus = true, sha256 = NULL, stored_at = NULL
           WHERE advertiser_id = $1 AND application_id = 2`,
          [advertiserId],
        );
      }
      const lost = {
        claim: { ...first, applicationId: 2n, token: crypto.randomUUID() },
        uploadedAt: new Date(Date.UTC(2026, 0, 1)),
      };
      const others: Record<Known, [string, Program]> = {
        flagged: ['flag', read(live, shown(2, { hasVirus: true }), 2n)],
        'named by a lost claim': ['recall', (actor) => stage.store(actor.name).blobs.markFetched(lost, sha256)],
        'found lost': ['verify', verify(files)],
      };
      return {
        programs: new Map<string, Program>([
          ['letter', complete('coverLetter')],
          ['resume', complete('resume')],
          others[what],
        ]),
        mortal: [],
        lapses: [],
        async check({ lines }) {
          const markedAt = lines.findLastIndex(({ text }) => text.includes(`SET state = 'damaged'`));
          const isLast = lines.findLastIndex(({ text }) => text.startsWith('INSERT INTO intake.blobs')) < markedAt;
          // If a file completes after the loss was recorded, its bytes exist again.
          if (what !== 'found lost' || isLast) await checkStored(files);
          await checkFlags(files);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

export const createFlaggedTwice = (stage: Stage) => createTwiceOf(stage, 'flagged');
export const createRecalledTwice = (stage: Stage) => createTwiceOf(stage, 'named by a lost claim');
export const createLostTwice = (stage: Stage) => createTwiceOf(stage, 'found lost');

async function addLetter({ stage, advertiserId }: FilesOf, id: number): Promise<void> {
  await stage.query(
    `WITH f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, size_bytes, uploaded_at)
       VALUES ($1, $2, 'coverLetter', 'pending', 1, '2026-01-01Z'))
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) VALUES ($1, $2, 'coverLetter', 0)`,
    [advertiserId, id],
  );
}

/** Verify finds bytes lost while a page flags the file that has them. */
export function createLostFlag(stage: Stage): Scenario {
  return {
    name: 'bytes are found lost while their file is flagged',
    promise: 'a flag holds also for bytes that are lost, and nobody waits in a circle (P8)',
    async open() {
      const { advertiserId, live, files, read } = await openHeld(stage);
      files.objects.clear();
      return {
        programs: new Map<string, Program>([
          ['verify', verify(files)],
          ['page', read(live, shown(2, { hasVirus: true }), 2n)],
        ]),
        mortal: ['verify'],
        lapses: [],
        async check() {
          await checkFlags(files);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** An object is lost after its upload and before its download completes; a page may flag the file at the same time. */
function createAnnouncedOf(stage: Stage, isFlagged: boolean): Scenario {
  return {
    name: `announced bytes are found lost while their download completes${isFlagged ? ' and its file is flagged' : ''}`,
    promise: 'a file that is called stored has its object, and a flag holds for announced bytes (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await commitPage(stage.direct, privacyKey, aPage(lease, [shown(1)], { advertiserId }));
      const page = aPage(lease, [shown(1, { hasVirus: true })], { advertiserId, sweepId: 2n });
      const programs = new Map<string, Program>([
        ['fetch', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
        [
          'verify',
          async (actor) => {
            await actor.act('the object is lost', () => files.objects.clear());
            await verify(files)(actor);
          },
        ],
      ]);
      if (isFlagged)
        programs.set('page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page)));
      return {
        programs,
        mortal: [],
        lapses: [],
        async check() {
          await checkObjects(files);
          await checkFlags(files);
          await checkQueue(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

export const createLostAnnounced = (stage: Stage) => createAnnouncedOf(stage, false);
export const createLostAnnouncedFlag = (stage: Stage) => createAnnouncedOf(stage, true);

/** One reader lifts the flag of a file while another reader flags a second file with the same bytes. */
export function createLiftedElsewhere(stage: Stage): Scenario {
  return {
    name: 'a flag is lifted while another file with the same bytes is flagged',
    promise: 'a flagged file is infected and waits for nothing, and its bytes are infected (P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, backfill, files, read } = await openHeld(stage);
      await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1`, [advertiserId]);
      await stage.query(
        `UPDATE intake.attachments SET state = 'infected', reason = 'test', stored_at = NULL, sha256 = $2, has_virus = application_id = 1
         WHERE advertiser_id = $1`,
        [advertiserId, sha256],
      );
      await stage.query(`UPDATE intake.applications SET content_hash = '' WHERE advertiser_id = $1`, [advertiserId]);
      await makeReady(files);
      await stage.query(`UPDATE intake.blobs SET state = 'infected', infected_at = now() WHERE advertiser_id = $1`, [
        advertiserId,
      ]);
      return {
        programs: new Map<string, Program>([
          ['lift', read(backfill, shown(1), 2n)],
          ['flag', read(backfill, shown(2, { hasVirus: true }), 3n)],
        ]),
        mortal: ['lift'],
        lapses: [],
        async check() {
          await checkFlags(files);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** A flagged upload replaces a file while a run fetches the previous bytes, which another application also has. */
export function createReplacedFlagged(stage: Stage): Scenario {
  return {
    name: 'a file is replaced by a flagged one while the bytes before are fetched',
    promise: 'a flag on another upload says nothing of the bytes before (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, live, files: held, read } = await openHeld(stage);
      let bytes = content;
      const files: FilesOf = { ...held, bytes: () => bytes };
      const page = read(live, shown(1, { hasVirus: true, day: 2 }), 2n);
      return {
        programs: new Map<string, Program>([
          ['run', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
          [
            'page',
            async (actor) => {
              await actor.act('the file is replaced', () => {
                bytes = Buffer.from('other bytes of one person');
              });
              await page(actor);
            },
          ],
        ]),
        mortal: ['run'],
        lapses: [leaseMs + 1_000],
        async check() {
          await checkStored(files);
          await checkObjects(files);
          const rows = await stage.query(
            `SELECT 1 FROM intake.attachments WHERE advertiser_id = $1 AND application_id = 2 AND state = 'stored'`,
            [advertiserId],
          );
          if (rows.length === 0) throw new Error('P6: a file is not stored any more, and no flag names its bytes.');
          await dropBlobs(files);
        },
      };
    },
  };
}

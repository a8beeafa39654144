// Virus flags and lost bytes while other clients change the files that have these bytes.
import type { Outcome, Program } from '../schedule.ts';
import type { Scenarios, Situation, Stage } from '../stage.ts';
import {
  addBlob,
  checkEvents,
  checkObjects,
  checkQueue,
  checkStored,
  checks,
  claimAll,
  complete,
  fetch,
  lapses,
  loadFiles,
  makeReady,
  openShown,
  setStored,
  show,
  shown,
  unqueue,
  verify,
} from './clients.ts';
import { openLanes } from './lanes.ts';
import { type Account, content, type FilesOf, sha256 } from './objects.ts';

/** Sets up an account whose second application has stored bytes and whose first application waits for its file. */
async function openHeld(stage: Stage) {
  const { advertiserId, name } = await stage.openAdvertiser();
  const { live, backfill } = await openLanes(stage, name);
  const account = await show({ stage, advertiserId }, live, [shown(1), shown(2)]);
  const { files } = account;
  await addBlob(files);
  await unqueue(files, 2);
  await setStored(files, 2);
  await makeReady(files);
  return { ...account, backfill };
}

/** Checks that every flagged file is infected, and that its blob, if it has one, is infected (P8). */
async function checkFlags({ stage, advertiserId }: Account): Promise<void> {
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

/** True when a file completes after the loss of its bytes was recorded: they exist again. */
function isStoredAfterLoss({ lines }: Outcome): boolean {
  const lostAt = lines.findLastIndex(({ text }) => text.includes(`SET state = 'damaged'`));
  return lines.findLastIndex(({ text }) => text.startsWith('INSERT INTO intake.blobs')) >= lostAt;
}

/** What another client learns about the bytes: a page flags them, a run that lost its claim to a flag names them, or verify misses them. */
type Known = 'flagged' | 'named by a lost claim' | 'found lost';

/** Two files of one application complete with the same bytes while another client reports these bytes as flagged or lost. */
function createTwiceOf(stage: Stage, what: Known): Situation {
  return {
    promise: 'no file with flagged or lost bytes is called stored, and who gives up a deadlock tries again (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, advertiserId, read } = await openHeld(stage);
      await addLetter(files, 1);
      const claimed = await claimAll(files);
      if (what === 'found lost') files.objects.clear();
      if (what === 'named by a lost claim') {
        await stage.query(
          `UPDATE intake.attachments SET state = 'infected', has_virus = true, sha256 = NULL, stored_at = NULL
           WHERE advertiser_id = $1 AND application_id = 2`,
          [advertiserId],
        );
      }
      const lost = {
        claim: { ...claimed(1), applicationId: 2n, token: crypto.randomUUID() },
        uploadedAt: new Date(Date.UTC(2026, 0, 1)),
      };
      const others: Record<Known, Readonly<Record<string, Program>>> = {
        flagged: { flag: read(shown(2, { hasVirus: true }), 2n) },
        'named by a lost claim': { recall: (actor) => stage.store(actor.name).blobs.markFetched(lost, sha256) },
        'found lost': { verify: verify(files) },
      };
      return {
        programs: {
          letter: complete(stage, claimed(1, 'coverLetter')),
          resume: complete(stage, claimed(1, 'resume')),
          ...others[what],
        },
        async check(outcome) {
          if (what !== 'found lost' || !isStoredAfterLoss(outcome)) await checkStored(files);
          await checks(files, checkFlags, checkQueue, checkEvents)();
        },
      };
    },
  };
}

async function addLetter({ stage, advertiserId }: Account, id: number): Promise<void> {
  await stage.query(
    `WITH f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, size_bytes, uploaded_at)
       VALUES ($1, $2, 'coverLetter', 'pending', 1, '2026-01-01Z'))
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) VALUES ($1, $2, 'coverLetter', 0)`,
    [advertiserId, id],
  );
}

/** An object is lost after its upload and before its download completes; a page may flag the file at the same time. */
function createAnnouncedOf(stage: Stage, isFlagged: boolean): Situation {
  return {
    promise: 'a file that is called stored has its object, and a flag holds for announced bytes (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, read } = await openShown(stage, shown(1));
      return {
        programs: {
          fetch: fetch(files),
          verify: async (actor) => {
            await actor.act('the object is lost', () => files.objects.clear());
            await verify(files)(actor);
          },
          ...(isFlagged && { page: read(shown(1, { hasVirus: true }), 2n) }),
        },
        check: checks(files, checkObjects, checkFlags, checkQueue),
      };
    },
  };
}

export const flagScenarios = {
  /** A run completes a file with bytes that a page flags elsewhere, while another page replaces the file by a newer upload. */
  version: (stage) => ({
    promise: 'no earlier version with flagged bytes is called stored (P8)',
    allowsDeadlocks: true,
    async open() {
      const { files, backfill, read } = await openHeld(stage);
      const claimed = await claimAll(files);
      return {
        programs: {
          run: complete(stage, claimed(1)),
          flag: read(shown(2, { hasVirus: true }), 2n, backfill),
          replace: read(shown(1, { day: 2 }), 3n, backfill),
        },
        check: checks(files, checkStored, checkFlags, checkQueue, checkEvents),
      };
    },
  }),

  /** Like `version`, but the bytes are found lost instead of flagged. */
  'lost-version': (stage) => ({
    promise: 'no earlier version with lost bytes is called stored (P6)',
    allowsDeadlocks: true,
    async open() {
      const { files, read } = await openHeld(stage);
      const claimed = await claimAll(files);
      files.objects.clear();
      return {
        programs: { run: complete(stage, claimed(1)), verify: verify(files), replace: read(shown(1, { day: 2 }), 3n) },
        async check(outcome) {
          if (!isStoredAfterLoss(outcome)) await checkStored(files);
          await checks(files, checkQueue, checkEvents)();
        },
      };
    },
  }),

  'flagged-twice': (stage) => createTwiceOf(stage, 'flagged'),
  'recalled-twice': (stage) => createTwiceOf(stage, 'named by a lost claim'),
  'lost-twice': (stage) => createTwiceOf(stage, 'found lost'),

  /** Verify finds bytes lost while a page flags the file that has them. */
  'lost-flag': (stage) => ({
    promise: 'a flag holds also for bytes that are lost, and nobody waits in a circle (P8)',
    async open() {
      const { files, read } = await openHeld(stage);
      files.objects.clear();
      return {
        programs: { verify: verify(files), page: read(shown(2, { hasVirus: true }), 2n) },
        mortal: ['verify'],
        check: checks(files, checkFlags, checkQueue, checkEvents),
      };
    },
  }),

  'lost-announced': (stage) => createAnnouncedOf(stage, false),
  'lost-announced-flag': (stage) => createAnnouncedOf(stage, true),

  /** A flagged upload replaces a file while a run fetches the previous bytes, which another application also has. */
  'replaced-flagged': (stage) => ({
    promise: 'a flag on another upload says nothing of the bytes before (P6)',
    allowsDeadlocks: true,
    async open() {
      const { files: held, read } = await openHeld(stage);
      let bytes = content;
      const files: FilesOf = { ...held, bytes: () => bytes };
      const page = read(shown(1, { hasVirus: true, day: 2 }), 2n);
      return {
        programs: {
          run: fetch(files),
          page: async (actor) => {
            await actor.act('the file is replaced', () => {
              bytes = Buffer.from('other bytes of one person');
            });
            await page(actor);
          },
        },
        mortal: ['run'],
        lapses,
        async check() {
          await checks(files, checkStored, checkObjects)();
          const [, second] = await loadFiles(files);
          if (second?.state !== 'stored')
            throw new Error('P6: a file is not stored any more, and no flag names its bytes.');
        },
      };
    },
  }),
} satisfies Scenarios;

// Downloads of files: which run completes one, when an application becomes ready, and what a virus flag does at the same time.
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { toBlobKey } from '../../../src/domain/blob.ts';
import type { SweepEnd } from '../../../src/domain/coverage/certificate.ts';
import type { ParsedScreens } from '../../../src/domain/screen.ts';
import { completeDownloads, type StoredFile } from '../../../src/store/files/complete-download.ts';
import { bringForward, claimDownloads } from '../../../src/store/files/download-queue.ts';
import { replaceParsedScreens } from '../../../src/store/files/stored-files.ts';
import { deleteDue } from '../../../src/sync/files/delete-objects.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import type { Scenario } from '../explorer.ts';
import type { Actor, Outcome, Program } from '../schedule.ts';
import type { Stage } from '../stage.ts';
import { holdsAt, leaseMs, longMs, openLane, privacyKey } from './lanes.ts';
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
  toBlobs,
} from './objects.ts';

/** Checks that the last event of each application agrees with its state (P26). */
export async function checkEvents(stage: Stage, advertiserId: bigint): Promise<void> {
  const rows = await stage.query<{
    application_id: string;
    last: string | null;
    ready: boolean;
    missing: boolean;
    erased: boolean;
  }>(
    `SELECT a.application_id, a.ready_at IS NOT NULL AS ready, a.missing_since IS NOT NULL AS missing, a.erased_at IS NOT NULL AS erased,
       e.type AS last
     FROM intake.applications a LEFT JOIN LATERAL (
       SELECT type FROM intake.events e WHERE e.advertiser_id = $1 AND e.application_id = a.application_id
       ORDER BY event_id DESC LIMIT 1) AS e ON true WHERE a.advertiser_id = $1`,
    [advertiserId],
  );
  for (const { application_id: id, last, ready, missing, erased } of rows) {
    const state = erased ? 'erased' : missing ? 'missing' : ready ? 'ready' : 'pending';
    const isTold = {
      erased: last === 'application.erased',
      missing: last === 'application.missing',
      ready: last === 'application.ready' || last === 'application.changed',
      pending: true,
    }[state];
    if (!isTold) throw new Error(`P26: the last event of ${id} is ${last}, and it is ${state}.`);
  }
}

/** Checks that an application is ready exactly when no attachment is pending, and that exactly the pending files are queued (P4). */
export async function checkQueue(stage: Stage, advertiserId: bigint): Promise<void> {
  const rows = await stage.query<{ wrong: string }>(
    `SELECT format('application %s is %s', a.application_id, CASE WHEN ready_at IS NULL THEN 'not ready' ELSE 'ready' END) AS wrong
     FROM intake.applications a WHERE a.advertiser_id = $1 AND a.erased_at IS NULL AND (a.ready_at IS NULL) <> EXISTS (
       SELECT 1 FROM intake.attachments f WHERE f.advertiser_id = $1 AND f.application_id = a.application_id AND f.state = 'pending')
     UNION ALL
     SELECT format('%s of %s is %s and %s', f.kind, f.application_id, f.state, CASE WHEN d.kind IS NULL THEN 'not queued' ELSE 'queued' END)
     FROM intake.attachments f LEFT JOIN intake.downloads d USING (advertiser_id, application_id, kind)
     WHERE f.advertiser_id = $1 AND (f.state = 'pending') <> (d.kind IS NOT NULL)`,
    [advertiserId],
  );
  if (rows[0]) throw new Error(`P4: ${rows[0].wrong}.`);
}

/** Two runs each complete one file of the same application; the bytes may be equal. */
function createReadyOf(stage: Stage, areEqual: boolean): Scenario {
  return {
    name: `two files of one application complete at once${areEqual ? ', with equal bytes' : ''}`,
    promise: 'the application becomes ready, once, and equal bytes are stored once (P4, P7, P26)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const bytes = (kind: string) => (areEqual || kind === 'resume' ? content : Buffer.from('the bytes of a  letter'));
      const files: FilesOf = { stage, advertiserId, objects: new Set(), bytes };
      await addFiles(files, [1], ['coverLetter', 'resume']);
      const { claims } = await stage.directStore.downloads.claim({
        ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
      });
      const complete = (kind: string) => async (actor: Actor) =>
        void (await fetchClaimed(
          files,
          actor,
          claims.filter((one) => one.kind === kind),
        ));
      return {
        programs: new Map<string, Program>([
          ['letter', complete('coverLetter')],
          ['resume', complete('resume')],
        ]),
        mortal: ['letter'],
        lapses: [],
        async check({ lines }) {
          await checkObjects(files);
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
          const [row] = await stage.query<{ ready: number; stored: number }>(
            `SELECT (SELECT count(*)::int FROM intake.events WHERE advertiser_id = $1 AND type = 'application.ready') AS ready,
               (SELECT count(*)::int FROM intake.blobs WHERE advertiser_id = $1) AS stored`,
            [advertiserId],
          );
          const isWhole = !lines.some(({ text }) => text === 'dies');
          if (isWhole) assert.deepEqual(row, { ready: 1, stored: areEqual ? 1 : 2 }, 'ready once, stored once');
          await dropBlobs(files);
        },
      };
    },
  };
}

export const createReady = (stage: Stage) => createReadyOf(stage, false);
export const createReadyEqual = (stage: Stage) => createReadyOf(stage, true);

/** One file, two runs, and a page that flags the file; the first run may stall for longer than its claim. */
export function createFlag(stage: Stage): Scenario {
  return {
    name: 'one file, two runs, and a flag',
    promise: 'one run completes it; once the flag is read no byte of it can be read (P6, P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      const shown = (hasVirus: boolean) =>
        anApplication(1, { attachments: [anAttachment('resume', { hasVirus, sizeBytes: content.length })] });
      await commitPage(stage.direct, privacyKey, aPage(lease, [shown(false)], { advertiserId }));
      const page = aPage(lease, [shown(true)], { advertiserId });
      let ends = 0;
      const run = async (actor: Actor) => {
        for (const lane of ['usual', 'suspects'] as const) {
          const claims = await claim(files, actor, leaseMs, lane);
          if (claims.length === 0) continue;
          for (const end of await fetchClaimed(files, actor, claims)) {
            if (end.state === 'stored') ends++;
          }
        }
      };
      return {
        programs: new Map<string, Program>([
          ['run1', run],
          ['run2', run],
          ['page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page))],
        ]),
        mortal: [],
        lapses: [leaseMs + 1_000],
        async check(outcome) {
          if (ends > 1) throw new Error('P6: two runs completed one download.');
          failOnWaiting(outcome, /^WITH active AS/, 'a claim of downloads');
          const [row] = await stage.query<{ state: string }>(
            `SELECT state FROM intake.attachments WHERE advertiser_id = $1`,
            [advertiserId],
          );
          if (row?.state !== 'infected') throw new Error(`P8: the flagged file is ${row?.state}.`);
          const cleaner: Actor = { name: 'cleaner', act: async (_, work) => work() };
          await deleteDue({ store: stage.directStore, blobs: toBlobs(cleaner, files.objects) }, never);
          if (files.objects.has(toBlobKey(advertiserId, sha256)))
            throw new Error('P8: the flagged bytes are still there.');
          await checkQueue(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** A file is replaced at the source while a run fetches it; the run may stall for longer than its claim, or die. */
export function createReplaced(stage: Stage): Scenario {
  return {
    name: 'a file is replaced while it is fetched',
    promise: 'a stored file has the bytes of its newest upload (P6)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const replaced = Buffer.from('other bytes of one person');
      let bytes = content;
      const files: FilesOf = { stage, advertiserId, objects: new Set(), bytes: () => bytes };
      const shown = (upload: number, sizeBytes: number) =>
        anApplication(1, {
          attachments: [anAttachment('resume', { sizeBytes, uploadedAt: Date.UTC(2026, 0, upload) })],
        });
      await commitPage(stage.direct, privacyKey, aPage(lease, [shown(1, content.length)], { advertiserId }));
      const page = aPage(lease, [shown(2, replaced.length)], { advertiserId });
      return {
        programs: new Map<string, Program>([
          ['run', async (actor) => void (await fetchClaimed(files, actor, await claim(files, actor, leaseMs)))],
          [
            'page',
            async (actor) => {
              await actor.act('the file is replaced', () => {
                bytes = replaced;
              });
              await commitPage(stage.database(actor.name), privacyKey, page);
            },
          ],
        ]),
        mortal: ['run'],
        lapses: [leaseMs + 1_000],
        async check() {
          await checkObjects(files);
          await checkQueue(stage, advertiserId);
          const rows = await stage.query<{ sha256: string }>(
            `SELECT sha256 FROM intake.attachments WHERE advertiser_id = $1 AND state = 'stored'`,
            [advertiserId],
          );
          if (rows.some((row) => row.sha256 === sha256))
            throw new Error('P6: stored with the bytes of an earlier upload.');
          const announced = await stage.query(
            `SELECT 1 FROM intake.downloads WHERE advertiser_id = $1 AND sha256 = $2`,
            [advertiserId, sha256],
          );
          if (announced.length > 0) throw new Error('P17: an erasure would look for the bytes of an earlier upload.');
          await dropBlobs(files);
        },
      };
    },
  };
}

export function failOnWaiting({ lines }: Outcome, text: RegExp, what: string): void {
  const waiting = lines.find((line) => line.waited && text.test(line.text));
  if (waiting) throw new Error(`${waiting.client} waits with ${what}.`);
}

/** A run completes a batch while its heartbeat renews the same claims in the opposite order. */
export function createBatch(stage: Stage): Scenario {
  return {
    name: 'a batch completes beside its heartbeat and another claim',
    promise: 'neither the heartbeat nor another claim waits, and nobody waits in a circle',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addFiles(files, [1, 2]);
      const { claims } = await stage.directStore.downloads.claim({
        ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
      });
      return {
        programs: new Map<string, Program>([
          [
            'run',
            async (actor) => {
              const store = stage.store(actor.name);
              const reason = 'the source does not have it';
              await Promise.all(
                claims.map((one) => store.downloads.complete(one, { kind: 'final', state: 'missing', reason })),
              );
            },
          ],
          ['beat', async (actor) => await stage.store(actor.name).downloads.renew(claims.toReversed(), longMs)],
          ['other', async (actor) => void (await claim(files, actor, leaseMs))],
        ]),
        mortal: ['run'],
        lapses: [leaseMs + 1_000],
        async check(outcome) {
          failOnWaiting(outcome, /^WITH active AS/, 'a claim of downloads');
          failOnWaiting(outcome, /^UPDATE intake\.downloads SET leased_until/, 'a heartbeat');
          // The heartbeat skips claims that a transaction locks. It must renew all others, so that they do not lapse.
          const { lines } = outcome;
          const renewedAt = lines.findIndex(({ client }) => client === 'beat');
          if (!holdsAt(lines, renewedAt, /^WITH ended AS/)) {
            const rows = await stage.query<{ left: number }>(
              `SELECT extract(epoch FROM leased_until - now())::float8 * 1000 AS left FROM intake.downloads
               WHERE advertiser_id = $1 AND lease_token = $2`,
              [advertiserId, claims[0]?.token],
            );
            if (rows.some(({ left }) => left < longMs / 2)) throw new Error('P11: a claim was not prolonged.');
          }
          await checkQueue(stage, advertiserId);
          await checkEvents(stage, advertiserId);
        },
      };
    },
  };
}

/** A run links a file because its Hash has earned trust, while the comparison of another file contradicts the Hash. */
export function createTrust(stage: Stage): Scenario {
  return {
    name: 'a file is linked by its Hash while another one contradicts the Hash',
    promise: 'once the trust in Hash is lost, no file stays linked by it (P7)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addBlob(files, `verified_at = now()`);
      await addFiles(files, [1, 2]);
      await stage.query(`INSERT INTO intake.hash_trust (advertiser_id, agreed) VALUES ($1, 20)`, [advertiserId]);
      const { claims } = await claimDownloads(stage.direct, {
        ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
      });
      const end = (id: bigint, how: Partial<StoredFile>) => async (actor: Actor) => {
        const claim = claims.find((one) => one.applicationId === id);
        if (!claim) throw new Error('Nothing was claimed.');
        const bytes = how.linkedBy ? sha256 : hash('sha256', 'other bytes');
        const blob = { sha256: bytes, sizeBytes: content.length };
        const described = { contentType: null, detectedType: null, fileName: null };
        const completion: StoredFile = {
          ...{ kind: 'stored', blob, ...described, notes: [], linkedBy: null, compared: null, screens: null },
          ...how,
        };
        await completeDownloads(stage.database(actor.name), [{ claim, completion }]);
      };
      return {
        programs: new Map<string, Program>([
          ['link', end(1n, { linkedBy: 'earned' })],
          ['compare', end(2n, { compared: 'contradicted' })],
        ]),
        mortal: ['link', 'compare'],
        lapses: [],
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.attachments JOIN intake.hash_trust USING (advertiser_id)
             WHERE advertiser_id = $1 AND linked AND state = 'stored' AND contradicted_at IS NOT NULL`,
            [advertiserId],
          );
          if (rows.length > 0) throw new Error('P7: a file is linked by a Hash that is not trusted.');
          await checkQueue(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** Maintenance brings forward downloads whose due time came from a wrong clock, while a run completes them. */
export function createForward(stage: Stage): Scenario {
  return {
    name: 'downloads are brought forward while a run completes them',
    promise: 'maintenance waits for no run',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      await addFiles(files, [1, 2]);
      const { claims } = await claimDownloads(stage.direct, {
        ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
      });
      await stage.query(`UPDATE intake.downloads SET due_at = now() + interval '1 day' WHERE advertiser_id = $1`, [
        advertiserId,
      ]);
      const completion = { kind: 'final', state: 'missing', reason: 'the source does not have it' } as const;
      return {
        programs: new Map<string, Program>([
          [
            'run',
            async (actor) =>
              void (await completeDownloads(
                stage.database(actor.name),
                claims.map((claim) => ({ claim, completion })),
              )),
          ],
          ['maintenance', (actor) => bringForward(stage.database(actor.name))],
        ]),
        mortal: ['run'],
        lapses: [],
        async check(outcome) {
          failOnWaiting(outcome, /^UPDATE intake\.downloads SET due_at/, 'maintenance');
          await checkQueue(stage, advertiserId);
        },
      };
    },
  };
}

/** Sets up a stored screen and a client that parses it again. */
async function openScreen(stage: Stage) {
  const { advertiserId, lease } = await openLane(stage);
  const files: FilesOf = { stage, advertiserId, objects: new Set() };
  await addBlob(files, `verified_at = now()`);
  await addFiles(files, [1], ['screen']);
  const { claims } = await claimDownloads(stage.direct, {
    ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
  });
  const [claim] = claims;
  if (!claim) throw new Error('Nothing was claimed.');
  // The file is stored and also queued for another fetch, as when only its Hash changed.
  await stage.query(
    `UPDATE intake.attachments SET state = 'stored', stored_at = now(), sha256 = $2, parser_version = 1 WHERE advertiser_id = $1`,
    [advertiserId, sha256],
  );
  await stage.query(`UPDATE intake.applications SET ready_at = now() WHERE advertiser_id = $1`, [advertiserId]);
  const held = { advertiserId, applicationId: 1n, sha256, sizeBytes: 0, contentType: null };
  const reparse: Program = async (actor) =>
    void (await replaceParsedScreens(stage.database(actor.name), privacyKey, held, aParsedScreen('read again'), null));
  return { advertiserId, lease, files, claim, reparse };
}

function aParsedScreen(name: string): ParsedScreens {
  return { screens: [{ id: null, name, outcome: 'unknown', questions: [], notes: [] }], parserVersion: 2 } as never;
}

export function createReparse(stage: Stage): Scenario {
  return {
    name: 'a screen is read again while newer bytes of it complete',
    promise: 'the rows of a screen are read from the bytes that are stored (P6)',
    async open() {
      const { advertiserId, files, claim, reparse } = await openScreen(stage);
      const newer = hash('sha256', 'newer');
      const completion: StoredFile = {
        ...{ kind: 'stored', blob: { sha256: newer, sizeBytes: 1 } },
        ...{ contentType: null, detectedType: null, fileName: null },
        ...{ notes: [], linkedBy: null, compared: null, screens: aParsedScreen('newer') },
      };
      return {
        programs: new Map<string, Program>([
          ['reparse', reparse],
          ['run', async (actor) => void (await completeDownloads(stage.database(actor.name), [{ claim, completion }]))],
        ]),
        mortal: ['reparse'],
        lapses: [],
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.screens s JOIN intake.attachments a USING (advertiser_id, application_id)
             WHERE advertiser_id = $1 AND a.kind = 'screen' AND s.sha256 <> a.sha256`,
            [advertiserId],
          );
          if (rows.length > 0) throw new Error('P6: a screen shows other bytes than those that are stored.');
          await dropBlobs(files);
        },
      };
    },
  };
}

export function createReparseMissing(stage: Stage): Scenario {
  return {
    name: 'a screen is read again while its application is found missing',
    promise: 'the last event of an application agrees with its state (P26)',
    async open() {
      const { advertiserId, lease, files, reparse } = await openScreen(stage);
      await stage.query(
        `UPDATE intake.applications SET absent_since = now() - interval '2 days' WHERE advertiser_id = $1`,
        [advertiserId],
      );
      const ended: SweepEnd = {
        ...{
          certificate: 'proven',
          risk: 'none',
          reason: 'test',
          openRanges: 0,
          absent: 1,
          tryDates: false,
          pages: null,
          completeThrough: new Date(),
        },
      };
      // Two answers of the sweep lack it.
      const lacked = [{ id: 1n, old: true, again: false }];
      await commitPage(stage.direct, privacyKey, aPage(lease, [], { advertiserId, progress: { lacked } }));
      const page = aPage(lease, [], { advertiserId, progress: { lacked, ended } });
      return {
        programs: new Map<string, Program>([
          ['reparse', reparse],
          ['page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page))],
        ]),
        mortal: ['reparse'],
        lapses: [],
        async check() {
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

/** A repeated fetch finds the same bytes, while a page flags these bytes at another application. */
export function createConfirmed(stage: Stage): Scenario {
  return {
    name: 'a file is confirmed while the same bytes are flagged elsewhere',
    promise: 'no file with flagged bytes is called stored (P8)',
    allowsDeadlocks: true,
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const files: FilesOf = { stage, advertiserId, objects: new Set() };
      const shown = (id: number, hasVirus: boolean) =>
        anApplication(id, { attachments: [anAttachment('resume', { hasVirus, sizeBytes: content.length })] });
      await commitPage(stage.direct, privacyKey, aPage(lease, [shown(1, false), shown(2, false)], { advertiserId }));
      const { claims } = await claimDownloads(stage.direct, {
        ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
      });
      await addBlob(files, `verified_at = now()`);
      await stage.query(
        `UPDATE intake.attachments SET state = 'stored', stored_at = now(), sha256 = $2 WHERE advertiser_id = $1`,
        [advertiserId, sha256],
      );
      await stage.query(`UPDATE intake.applications SET ready_at = now() WHERE advertiser_id = $1`, [advertiserId]);
      await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1 AND application_id = 2`, [advertiserId]);
      const claim = claims.find((one) => one.applicationId === 1n);
      if (!claim) throw new Error('Nothing was claimed.');
      const completion: StoredFile = {
        ...{ kind: 'stored', blob: { sha256, sizeBytes: content.length } },
        ...{ contentType: null, detectedType: null, fileName: null },
        ...{ notes: [], linkedBy: null, compared: null, screens: null },
      };
      const page = aPage(lease, [shown(2, true)], { advertiserId });
      return {
        programs: new Map<string, Program>([
          ['run', async (actor) => void (await completeDownloads(stage.database(actor.name), [{ claim, completion }]))],
          ['page', async (actor) => void (await commitPage(stage.database(actor.name), privacyKey, page))],
        ]),
        mortal: ['run'],
        lapses: [],
        async check() {
          const rows = await stage.query(
            `SELECT 1 FROM intake.attachments WHERE advertiser_id = $1 AND state = 'stored'`,
            [advertiserId],
          );
          if (rows.length > 0) throw new Error('P8: flagged bytes are called stored.');
          await checkEvents(stage, advertiserId);
          await dropBlobs(files);
        },
      };
    },
  };
}

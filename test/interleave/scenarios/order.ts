// Writers that change several applications in one transaction. Each locks applications in the order of their ids, which prevents
// deadlocks. The rows that one statement locks are not separate steps of a schedule, so a third client holds the lock of the first one.
import type { Lease } from '../../../src/store/accounts/leases.ts';
import { completeDownloads } from '../../../src/store/files/complete-download.ts';
import type { Claim } from '../../../src/store/files/download-queue.ts';
import { retryDownloads } from '../../../src/store/files/stored-files.ts';
import { markDamaged } from '../../../src/store/files/verify-blobs.ts';
import { beginErasure } from '../../../src/store/privacy/erasure-jobs.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import type { Actor, Program } from '../schedule.ts';
import type { Scenarios, Situation, Stage } from '../stage.ts';
import { addBlob, checkEvents, checkQueue, checks, claimAll, missing } from './clients.ts';
import { openLane, privacyKey } from './lanes.ts';
import { content, sha256, toFiles } from './objects.ts';

const email = 'both@example.com';
const ids = [2, 1];

interface Two {
  readonly stage: Stage;
  readonly advertiserId: bigint;
  readonly lease: Lease;
  readonly claims: readonly Claim[];
}

const shown = (lastName: string) =>
  ids.map((id) =>
    anApplication(id, {
      ...{ email, lastName },
      attachments: [
        anAttachment('resume', { sizeBytes: content.length }),
        ...(id === 1 ? [anAttachment('coverLetter')] : []),
      ],
    }),
  );

/** Ends the downloads of both resumes with these column values. */
async function end(two: Two, values: string): Promise<void> {
  const { stage, advertiserId } = two;
  await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1 AND kind = 'resume'`, [advertiserId]);
  await stage.query(`UPDATE intake.attachments SET ${values} WHERE advertiser_id = $1 AND kind = 'resume'`, [
    advertiserId,
  ]);
}

async function hold(two: Two): Promise<void> {
  await addBlob(toFiles(two));
  await end(two, `state = 'stored', stored_at = now(), sha256 = '${sha256}'`);
}

/** A writer of both applications. `before` sets up what it needs. */
interface Writer {
  readonly before?: (two: Two) => Promise<unknown>;
  readonly work: (two: Two, actor: Actor) => Promise<unknown>;
}

const completeKind = (kind: string): Writer => ({
  work: ({ stage, claims }, actor) =>
    completeDownloads(
      stage.database(actor.name),
      claims.filter((claim) => claim.kind === kind).map((claim) => ({ claim, completion: missing })),
    ),
});

const completeBoth = completeKind('resume');
/** Locks only the first application. */
const holdFirst = completeKind('coverLetter');

const page = (lastName: string): Writer => ({
  work: ({ stage, advertiserId, lease }, actor) =>
    commitPage(stage.database(actor.name), privacyKey, aPage(lease, shown(lastName), { advertiserId, sweepId: 2n })),
});

const change = page('Changed');
const showAgain: Writer = {
  ...page('Shown'),
  before: ({ stage, advertiserId }) =>
    stage.query(`UPDATE intake.applications SET absent_since = now() - interval '1 hour' WHERE advertiser_id = $1`, [
      advertiserId,
    ]),
};

const erase: Writer = {
  work: ({ stage, advertiserId }, actor) =>
    beginErasure(stage.database(actor.name), privacyKey, {
      advertiserId,
      sought: { by: 'address', email },
      by: 'test',
    }),
};

const retry: Writer = {
  before: (two) => end(two, `state = 'given_up', reason = 'test'`),
  work: ({ stage, advertiserId }, actor) =>
    retryDownloads(stage.database(actor.name), advertiserId, {
      applicationId: null,
      kind: 'resume',
      state: 'given_up',
    }),
};

const lose: Writer = {
  before: hold,
  work: ({ stage, advertiserId }, actor) => markDamaged(stage.database(actor.name), advertiserId, sha256),
};

/** Sets up two applications with claimed files; the claims of the second application come first. */
async function openTwo(stage: Stage): Promise<Two> {
  const { advertiserId, lease } = await openLane(stage);
  await commitPage(stage.direct, privacyKey, aPage(lease, shown('Shown'), { advertiserId }));
  const { all: claims } = await claimAll({ stage, advertiserId });
  const inOrder = claims.toSorted((one, other) => Number(other.applicationId - one.applicationId));
  return { stage, advertiserId, lease, claims: inOrder };
}

function createOrder(stage: Stage, a: Writer, b: Writer): Situation {
  return {
    promise: 'nobody waits in a circle',
    async open() {
      const two = await openTwo(stage);
      for (const writer of [a, b]) await writer.before?.(two);
      const toProgram =
        ({ work }: Writer): Program =>
        (actor) =>
          work(two, actor);
      return {
        programs: { a: toProgram(a), b: toProgram(b), first: toProgram(holdFirst) },
        check: checks(two, checkEvents, checkQueue),
      };
    },
  };
}

export const orderScenarios = {
  'order-page': (stage) => createOrder(stage, completeBoth, change),
  'order-back': (stage) => createOrder(stage, completeBoth, showAgain),
  'order-erase': (stage) => createOrder(stage, completeBoth, erase),
  'order-retry': (stage) => createOrder(stage, retry, erase),
  'order-lost': (stage) => createOrder(stage, lose, change),
} satisfies Scenarios;

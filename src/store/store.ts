// The store's public interface: one object per capability, its functions bound to one database. sync/ calls the store only through this
// type, and each function there takes only the capabilities that it uses. Everything else that sync/ imports from store/ is a type.
import { createSecretKey } from 'node:crypto';
import type { Application } from '../domain/application.ts';
import type { BlobFacts } from '../domain/blob.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import type { Sought } from '../domain/erasure.ts';
import * as advertisers from './accounts/advertisers.ts';
import * as leases from './accounts/leases.ts';
import * as troubles from './accounts/troubles.ts';
import * as webhooks from './accounts/webhooks.ts';
import { commitPage, type PageProgress } from './applications/commit-page.ts';
import {
  diffPage,
  findErasedOthers,
  loadApplicants,
  loadSurroundings,
  type PageDiff,
  type ReadPage,
} from './applications/diff-page.ts';
import * as quarantine from './applications/quarantine.ts';
import { loadVolatile } from './applications/volatile.ts';
import { pruneEvents } from './events.ts';
import * as extracts from './extract.ts';
import * as blobs from './files/blobs.ts';
import * as completion from './files/complete-download.ts';
import * as downloads from './files/download-queue.ts';
import { markFetched } from './files/mark-infected.ts';
import * as blobStore from './files/store-owner.ts';
import * as files from './files/stored-files.ts';
import * as verifyBlobs from './files/verify-blobs.ts';
import { loadKeyState } from './gate.ts';
import { createStatistics } from './postgres/analyze.ts';
import { coalesce } from './postgres/coalesce.ts';
import type { DatabaseUrl } from './postgres/connection.ts';
import { type DatabaseOptions, openDatabase, retryOnConflict } from './postgres/database.ts';
import { type ListenerOptions, openQueueListener } from './postgres/listen.ts';
import * as schema from './postgres/migrations.ts';
import * as processes from './postgres/processes.ts';
import { lapsePrefills } from './prefill/lapse.ts';
import * as prefills from './prefill/prefills.ts';
import * as decisions from './privacy/decisions.ts';
import { recordAudit } from './privacy/decisions.ts';
import * as erasures from './privacy/erasure-jobs.ts';
import { loadExport } from './privacy/export.ts';
import { findPerson } from './privacy/find-and-erase.ts';
import { takeSlot } from './rate-limit.ts';
import { countStaleDays, markAllDays, repairTallies } from './reports/counts.ts';
import { loadHistory } from './reports/history.ts';
import { loadAdvertiserStatus } from './reports/status.ts';
import * as sweepStates from './sweeps/continue-sweep.ts';
import { loadAuditedProof } from './sweeps/evidence.ts';
import { loadCurrentProof, type StoredProofs, withProofs } from './sweeps/export-evidence.ts';
import * as sweeps from './sweeps/sweeps.ts';

export interface StoreOptions extends DatabaseOptions {
  /** Derives person keys and tombstones. Must stay the same for as long as the data is kept. */
  readonly privacyKey: Buffer;
  /** The same database without a pooler, for migrations and LISTEN. */
  readonly directUrl?: DatabaseUrl;
  readonly crashPoint?: PassCrashPoint | undefined;
}

/** Limits how often `bringForward` runs, because it scans the whole queue. */
const bringForwardEveryMs = 300_000;

/** The most downloads in one transaction. More would hold locks too long for the flushes that they save. */
const mostTogether = 64;

/** Opens the database. Nothing connects until the first use. */
export function openStore({ crashPoint, ...options }: StoreOptions) {
  const { directUrl = options.url } = options;
  const db = openDatabase(options);
  const privacyKey = createSecretKey(options.privacyKey);
  const keyed = { db, privacyKey };
  // Leases have a connection of their own, so that they are renewed in time while the pool is busy writing.
  const leaseDb = openDatabase({ ...options, role: `${options.role} lease`, connections: 1 });
  // Downloads of one advertiser that finish together are committed together: its events are serialised anyway.
  const perAdvertiser = {
    toGroup: ({ claim }: { readonly claim: downloads.Claim }) => claim.advertiserId,
    most: mostTogether,
  };
  const complete = coalesce(
    (claims: readonly completion.CompletedClaim[]) => completion.completeDownloads(db, claims),
    perAdvertiser,
  );
  const announce = coalesce(
    (announced: readonly blobs.BlobAnnouncement[]) => retryOnConflict(() => blobs.announceBlobs(db, announced)),
    perAdvertiser,
  );
  const statistics = createStatistics(db);
  let broughtForwardAt = Number.NEGATIVE_INFINITY;
  const findAdvertiser = coalesce((names: readonly string[]) => advertisers.findAdvertisers(db, names));
  const loadAround = coalesce((pages: readonly ReadPage[]) => loadSurroundings(db, pages));
  return {
    schema: {
      ...bind([db], { require: schema.requireSchema, load: schema.loadSchema, loadServer: schema.loadServer }),
      ensure: (request: Omit<schema.SchemaRequest, 'directUrl'>) =>
        schema.ensureSchema(db, { crashPoint, directUrl, ...request }),
    },

    advertisers: {
      ...bind([db], {
        pin: advertisers.pinAdvertiser,
        halt: advertisers.haltAdvertiser,
        unhalt: advertisers.unhaltAdvertiser,
        loadIds: advertisers.loadAdvertiserIds,
        noteRetryAfter: advertisers.noteRetryAfter,
        loadVolatile,
        noteAnswered: advertisers.noteAnswered,
        hasAnswered: advertisers.hasAnswered,
        noteAgent: advertisers.noteAgent,
        ...troubles,
      }),
      ensure: (name: string, configuredId: bigint | null) =>
        advertisers.ensureAdvertiser(db, name, configuredId, findAdvertiser),
      lookUp: (name: string, configuredId: bigint | null) =>
        advertisers.lookUpAdvertiser(name, configuredId, findAdvertiser),
      loadRetryAfter: coalesce((names: readonly string[]) => advertisers.loadRetryAfter(db, names)),
    },

    leases: {
      ...bind([leaseDb], { renew: leases.renewLease, loadHolder: leases.loadHolder }),
      claim: coalesce((claims: readonly leases.LeaseClaim[]) => leases.claimLeases(leaseDb, claims)),
      release: coalesce((given: readonly leases.Release[]) => leases.releaseLeases(leaseDb, given)),
    },

    processes: bind([leaseDb], { renew: processes.renewProcess, end: processes.endProcess }),

    rateLimits: bind([leaseDb], { takeSlot }),

    sweeps: {
      ...bind([db], {
        noteStop: sweeps.noteStop,
        prune: sweeps.pruneSweeps,
        loadUnfinished: sweepStates.loadUnfinished,
        dropUnfinished: sweepStates.dropUnfinished,
      }),
      begin: coalesce<void, sweeps.Ticket>((calls) => sweeps.takeTickets(db, calls.length, 'sweep_seq')),
      takeTicket: coalesce<void, sweeps.Ticket>((calls) => sweeps.takeTickets(db, calls.length)),
      loadSyncState: coalesce((asked: Parameters<typeof sweepStates.loadSyncStates>[1]) =>
        sweepStates.loadSyncStates(db, asked),
      ),
    },

    coverage: {
      ...bind([db], {
        loadOpenRanges: sweepStates.loadOpenRanges,
        loadAuditPlace: sweepStates.loadAuditPlace,
        findHidden: sweepStates.findHidden,
        endCertificates: sweeps.endCertificates,
        saveUnreadable: sweeps.saveUnreadable,
        resolveUnreadable: sweeps.resolveUnreadable,
      }),
      confirmCursor: coalesce((ids: readonly bigint[]) => sweeps.confirmCursors(db, ids)),
    },

    decisions: bind([db], decisions),

    evidence: {
      ...bind([db], {
        loadCertificates: sweeps.loadCertificates,
        loadAudited: loadAuditedProof,
        loadCurrent: loadCurrentProof,
      }),
      withProofs: <T>(advertiserId: bigint, work: (proofs: StoredProofs) => Promise<T>) =>
        withProofs(db, advertiserId, work),
    },

    applications: {
      ...bind([db], {
        countListed: sweepStates.countListed,
        loadKnownIds: sweepStates.loadKnownIds,
        loadRecentFrom: sweepStates.loadRecentFrom,
      }),
      diffPage: (page: ReadPage) => diffPage(db, privacyKey, page, loadAround),
      loadApplicants: (advertiserId: bigint, applications: readonly Application[]) =>
        loadApplicants({ ...keyed, advertiserId }, applications),
      findErasedOthers: (advertiserId: bigint, applications: readonly Application[]) =>
        findErasedOthers({ ...keyed, advertiserId }, applications),
      async commitPage(page: ReadPage, diff: PageDiff, progress: PageProgress | null) {
        await statistics.ensure();
        const summary = await commitPage(db, privacyKey, page, diff, progress, crashPoint);
        if (summary !== 'outdated') statistics.note(summary.added);
        return summary;
      },
    },

    quarantine: bind([db], {
      load: quarantine.loadQuarantine,
      loadTexts: quarantine.loadQuarantineTexts,
      resolve: quarantine.resolveQuarantine,
      prune: quarantine.pruneQuarantine,
    }),

    events: bind([db], { prune: pruneEvents }),

    webhooks: {
      ...bind([db], {
        findDue: webhooks.findDueWebhooks,
        loadPlace: webhooks.loadWebhookPlace,
        loadEvents: webhooks.loadWebhookEvents,
        record: webhooks.recordDelivery,
        resume: webhooks.resumeWebhook,
        load: webhooks.loadWebhooks,
      }),
      // Workers that start together write the same rows.
      declare: (accounts: readonly string[], configured: readonly webhooks.WebhookName[]) =>
        retryOnConflict(() => webhooks.declareWebhooks(db, accounts, configured)),
    },

    downloads: {
      ...bind([db], {
        loadDueAdvertisers: downloads.loadDueAdvertisers,
        claim: downloads.claimDownloads,
        postpone: downloads.postponeDownload,
        loadWaiting: downloads.loadWaiting,
        loadFacts: downloads.loadFileFacts,
      }),
      ...bind([leaseDb], { renew: downloads.renewDownloads }),
      async bringForward() {
        if (performance.now() - broughtForwardAt < bringForwardEveryMs) return;
        await downloads.bringForward(db);
        broughtForwardAt = performance.now();
      },
      release: (claims: readonly downloads.Claim[]) => retryOnConflict(() => downloads.releaseDownloads(db, claims)),
      complete: (claim: downloads.Claim, end: completion.Completion) => complete({ claim, completion: end }),
      retry: (advertiserId: bigint, choice: files.RetryChoice) =>
        retryOnConflict(() => files.retryDownloads(db, advertiserId, choice)),
    },

    blobStore: bind([db], {
      load: blobStore.loadRecordedStore,
      ensure: blobStore.ensureRecordedStore,
      plan: blobStore.planIdentity,
      confirm: blobStore.confirmIdentity,
    }),

    blobs: {
      ...bind([db], {
        markFetched,
        load: verifyBlobs.loadBlobs,
        resetFutureTimes: verifyBlobs.resetFutureTimes,
        loadBytesByNights: verifyBlobs.loadBytesByNights,
        loadLongestUnread: verifyBlobs.loadLongestUnread,
        markVerified: verifyBlobs.markVerified,
        markSuspect: verifyBlobs.markSuspect,
        markUndeleted: verifyBlobs.markUndeleted,
        countOrphans: verifyBlobs.countOrphans,
        loadOrphans: verifyBlobs.loadOrphans,
        loadUnrepaired: verifyBlobs.loadUnrepaired,
        loadForgotten: blobs.loadForgotten,
        adopt: verifyBlobs.adoptBlob,
      }),
      announce: (claim: downloads.Claim, blob: blobs.BlobAnnouncement['blob']) => announce({ claim, blob }),
      markDamaged: (advertiserId: bigint, sha256: string) =>
        retryOnConflict(() => verifyBlobs.markDamaged(db, advertiserId, sha256)),
    },

    deletions: {
      ...bind([db], {
        hasDueDeletes: blobs.hasDueDeletes,
        beginDueDeletes: blobs.beginDueDeletes,
        dropEarlierResume: blobs.dropEarlierResume,
        loadLeft: blobs.loadLeft,
      }),
      drop: (advertiserId: bigint, hashes: readonly string[]) =>
        retryOnConflict(() => db.transaction((tx) => blobs.dropUnneeded(tx, advertiserId, hashes))),
      confirm: (token: string, deleted: readonly blobs.DeletedBlob[]) =>
        retryOnConflict(() => blobs.confirmDeletion(db, token, deleted)),
    },

    files: {
      ...bind([db], { find: files.findStoredFile, loadScreens: files.loadStoredScreens }),
      ...bind([db, privacyKey], { replaceParsedScreens: files.replaceParsedScreens }),
    },

    privacy: {
      ...bind([db], { recordAudit }),
      ...bind([db, privacyKey], { loadKeyState }),
      findPerson: (advertiserId: bigint, sought: Sought) => findPerson({ ...keyed, advertiserId }, sought),
      loadExport: (advertiserId: bigint, id: bigint) => loadExport({ ...keyed, advertiserId }, id),
    },

    erasures: {
      ...bind([db], {
        close: erasures.closeErasure,
        noteExtracts: erasures.noteExtracts,
        noteTrouble: erasures.noteErasureTrouble,
        countAged: erasures.countAged,
        noteRetention: erasures.noteRetention,
      }),
      loadOpen: (advertiserId: bigint, sought?: Sought) =>
        erasures.loadOpenErasures({ ...keyed, advertiserId }, sought),
      begin: (request: erasures.ErasureRequest) => erasures.beginErasure(db, privacyKey, request, crashPoint),
    },

    prefills: {
      ...bind([db], {
        begin: prefills.insertPrefill,
        takeState: prefills.takeState,
        end: prefills.endPrefill,
        redeem: prefills.takeProfile,
        loadResume: prefills.loadResume,
        findAdvertiserName: prefills.findAdvertiserName,
        lapse: lapsePrefills,
      }),
      ...bind([db, privacyKey], { keepProfile: prefills.keepProfile, loadKeyState: prefills.loadPrefillKeyState }),
      announceResume: (prefill: prefills.PrefillKey, resume: BlobFacts) =>
        retryOnConflict(() => prefills.announceResume(db, prefill, resume)),
      offer: (prefill: prefills.PrefillKey, handleHash: Buffer, failed: string | null) =>
        retryOnConflict(() => prefills.offerPrefill(db, prefill, handleHash, failed)),
    },

    extracts: {
      ...bind([db], {
        loadBuckets: extracts.loadBuckets,
        loadFingerprints: extracts.loadFingerprints,
        record: extracts.recordExtract,
        recordPublished: extracts.recordPublished,
        loadBegun: extracts.loadBegun,
        loadPeoplePlaces: extracts.loadPeoplePlaces,
        loadStatus: extracts.loadExtractStatus,
      }),
      withSnapshot: <T>(work: (snapshot: extracts.Snapshot) => Promise<T>) => extracts.withSnapshot(db, work),
    },

    // In transactions, which turn jit off: without them `intake status` takes 2.5 s on a stock Postgres 15 instead of 0.6 s.
    reports: {
      loadStatus: () => db.transaction((tx) => loadAdvertiserStatus(tx)),
      loadVerdict: (advertiserId: bigint | null) => db.transaction((tx) => sweeps.loadVerdict(tx, advertiserId)),
      loadHistory: (now: Date) => db.transaction((tx) => loadHistory(tx, now)),
      ...bind([db], { repairTallies, markAllDays, countStaleDays }),
    },

    /** Wakes a worker when downloads are queued or events are committed. */
    listen: (on: Pick<ListenerOptions, 'onQueued' | 'onEvents'>) => openQueueListener({ url: directUrl, ...on }),

    async [Symbol.asyncDispose]() {
      await Promise.all([db[Symbol.asyncDispose](), leaseDb[Symbol.asyncDispose]()]);
    },
  };
}

export type Store = ReturnType<typeof openStore>;

type Bound<Given extends unknown[], Functions> = {
  readonly [Name in keyof Functions]: Functions[Name] extends (...args: [...Given, ...infer Args]) => infer Result
    ? (...args: Args) => Result
    : never;
};

/** The functions without their first arguments, which are these. */
function bind<
  Given extends [unknown, ...unknown[]],
  Functions extends Record<string, (...args: [...Given, ...never[]]) => unknown>,
>(given: Given, functions: Functions): Bound<Given, Functions> {
  const bound = Object.entries(functions).map(([name, work]) => [name, (...rest: never[]) => work(...given, ...rest)]);
  return Object.fromEntries(bound) as Bound<Given, Functions>;
}

// The store's public interface: one object per capability, its functions bound to one database. sync/ calls the store only through this
// type, and each function there takes only the capabilities that it uses. Everything else that sync/ imports from store/ is a type.
import { createSecretKey } from 'node:crypto';
import type { Note } from '../domain/application.ts';
import type { Deleted } from '../domain/blob.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import type { Sought } from '../domain/erasure.ts';
import type { Period } from '../domain/history.ts';
import type { ParsedScreens } from '../domain/screen.ts';
import * as advertisers from './accounts/advertisers.ts';
import { claimLeases, type Lease, type LeaseClaim, loadHolder, releaseLeases, renewLease } from './accounts/leases.ts';
import { clearTrouble, loadWaits, noteTrouble } from './accounts/troubles.ts';
import { commitPage, type PageProgress } from './applications/commit-page.ts';
import { diffPage, loadSurroundings, type PageDiff, type ReadPage } from './applications/diff-page.ts';
import { loadQuarantine, loadQuarantineTexts, pruneQuarantine, resolveQuarantine } from './applications/quarantine.ts';
import { loadVolatile } from './applications/volatile.ts';
import { pruneEvents } from './events.ts';
import { announceBlobs, type BlobAnnouncement, loadForgotten } from './files/blobs.ts';
import { loadFileFacts } from './files/claim-facts.ts';
import { type CompletedClaim, type Completion, completeDownloads } from './files/complete-download.ts';
import {
  beginDrop,
  beginInfected,
  confirmDeletion,
  type Deletion,
  dropOrphans,
  hasInfected,
} from './files/delete-blobs.ts';
import {
  bringForward,
  type Claim,
  claimDownloads,
  loadDueAdvertisers,
  loadWaiting,
  postponeDownload,
  releaseDownloads,
  renewDownloads,
} from './files/download-queue.ts';
import { recallFetched } from './files/mark-infected.ts';
import { confirmIdentity, ensureRecordedStore, loadRecordedStore, planIdentity } from './files/store-owner.ts';
import {
  loadApplicationFiles,
  loadStoredScreens,
  type RetryChoice,
  replaceParsedScreens,
  retryDownloads,
  type StoredScreen,
} from './files/stored-files.ts';
import * as verifyBlobs from './files/verify-blobs.ts';
import { createStatistics } from './postgres/analyze.ts';
import { coalesce } from './postgres/coalesce.ts';
import { type Database, type DatabaseOptions, openDatabase, retryOnConflict } from './postgres/database.ts';
import { ensureSchema, loadSchema, loadServer, requireSchema, type SchemaRequest } from './postgres/migrations.ts';
import { lapsePrefills } from './prefill/lapse.ts';
import * as prefills from './prefill/prefills.ts';
import { recordAudit } from './privacy/audit-log.ts';
import { acceptDeletions, acceptUnreadable, loadDeletions, loadUnreadable } from './privacy/decisions.ts';
import {
  beginErasure,
  checkAgain,
  countAged,
  type ErasureRequest,
  loadOpenErasures,
  noteErasureTrouble,
  noteRetention,
  recordDeletedFiles,
} from './privacy/erasure-jobs.ts';
import { loadExport } from './privacy/export.ts';
import { findPerson } from './privacy/find-and-erase.ts';
import { takeSlot } from './rate-limit.ts';
import { countStaleDays, markAllDays } from './reports/days.ts';
import { loadHistory } from './reports/history.ts';
import { loadProofReport } from './reports/proof.ts';
import { loadAdvertiserStatus, loadVerdict } from './reports/status.ts';
import { repairTallies } from './reports/tallies.ts';
import {
  countListed,
  dropUnfinished,
  findHidden,
  loadAuditPlace,
  loadKnownIds,
  loadOpenRanges,
  loadRecentFrom,
  loadSyncStates,
  loadUnfinished,
} from './sweeps/continue-sweep.ts';
import { confirmCursors } from './sweeps/cursors.ts';
import { loadAuditedProof } from './sweeps/evidence.ts';
import { loadCurrentProof, type StoredProofs, withProofs } from './sweeps/export-evidence.ts';
import { endCertificates, loadCertificates, noteStop, pruneSweeps, takeTickets } from './sweeps/sweeps.ts';
import { resolveUnreadable, saveUnreadable } from './sweeps/unreadable.ts';
import { loadKeyState } from './tombstones.ts';

export interface StoreOptions extends DatabaseOptions {
  /** Derives person keys and tombstones. Must stay the same for as long as the data is kept. */
  readonly privacyKey: Buffer;
  /** For tests that end the process at named points. */
  readonly crashPoint?: PassCrashPoint | undefined;
}

/** Limits how often `bringForward` runs, because it scans the whole queue. */
const bringForwardEveryMs = 300_000;

/** The most downloads in one transaction. More would hold locks too long for the flushes that they save. */
const mostTogether = 64;

/** Opens the database. Nothing connects until the first use. */
export function openStore({ crashPoint, ...options }: StoreOptions) {
  const db = openDatabase(options);
  const privacyKey = createSecretKey(options.privacyKey);
  // Leases have a connection of their own, so that they are renewed in time while the pool is busy writing.
  const leaseDb = openDatabase({ ...options, role: `${options.role} lease`, connections: 1 });
  // Downloads of one advertiser that finish together are committed together: its events are serialised anyway.
  const perAdvertiser = { toGroup: ({ claim }: { readonly claim: Claim }) => claim.advertiserId, most: mostTogether };
  const complete = coalesce((downloads: readonly CompletedClaim[]) => completeDownloads(db, downloads), perAdvertiser);
  const announce = coalesce(
    (announcements: readonly BlobAnnouncement[]) => retryOnConflict(() => announceBlobs(db, announcements)),
    perAdvertiser,
  );
  const statistics = createStatistics(db);
  let broughtForwardAt = Number.NEGATIVE_INFINITY;
  const beginSweep = coalesce((calls: readonly object[]) => takeTickets(db, calls.length, 'sweep_seq'));
  const takeTicket = coalesce((calls: readonly object[]) => takeTickets(db, calls.length));
  const findAdvertiser = coalesce((names: readonly string[]) => advertisers.findAdvertisers(db, names));
  const loadAround = coalesce((pages: readonly ReadPage[]) => loadSurroundings(db, pages));
  const release = coalesce(async (given: Parameters<typeof releaseLeases>[1]) => {
    await releaseLeases(leaseDb, given);
    return given.map(() => undefined);
  });
  return {
    schema: {
      ...bind(db, { require: requireSchema, load: loadSchema, loadServer }),
      ensure: (request: SchemaRequest) => ensureSchema(db, { crashPoint, ...request }),
    },

    advertisers: {
      ...bind(db, {
        pin: advertisers.pinAdvertiser,
        halt: advertisers.haltAdvertiser,
        unhalt: advertisers.unhaltAdvertiser,
        loadIds: advertisers.loadAdvertiserIds,
        noteRetryAfter: advertisers.noteRetryAfter,
        loadVolatile,
        noteAnswered: advertisers.noteAnswered,
        hasAnswered: advertisers.hasAnswered,
        noteAgent: advertisers.noteAgent,
        noteTrouble,
        clearTrouble,
        loadWaits,
      }),
      ensure: (name: string, configuredId: bigint | null) =>
        advertisers.ensureAdvertiser(db, name, configuredId, findAdvertiser),
      lookUp: (name: string, configuredId: bigint | null) =>
        advertisers.lookUpAdvertiser(name, configuredId, findAdvertiser),
      loadRetryAfter: coalesce((names: readonly string[]) => advertisers.loadRetryAfter(db, names)),
    },

    leases: {
      ...bind(leaseDb, { renew: renewLease, loadHolder }),
      claim: coalesce((claims: readonly LeaseClaim[]) => claimLeases(leaseDb, claims)),
      release: (lease: Lease, done: boolean) => release({ ...lease, done }),
    },

    rateLimits: bind(leaseDb, { takeSlot }),

    sweeps: {
      ...bind(db, { noteStop, loadUnfinished, dropUnfinished, prune: pruneSweeps }),
      begin: () => beginSweep({}),
      takeTicket: () => takeTicket({}),
      loadSyncState: coalesce((asked: Parameters<typeof loadSyncStates>[1]) => loadSyncStates(db, asked)),
    },

    coverage: bind(db, {
      loadOpenRanges,
      loadAuditPlace,
      findHidden,
      endCertificates,
      confirmCursors,
      saveUnreadable,
      resolveUnreadable,
    }),

    decisions: bind(db, { loadDeletions, loadUnreadable, acceptDeletions, acceptUnreadable }),

    evidence: {
      ...bind(db, { loadCertificates, loadAudited: loadAuditedProof, loadCurrent: loadCurrentProof }),
      withProofs: <T>(advertiserId: bigint, work: (proofs: StoredProofs) => Promise<T>) =>
        withProofs(db, advertiserId, work),
    },

    applications: {
      ...bind(db, { countListed, loadKnownIds, loadRecentFrom }),
      diffPage: (page: ReadPage) => diffPage(db, page, loadAround),
      async commitPage(page: ReadPage, diff: PageDiff, progress: PageProgress | null) {
        await statistics.ensure();
        const summary = await commitPage(db, privacyKey, page, diff, progress, crashPoint);
        if (summary !== 'outdated') statistics.note(summary.added);
        return summary;
      },
    },

    quarantine: bind(db, {
      load: loadQuarantine,
      loadTexts: loadQuarantineTexts,
      resolve: resolveQuarantine,
      prune: pruneQuarantine,
    }),

    events: bind(db, { prune: pruneEvents }),

    downloads: {
      ...bind(db, {
        loadDueAdvertisers,
        claim: claimDownloads,
        postpone: postponeDownload,
        loadWaiting,
        loadFacts: loadFileFacts,
      }),
      ...bind(leaseDb, { renew: renewDownloads }),
      async bringForward() {
        if (performance.now() - broughtForwardAt < bringForwardEveryMs) return;
        await bringForward(db);
        broughtForwardAt = performance.now();
      },
      release: (claims: readonly Claim[]) => retryOnConflict(() => releaseDownloads(db, claims)),
      complete: (claim: Claim, completion: Completion) => complete({ claim, completion }),
      retry: (advertiserId: bigint, choice: RetryChoice) =>
        retryOnConflict(() => retryDownloads(db, advertiserId, choice)),
    },

    blobStore: bind(db, {
      load: loadRecordedStore,
      ensure: ensureRecordedStore,
      plan: planIdentity,
      confirm: confirmIdentity,
    }),

    blobs: {
      ...bind(db, {
        recallFetched,
        load: verifyBlobs.loadBlobs,
        loadUnread: verifyBlobs.loadUnread,
        loadLongestUnread: verifyBlobs.loadLongestUnread,
        markVerified: verifyBlobs.markVerified,
        markUndeleted: verifyBlobs.markUndeleted,
        markOrphans: verifyBlobs.markOrphans,
        loadUnrepaired: verifyBlobs.loadUnrepaired,
        loadForgotten,
        adopt: verifyBlobs.adoptBlob,
      }),
      announce: (claim: Claim, blob: BlobAnnouncement['blob']) => announce({ claim, blob }),
      markDamaged: (advertiserId: bigint, sha256: string) =>
        retryOnConflict(() => verifyBlobs.markDamaged(db, advertiserId, sha256)),
    },

    deletions: {
      ...bind(db, { hasInfected, beginInfected, dropOrphans }),
      beginDrop: (advertiserId: bigint, hashes: readonly string[]) =>
        retryOnConflict(() => db.transaction((tx) => beginDrop(tx, advertiserId, hashes))),
      confirm: (deletion: Deletion, kept: Deleted['kept']) =>
        retryOnConflict(() => confirmDeletion(db, deletion, kept)),
    },

    files: {
      ...bind(db, { load: loadApplicationFiles, loadScreens: loadStoredScreens }),
      replaceParsedScreens: (file: StoredScreen, parsed: ParsedScreens | null, note: Note | null) =>
        replaceParsedScreens(db, privacyKey, file, parsed, note),
    },

    privacy: {
      ...bind(db, { recordAudit }),
      loadKeyState: () => loadKeyState(db, privacyKey),
      findPerson: (advertiserId: bigint, sought: Sought) => findPerson(db, privacyKey, advertiserId, sought),
      loadExport: (advertiserId: bigint, applicationId: bigint) =>
        loadExport(db, privacyKey, advertiserId, applicationId),
    },

    erasures: {
      ...bind(db, { recordDeletedFiles, noteTrouble: noteErasureTrouble, checkAgain, countAged, noteRetention }),
      begin: (request: ErasureRequest) => beginErasure(db, privacyKey, request, crashPoint),
      loadOpen: (advertiserId: bigint, sought?: Sought) => loadOpenErasures(db, privacyKey, advertiserId, sought),
    },

    prefills: {
      ...bind(db, {
        begin: prefills.beginPrefill,
        takeState: prefills.takeState,
        end: prefills.endPrefill,
        announceResume: prefills.announceResume,
        redeem: prefills.redeemPrefill,
        loadResume: prefills.loadResume,
        noteLostResume: prefills.noteLostResume,
        findAdvertiserName: prefills.findAdvertiserName,
        lapse: lapsePrefills,
      }),
      keepProfile: (kept: prefills.KeptProfile) => prefills.keepProfile(db, privacyKey, kept),
      offer: (key: prefills.PrefillKey, handleHash: Buffer, failed: string | null) =>
        retryOnConflict(() => prefills.offerPrefill(db, key, handleHash, failed)),
      loadKeyState: () => prefills.loadPrefillKeyState(db, privacyKey),
    },

    // In transactions, which turn jit off: without them `intake status` takes 2.5 s on a stock Postgres 15 instead of 0.6 s.
    reports: {
      loadStatus: () => db.transaction((tx) => loadAdvertiserStatus(tx)),
      loadVerdict: (name: string) => db.transaction((tx) => loadVerdict(tx, name)),
      loadHistory: (period: Period, now: Date) => db.transaction((tx) => loadHistory(tx, period, now)),
      loadProof: (name: string) => loadProofReport(db, name),
      ...bind(db, { repairTallies, markAllDays, countStaleDays }),
    },

    async [Symbol.asyncDispose]() {
      await Promise.all([db[Symbol.asyncDispose](), leaseDb[Symbol.asyncDispose]()]);
    },
  };
}

export type Store = ReturnType<typeof openStore>;

type Bound<Functions> = {
  readonly [Name in keyof Functions]: Functions[Name] extends (db: Database, ...args: infer Args) => infer Result
    ? (...args: Args) => Result
    : never;
};

/** The functions without their first argument, which is this database. */
function bind<Functions extends Readonly<Record<string, (db: Database, ...args: never[]) => unknown>>>(
  db: Database,
  functions: Functions,
): Bound<Functions> {
  const bound = Object.entries(functions).map(([name, work]) => [name, work.bind(null, db)]);
  return Object.fromEntries(bound) as Bound<Functions>;
}

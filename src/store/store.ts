// The store's public interface: one object per capability, its functions bound to one database. sync/ calls the store only through this
// type, and each function there takes only the capabilities that it uses. Everything else that sync/ imports from store/ is a type.
import { createSecretKey } from 'node:crypto';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import * as advertisers from './accounts/advertisers.ts';
import {
  ensureAdvertiser,
  findAdvertisers,
  loadRetryAfter,
  lookUpAdvertiser,
  takeSlot,
} from './accounts/advertisers.ts';
import * as leases from './accounts/leases.ts';
import * as webhooks from './accounts/webhooks.ts';
import { commitPage, createStatistics, type PageProgress } from './applications/commit-page.ts';
import * as applications from './applications/diff-page.ts';
import * as quarantine from './applications/quarantine.ts';
import { loadVolatile } from './applications/volatile.ts';
import { pruneEvents } from './events.ts';
import * as extracts from './extract.ts';
import { type Snapshot, withSnapshot } from './extract.ts';
import * as deletions from './files/blobs.ts';
import { announceBlobs, type BlobAnnouncement, dropUnneeded, loadForgotten } from './files/blobs.ts';
import * as completion from './files/complete-download.ts';
import * as downloads from './files/download-queue.ts';
import { markFetched } from './files/file-states.ts';
import * as blobStore from './files/store-owner.ts';
import * as files from './files/stored-files.ts';
import { type RetryChoice, replaceParsedScreens, retryDownloads } from './files/stored-files.ts';
import * as verifyBlobs from './files/verify-blobs.ts';
import { markDamaged } from './files/verify-blobs.ts';
import { type Account, loadKeyState } from './gate.ts';
import { coalesce } from './postgres/coalesce.ts';
import type { DatabaseUrl } from './postgres/connection.ts';
import { type DatabaseOptions, openDatabase, retryOnConflict } from './postgres/database.ts';
import { type Listeners, openQueueListener } from './postgres/listen.ts';
import * as schema from './postgres/migrations.ts';
import { ensureSchema, type SchemaRequest } from './postgres/migrations.ts';
import * as processes from './postgres/processes.ts';
import * as prefills from './prefill/prefills.ts';
import { keepProfile, loadPrefillKeyState } from './prefill/prefills.ts';
import * as decisions from './privacy/decisions.ts';
import { recordAudit } from './privacy/decisions.ts';
import * as erasures from './privacy/erasure-jobs.ts';
import { beginErasure, type ErasureRequest, loadOpenErasures } from './privacy/erasure-jobs.ts';
import { loadExport } from './privacy/export.ts';
import { findPerson } from './privacy/find-and-erase.ts';
import * as counts from './reports/counts.ts';
import * as reports from './reports/status.ts';
import * as states from './sweeps/continue-sweep.ts';
import { loadSyncStates } from './sweeps/continue-sweep.ts';
import * as evidence from './sweeps/evidence.ts';
import * as sweeps from './sweeps/sweeps.ts';
import { confirmCursors, type Ticket, takeTickets } from './sweeps/sweeps.ts';

export interface StoreOptions extends DatabaseOptions {
  /** Derives person keys and tombstones. Must stay the same for as long as the data is kept. */
  readonly privacyKey: Buffer;
  /** The same database without a pooler, for migrations and LISTEN. */
  readonly directUrl?: DatabaseUrl;
  readonly crashPoint?: PassCrashPoint | undefined;
}

/** Limits how often `bringForward` runs, because it scans the whole queue. */
const bringForwardEveryMs = 300_000;

/** Opens the database. Nothing connects until the first use. */
export function openStore({ crashPoint, ...options }: StoreOptions) {
  const { directUrl = options.url } = options;
  const db = openDatabase(options);
  const privacyKey = createSecretKey(options.privacyKey);
  // Leases have a connection of their own, so that they are renewed in time while the pool is busy writing.
  const leaseDb = openDatabase({ ...options, role: `${options.role} lease`, connections: 1 });
  const ofAccount =
    <Given extends unknown[], Result>(work: (account: Account, ...given: Given) => Result) =>
    (advertiserId: bigint, ...given: Given) =>
      work({ db, privacyKey, advertiserId }, ...given);
  // Downloads of one advertiser that finish together are committed together: its events are serialised anyway. More in one transaction
  // would hold locks too long for the flushes that they save.
  const toAdvertiser = ({ claim }: { readonly claim: downloads.Claim }) => claim.advertiserId;
  const complete = coalesce(
    (claims: readonly completion.CompletedClaim[]) => completion.completeDownloads(db, claims),
    toAdvertiser,
    64,
  );
  const announce = coalesce((announced: readonly BlobAnnouncement[]) => announceBlobs(db, announced), toAdvertiser, 64);
  const countAdded = createStatistics(db);
  let broughtForwardAt = Number.NEGATIVE_INFINITY;
  const findAdvertiser = coalesce((names: readonly string[]) => findAdvertisers(db, names));
  const loadAround = coalesce((pages: readonly applications.ReadPage[]) => applications.loadSurroundings(db, pages));
  return {
    schema: {
      ...bind([db], schema),
      ensure: (request: Omit<SchemaRequest, 'directUrl'>) => ensureSchema(db, { crashPoint, directUrl, ...request }),
    },

    advertisers: {
      ...bind([db], { ...advertisers, loadVolatile }),
      ensure: (name: string, configuredId: bigint | null) => ensureAdvertiser(db, name, configuredId, findAdvertiser),
      lookUp: (name: string, configuredId: bigint | null) => lookUpAdvertiser(name, configuredId, findAdvertiser),
      loadRetryAfter: coalesce((names: readonly string[]) => loadRetryAfter(db, names)),
    },

    leases: {
      ...bind([leaseDb], leases),
      claim: coalesce((claims: readonly leases.LeaseClaim[]) => leases.claimLeases(leaseDb, claims)),
      release: coalesce((given: readonly leases.Release[]) => leases.releaseLeases(leaseDb, given)),
    },

    processes: bind([leaseDb], processes),

    rateLimits: bind([leaseDb], { takeSlot }),

    sweeps: {
      ...bind([db], { ...sweeps, ...states }),
      begin: coalesce<void, Ticket>((calls) => takeTickets(db, calls.length, 'sweep_seq')),
      takeTicket: coalesce<void, Ticket>((calls) => takeTickets(db, calls.length)),
      loadSyncState: coalesce((asked: Parameters<typeof loadSyncStates>[1]) => loadSyncStates(db, asked)),
      confirmCursor: coalesce((read: Parameters<typeof confirmCursors>[1]) => confirmCursors(db, read)),
    },

    decisions: bind([db], decisions),

    evidence: {
      ...bind([db], evidence),
      withProofs: <T>(advertiserId: bigint, work: (proofs: evidence.StoredProofs) => Promise<T>) =>
        evidence.withProofs(db, advertiserId, work),
    },

    applications: {
      diffPage: (page: applications.ReadPage) => applications.diffPage(db, privacyKey, page, loadAround),
      loadApplicants: ofAccount(applications.loadApplicants),
      findErasedOthers: ofAccount(applications.findErasedOthers),
      async commitPage(page: applications.ReadPage, diff: applications.PageDiff, progress: PageProgress | null) {
        const summary = await commitPage(db, privacyKey, page, diff, progress, crashPoint);
        // The page is committed, whatever comes of the statistics. The next one tries again.
        if (summary !== 'outdated') await countAdded(summary.added).catch(() => {});
        return summary;
      },
    },

    quarantine: bind([db], quarantine),

    events: bind([db], { pruneEvents }),

    webhooks: bind([db], webhooks),

    downloads: {
      ...bind([db], downloads),
      ...bind([leaseDb], { renewDownloads: downloads.renewDownloads }),
      async bringForward() {
        if (performance.now() - broughtForwardAt < bringForwardEveryMs) return;
        await downloads.bringForward(db);
        broughtForwardAt = performance.now();
      },
      complete: (claim: downloads.Claim, end: completion.Completion) => complete({ claim, completion: end }),
      retryDownloads: (advertiserId: bigint, choice: RetryChoice) =>
        retryOnConflict(() => retryDownloads(db, advertiserId, choice)),
    },

    blobStore: bind([db], blobStore),

    blobs: {
      ...bind([db], { ...verifyBlobs, markFetched, loadForgotten }),
      announce: (claim: downloads.Claim, blob: BlobAnnouncement['blob']) => announce({ claim, blob }),
      markDamaged: (advertiserId: bigint, sha256: string) =>
        retryOnConflict(() => markDamaged(db, advertiserId, sha256)),
    },

    deletions: {
      ...bind([db], deletions),
      drop: (advertiserId: bigint, hashes: readonly string[]) =>
        db.repeatTransaction((tx) => dropUnneeded(tx, advertiserId, hashes)),
    },

    files: { ...bind([db], files), ...bind([db, privacyKey], { replaceParsedScreens }) },

    privacy: {
      ...bind([db], { recordAudit }),
      ...bind([db, privacyKey], { loadKeyState }),
      findPerson: ofAccount(findPerson),
      loadExport: ofAccount(loadExport),
    },

    erasures: {
      ...bind([db], erasures),
      loadOpenErasures: ofAccount(loadOpenErasures),
      begin: (request: ErasureRequest) => beginErasure(db, privacyKey, request, crashPoint),
    },

    prefills: { ...bind([db], prefills), ...bind([db, privacyKey], { keepProfile, loadPrefillKeyState }) },

    extracts: {
      ...bind([db], extracts),
      withSnapshot: <T>(work: (snapshot: Snapshot) => Promise<T>) => withSnapshot(db, work),
    },

    // In transactions, which turn jit off: without them `intake status` takes 2.5 s on a stock Postgres 15 instead of 0.6 s.
    reports: {
      loadStatus: () => db.transaction(reports.loadAdvertiserStatus),
      loadVerdict: (advertiserId: bigint | null) => db.transaction((tx) => evidence.loadVerdict(tx, advertiserId)),
      loadHistory: (now: Date) => db.transaction((tx) => reports.loadHistory(tx, now)),
      ...bind([db], counts),
    },

    /** Wakes a worker when downloads are queued or events are committed. */
    listen: (on: Listeners) => openQueueListener(directUrl, on),

    async [Symbol.asyncDispose]() {
      await Promise.all([db[Symbol.asyncDispose](), leaseDb[Symbol.asyncDispose]()]);
    },
  };
}

export type Store = ReturnType<typeof openStore>;

/** The functions that begin with these arguments, without them. Those of a transaction, or with other arguments, are not among them. */
type Bound<Given extends unknown[], Functions> = {
  readonly [Name in keyof Functions as Functions[Name] extends (...args: [...Given, ...never[]]) => unknown
    ? Name
    : never]: Functions[Name] extends (...args: [...Given, ...infer Args]) => infer Result
    ? (...args: Args) => Result
    : never;
};

function bind<Given extends [unknown, ...unknown[]], Functions extends object>(given: Given, functions: Functions) {
  const bound = Object.entries(functions).map(([name, work]) => [name, (...rest: never[]) => work(...given, ...rest)]);
  return Object.fromEntries(bound) as Bound<Given, Functions>;
}

// The store as the rest of the house sees it: every statement bound to one database. sync/ and web/ know only this type.
import { createSecretKey } from 'node:crypto';
import type { Note } from '../domain/application.ts';
import type { BlobFacts } from '../domain/blob.ts';
import type { HashSetting } from '../domain/hash-trust.ts';
import type { Period } from '../domain/history.ts';
import type { ScreenReading } from '../domain/screen.ts';
import {
  ensureAdvertiser,
  type HaltKind,
  haltAdvertiser,
  loadAdvertiserIds,
  noteAgent,
  pinAdvertiser,
  unhaltAdvertiser,
} from './advertisers.ts';
import {
  adoptBlob,
  collectOrphans,
  loadBlobs,
  markDamaged,
  markOrphans,
  markUnemptied,
  markVerified,
} from './blob-audit.ts';
import { type BlobIntent, emptyCondemned, intendBlobs, loadBlobStore, pinBlobStore } from './blobs.ts';
import { type DatabaseOptions, openDatabase } from './database.ts';
import {
  type Claim,
  type ClaimRequest,
  claimDownloads,
  isDrainDue,
  loadWaiting,
  type Postponement,
  postponeDownload,
  renewDownloads,
  returnDownloads,
} from './downloads.ts';
import { pruneEvents } from './events.ts';
import { loadFileFacts } from './files.ts';
import { createGathering } from './gathering.ts';
import {
  type HeldFile,
  loadHeldFile,
  loadStoredScreens,
  type RetryChoice,
  replaceReading,
  retryDownloads,
} from './held-files.ts';
import { loadHistory } from './history.ts';
import { loadBusiestJobs } from './jobs.ts';
import { claimLease, type Lane, type Lease, type LeaseClaim, loadHolder, releaseLease, renewLease } from './leases.ts';
import { ensureSchema, loadServer, type SchemaRequest } from './migrations.ts';
import { takeTurns } from './paces.ts';
import { commitPage, type PageCommit } from './pages.ts';
import { erasePrefills, forgetResumes, lapsePrefills, loadLeavingResumes } from './prefill-ends.ts';
import * as prefills from './prefills.ts';
import {
  dropUnfinished,
  loadHeld,
  loadNewest,
  loadOpenRanges,
  loadReading,
  loadRecentFrom,
  loadUnfinished,
  loadUnheld,
  type SweepKey,
} from './resume.ts';
import { type Ending, type Settled, type Settlement, settleDownloads } from './settling.ts';
import { loadAdvertiserStatus } from './status.ts';
import { beginSweep, confirmCursors, noteStop, type Sweep, takeSeq } from './sweeps.ts';

export interface StoreOptions extends DatabaseOptions {
  /** Makes person keys; the same for as long as the data lives. */
  readonly privacyKey: Buffer;
}

/** Opens the database. Nothing connects until the first use. */
export function openStore(options: StoreOptions) {
  const db = openDatabase(options);
  const privacyKey = createSecretKey(options.privacyKey);
  // Leases are renewed on a connection of their own: a pool that is busy writing must not cost the lane.
  const own = openDatabase({ ...options, role: `${options.role} lease`, connections: 1 });
  // The books of files that end together are written together: the events of an advertiser stand in one line anyway.
  const settle = createGathering<Ending, Settled>(
    ({ claim }) => claim.advertiserId,
    (endings) => settleDownloads(db, endings),
  );
  const intend = createGathering<BlobIntent, boolean>(
    (blob) => blob.advertiserId,
    (blobs) => intendBlobs(db, blobs),
  );
  return {
    ensureSchema: (request: SchemaRequest) => ensureSchema(db, request),
    loadServer: () => loadServer(db),

    ensureAdvertiser: (name: string, configuredId: bigint | null) => ensureAdvertiser(db, name, configuredId),
    pinAdvertiser: (name: string, id: bigint) => pinAdvertiser(db, name, id),
    haltAdvertiser: (name: string, kind: HaltKind, reason: string) => haltAdvertiser(db, name, kind, reason),
    unhaltAdvertiser: (name: string, kind?: HaltKind) => unhaltAdvertiser(db, name, kind),
    loadAdvertiserIds: (names: readonly string[]) => loadAdvertiserIds(db, names),
    isDrainDue: (advertisers: readonly bigint[]) => isDrainDue(db, advertisers),
    noteAgent: (name: string, agentId: string | null) => noteAgent(db, name, agentId),

    claimLease: (request: LeaseClaim) => claimLease(own, request),
    renewLease: (lease: Lease, leaseMs: number) => renewLease(own, lease, leaseMs),
    releaseLease: (lease: Lease, done?: boolean) => releaseLease(own, lease, done),
    takeTurns: (source: string, stretchMs: number) => takeTurns(db, source, stretchMs),
    loadHolder: (name: string, lane: Lane) => loadHolder(own, name, lane),

    beginSweep: () => beginSweep(db),
    noteStop: (advertiserId: bigint | null, sweep: Sweep, reason: string) => noteStop(db, advertiserId, sweep, reason),
    loadUnfinished: (key: SweepKey) => loadUnfinished(db, key),
    dropUnfinished: (key: SweepKey) => dropUnfinished(db, key),
    loadOpenRanges: (advertiserId: bigint) => loadOpenRanges(db, advertiserId),
    loadReading: (advertiserId: bigint | null, lagMs: number) => loadReading(db, advertiserId, lagMs),
    loadHeld: (advertiserId: bigint, low: bigint, high: bigint | null) => loadHeld(db, advertiserId, low, high),
    loadNewest: (advertiserId: bigint | null) => loadNewest(db, advertiserId),
    loadUnheld: (advertiserId: bigint | null, ids: readonly bigint[]) => loadUnheld(db, advertiserId, ids),
    loadRecentFrom: (advertiserId: bigint | null, days: number) => loadRecentFrom(db, advertiserId, days),
    confirmCursors: (advertiserIds: readonly bigint[]) => confirmCursors(db, advertiserIds),
    takeSeq: () => takeSeq(db),
    commitPage: (page: PageCommit) => commitPage(db, privacyKey, page),

    claimDownloads: (request: ClaimRequest) => claimDownloads(db, request),
    renewDownloads: (claims: readonly Claim[], leaseMs: number) => renewDownloads(own, claims, leaseMs),
    postponeDownload: (claim: Claim, wait: Postponement) => postponeDownload(db, claim, wait),
    returnDownloads: (claims: readonly Claim[]) => returnDownloads(db, claims),
    loadWaiting: (advertisers: readonly bigint[]) => loadWaiting(db, advertisers),
    loadFileFacts: (claims: readonly Claim[], setting: HashSetting) => loadFileFacts(db, claims, setting),
    settleDownload: (claim: Claim, settlement: Settlement) => settle({ claim, settlement }),

    intendBlob: intend,
    emptyCondemned: (advertisers: readonly bigint[], remove: (keys: readonly string[]) => Promise<void>) =>
      emptyCondemned(db, advertisers, remove),
    pinBlobStore: (identity: string, location: string) => pinBlobStore(db, identity, location),
    loadBlobStore: () => loadBlobStore(db),

    loadBlobs: (advertiserId: bigint) => loadBlobs(db, advertiserId),
    markVerified: (advertiserId: bigint, hashes: readonly string[]) => markVerified(db, advertiserId, hashes),
    markDamaged: (advertiserId: bigint, sha256: string) => markDamaged(db, advertiserId, sha256),
    markUnemptied: (advertiserId: bigint, sha256: string) => markUnemptied(db, advertiserId, sha256),
    adoptBlob: (advertiserId: bigint, blob: BlobFacts) => adoptBlob(db, advertiserId, blob),
    markOrphans: (advertiserId: bigint, restMs: number) => markOrphans(db, advertiserId, restMs),
    collectOrphans: (advertiserId: bigint, graceMs: number, remove: (keys: readonly string[]) => Promise<void>) =>
      collectOrphans(db, advertiserId, graceMs, remove),

    loadHeldFile: (advertisers: readonly bigint[], applicationId: bigint, kind: string) =>
      loadHeldFile(db, advertisers, applicationId, kind),
    retryDownloads: (advertiserId: bigint, choice: RetryChoice) => retryDownloads(db, advertiserId, choice),
    loadStoredScreens: (advertiserId: bigint, parserVersion: number | null) =>
      loadStoredScreens(db, advertiserId, parserVersion),
    replaceReading: (file: HeldFile, reading: ScreenReading | null, note: Note | null) =>
      replaceReading(db, file, reading, note),

    pruneEvents: () => pruneEvents(db),

    beginPrefill: (start: prefills.PrefillStart) => prefills.beginPrefill(db, start),
    takeState: (state: Parameters<typeof prefills.takeState>[1]) => prefills.takeState(db, state),
    noteAuthorized: (key: prefills.PrefillKey) => prefills.noteAuthorized(db, key),
    endPrefill: (key: prefills.PrefillKey, outcome: 'denied' | 'expired' | 'failed', reason: string) =>
      prefills.endPrefill(db, key, outcome, reason),
    keepProfile: (kept: prefills.KeptProfile) => prefills.keepProfile(db, privacyKey, kept),
    settleResume: (key: prefills.PrefillKey, reason: string | null) => prefills.settleResume(db, key, reason),
    offerPrefill: (key: prefills.PrefillKey, handleHash: Buffer) => prefills.offerPrefill(db, key, handleHash),
    redeemPrefill: (handle: Parameters<typeof prefills.redeemPrefill>[1]) => prefills.redeemPrefill(db, handle),
    loadResume: (key: prefills.PrefillKey) => prefills.loadResume(db, key),
    findAdvertiserName: (advertiserId: bigint, names: readonly string[]) =>
      prefills.findAdvertiserName(db, advertiserId, names),
    lapsePrefills: (ttlMs: number) => lapsePrefills(db, ttlMs),
    erasePrefills: (person: Parameters<typeof erasePrefills>[2]) => erasePrefills(db, privacyKey, person),
    loadLeavingResumes: (limit: number) => loadLeavingResumes(db, limit),
    forgetResumes: (keys: readonly prefills.PrefillKey[]) => forgetResumes(db, keys),

    loadBusiestJobs: (limit: number) => loadBusiestJobs(db, limit),
    loadAdvertiserStatus: () => loadAdvertiserStatus(db),
    loadHistory: (period: Period, now: Date) => loadHistory(db, period, now),

    async [Symbol.asyncDispose]() {
      await Promise.all([db[Symbol.asyncDispose](), own[Symbol.asyncDispose]()]);
    },
  };
}

export type Store = ReturnType<typeof openStore>;

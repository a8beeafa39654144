// The store as the rest of the house sees it: every statement bound to one database. sync/ and web/ know only this type.

import type { Period } from '../domain/history.ts';
import {
  ensureAdvertiser,
  type HaltKind,
  haltAdvertiser,
  noteAgent,
  pinAdvertiser,
  unhaltAdvertiser,
} from './advertisers.ts';
import { type DatabaseOptions, openDatabase } from './database.ts';
import { loadHistory } from './history.ts';
import { loadBusiestJobs } from './jobs.ts';
import { claimLease, type Lane, type Lease, loadHolder, releaseLease, renewLease } from './leases.ts';
import { ensureSchema, loadServer, type SchemaRequest } from './migrations.ts';
import { commitPage, type PageCommit } from './pages.ts';
import { dropUnfinished, loadHeld, loadOpenRanges, loadReading, loadUnfinished, type SweepKey } from './resume.ts';
import { loadAdvertiserStatus } from './status.ts';
import { beginSweep, confirmCursors, takeSeq } from './sweeps.ts';

export interface StoreOptions extends DatabaseOptions {
  /** Makes person keys; the same for as long as the data lives. */
  readonly privacyKey: Buffer;
}

/** Opens the database. Nothing connects until the first use. */
export function openStore(options: StoreOptions) {
  const db = openDatabase(options);
  // Leases are renewed on a connection of their own: a pool that is busy writing must not cost the lane.
  const own = openDatabase({ ...options, role: `${options.role} lease`, connections: 1 });
  return {
    ensureSchema: (request: SchemaRequest) => ensureSchema(db, request),
    loadServer: () => loadServer(db),

    ensureAdvertiser: (name: string, configuredId: bigint | null) => ensureAdvertiser(db, name, configuredId),
    pinAdvertiser: (name: string, id: bigint) => pinAdvertiser(db, name, id),
    haltAdvertiser: (name: string, kind: HaltKind, reason: string) => haltAdvertiser(db, name, kind, reason),
    unhaltAdvertiser: (name: string, kind?: HaltKind) => unhaltAdvertiser(db, name, kind),
    noteAgent: (name: string, agentId: string | null) => noteAgent(db, name, agentId),

    claimLease: (request: { name: string; lane: Lane; owner: string; leaseMs: number }) => claimLease(own, request),
    renewLease: (lease: Lease, leaseMs: number) => renewLease(own, lease, leaseMs),
    releaseLease: (lease: Lease) => releaseLease(own, lease),
    loadHolder: (name: string, lane: Lane) => loadHolder(own, name, lane),

    beginSweep: () => beginSweep(db),
    loadUnfinished: (key: SweepKey) => loadUnfinished(db, key),
    dropUnfinished: (key: SweepKey) => dropUnfinished(db, key),
    loadOpenRanges: (advertiserId: bigint) => loadOpenRanges(db, advertiserId),
    loadReading: (advertiserId: bigint | null, lagMs: number) => loadReading(db, advertiserId, lagMs),
    loadHeld: (advertiserId: bigint, low: bigint, high: bigint | null) => loadHeld(db, advertiserId, low, high),
    confirmCursors: (advertiserIds: readonly bigint[]) => confirmCursors(db, advertiserIds),
    takeSeq: () => takeSeq(db),
    commitPage: (page: PageCommit) => commitPage(db, options.privacyKey, page),

    loadBusiestJobs: (limit: number) => loadBusiestJobs(db, limit),
    loadAdvertiserStatus: () => loadAdvertiserStatus(db),
    loadHistory: (period: Period, now: Date) => loadHistory(db, period, now),

    async [Symbol.asyncDispose]() {
      await Promise.all([db[Symbol.asyncDispose](), own[Symbol.asyncDispose]()]);
    },
  };
}

export type Store = ReturnType<typeof openStore>;

// What runs every minute: the statements of the worker and its pages, and the blocks of 8 kB that each touches. Blocks depend on the plan and
// not on the machine. Nightly tasks are not among them: verify, the recheck, retention, pruning.

import { createSecretKey } from 'node:crypto';
import pg from 'pg';
import { lastPosition, nearestPosition } from '../../src/domain/coverage/position.ts';
import { diffPage } from '../../src/store/applications/diff-page.ts';
import { claimDownloads, loadDueAdvertisers, loadFileFacts } from '../../src/store/files/download-queue.ts';
import type { Queryable, Row, Transaction } from '../../src/store/postgres/database.ts';
import { loadAdvertiserStatus, loadHistory } from '../../src/store/reports/status.ts';
import {
  countListed,
  findHidden,
  loadAuditPlace,
  loadKnownIds,
  loadOpenRanges,
  loadRecentFrom,
  loadSyncStates,
} from '../../src/store/sweeps/continue-sweep.ts';
import { confirmCursors, raiseCursor } from '../../src/store/sweeps/sweeps.ts';

const frequent: Record<string, (db: Queryable, advertiserId: bigint) => Promise<unknown>> = {
  'the status': loadAdvertiserStatus,
  'the charts of a day': (db) => loadHistory(db, new Date()),
  'where a poll begins': (db, advertiserId) => loadSyncStates(db, [{ advertiserId, lagMs: 900_000 }]),
  'an empty page of a poll': (db, advertiserId) =>
    diffPage(db, createSecretKey(Buffer.from('bench')), {
      ...{ advertiserId, seq: 1n, askedAt: new Date(), applications: [], rejects: [], shared: [] },
      asked: { low: 9_900n, high: 10_000n },
      lease: { name: 'default', lane: 'live', owner: 'bench', epoch: 1n },
      sweep: { sweepId: 2n, purpose: 'live', axis: 'id', low: 1n, high: null, startedAt: new Date() },
    }),
  'the end of a poll': (db, advertiserId) => confirmCursors(db, [{ advertiserId, at: new Date() }]),
  'a cursor that rises': (db, advertiserId) => raiseCursor(db as Transaction, advertiserId, lastPosition),
  'what is known before a recheck': (db, advertiserId) => countListed(db, advertiserId, { low: 1n, high: null }),
  'the ids that split a recheck': (db, advertiserId) => loadKnownIds(db, advertiserId, nearestPosition(5_000n)),
  'where the recheck of recent days begins': (db, advertiserId) => loadRecentFrom(db, advertiserId, 2),
  'the place of an audit': (db, advertiserId) => loadAuditPlace(db, advertiserId, 0.5, 20),
  'whether a page holds hidden applications': (db, advertiserId) =>
    findHidden(
      db,
      advertiserId,
      [
        { id: 77n, submittedAt: null },
        { id: 20_000_000n, submittedAt: Date.now() },
      ],
      true,
    ),
  'open ranges': (db, advertiserId) => loadOpenRanges(db, advertiserId),
  'which accounts have files to fetch': (db) => loadDueAdvertisers(db),
  'a claim of files': async (db, advertiserId) => {
    const token = '00000000-0000-4000-8000-000000000000';
    const claim = { advertisers: [advertiserId], tier: 'usual', limit: 16, token, leaseMs: 60_000 } as const;
    const { claims } = await claimDownloads(db, claim);
    await loadFileFacts(db, claims, 'learn');
  },
};

/** Tables that grow with the account. */
const growing = ['applications', 'attachments', 'attachment_versions', 'blobs', 'events', 'evidence'];

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Plan[];
}

export interface Touched {
  /** The blocks that each of them touches. */
  readonly blocks: Readonly<Record<string, number>>;
  /** Those that read a growing table from its beginning to its end, with the table. */
  readonly scans: readonly string[];
}

/** What each of them touches in this database. Everything is undone. */
export async function countBlocks(url: string, advertiserId: bigint): Promise<Touched> {
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: toParser } });
  await client.connect();
  try {
    const blocks: Record<string, number> = {};
    const scans: string[] = [];
    for (const [what, work] of Object.entries(frequent)) {
      const db = watch(client, (plan) => {
        blocks[what] = (blocks[what] ?? 0) + plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
        scans.push(...listScans(plan).map((table) => `${what}: ${table}`));
      });
      await client.query('BEGIN');
      await work(db, advertiserId);
      await client.query('ROLLBACK');
    }
    return { blocks, scans };
  } finally {
    await client.end();
  }
}

function toParser(oid: number, format?: 'text' | 'binary') {
  return oid === 20 ? BigInt : pg.types.getTypeParser(oid, format as 'text');
}

/** Runs each statement twice: explained, for the blocks that it touches, and undone; then for its rows. One after the other. */
function watch(client: pg.Client, onPlan: (plan: Plan) => void): Queryable {
  let last: Promise<unknown> = Promise.resolve();
  async function run<T extends object>(sql: string, values: readonly unknown[]): Promise<T[]> {
    await client.query('SAVEPOINT before');
    const explained = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${sql}`,
      [...values],
    );
    await client.query('ROLLBACK TO before');
    for (const { 'QUERY PLAN': plans } of explained.rows) onPlan(plans[0].Plan);
    return (await client.query<T & pg.QueryResultRow>(sql, [...values])).rows;
  }
  return {
    async query<T extends object = Row>(sql: string, values: readonly unknown[] = []) {
      const rows = last.then(() => run<T>(sql, values));
      last = rows.catch(() => undefined);
      return await rows;
    },
  };
}

/** More blocks than a small table has, or than a search reads that ends at the first row. */
const manyBlocks = 100;

/** The growing tables that a plan reads from their beginning to their end. */
function listScans({ Plans: below = [], ...node }: Plan): string[] {
  const { 'Node Type': type, 'Relation Name': table = '', 'Shared Hit Blocks': hit, 'Shared Read Blocks': read } = node;
  const own = type === 'Seq Scan' && growing.includes(table) && hit + read > manyBlocks ? [table] : [];
  return [own, ...below.map(listScans)].flat();
}

// @module-tag slow
// What runs every minute reads as many blocks in an account of fifty thousand applications as in one of ten thousand: its cost does not
// depend on how much is stored.
import pg from 'pg';
import { expect, test } from 'vitest';
import { fillAccount } from '../../bench/filled-account.ts';
import { lastPosition, nearestPosition } from '../../src/domain/coverage/position.ts';
import { diffPage, type ReadPage } from '../../src/store/applications/diff-page.ts';
import { loadFileFacts } from '../../src/store/files/claim-facts.ts';
import { claimDownloads, loadDueAdvertisers } from '../../src/store/files/download-queue.ts';
import type { Queryable, Row } from '../../src/store/postgres/database.ts';
import { loadHistory } from '../../src/store/reports/history.ts';
import { loadAdvertiserStatus } from '../../src/store/reports/status.ts';
import {
  countListed,
  findHidden,
  loadAuditPlace,
  loadKnownIds,
  loadOpenRanges,
  loadRecentFrom,
  loadSyncStates,
} from '../../src/store/sweeps/continue-sweep.ts';
import { confirmCursors, raiseCursor } from '../../src/store/sweeps/cursors.ts';
import { openTestDatabase } from '../support/test-database.ts';

const advertiserId = 7n;
const page: ReadPage = {
  ...{ advertiserId, seq: 1n, askedAt: new Date(), applications: [], rejects: [] },
  asked: { low: 9_900n, high: 10_000n },
  lease: { name: 'default', lane: 'live', owner: 'test', epoch: 1n },
  sweep: { sweepId: 2n, purpose: 'live', axis: 'id', low: 1n, high: null, startedAt: new Date() },
};

/** What the worker and its pages do again and again. Nightly tasks are not among them: verify, the recheck, retention, pruning. */
const frequent: Record<string, (db: Queryable) => Promise<unknown>> = {
  'the status': loadAdvertiserStatus,
  'the charts of a day': (db) => loadHistory(db, '24h', new Date()),
  'where a poll begins': (db) => loadSyncStates(db, [{ advertiserId, lagMs: 900_000 }]),
  'an empty page of a poll': (db) => diffPage(db, page),
  'the end of a poll': (db) => confirmCursors(db, [advertiserId]),
  'a cursor that rises': (db) => raiseCursor(db, advertiserId, lastPosition),
  'what is known before a recheck': (db) => countListed(db, advertiserId, { low: 1n, high: null }),
  'the ids that split a recheck': (db) => loadKnownIds(db, advertiserId, nearestPosition(5_000n)),
  'where the recheck of recent days begins': (db) => loadRecentFrom(db, advertiserId, 2),
  'the place of an audit': (db) => loadAuditPlace(db, advertiserId, { random: 0.5, size: 20 }),
  'whether a page holds hidden applications': (db) =>
    findHidden(db, advertiserId, [
      { id: 77n, submittedAt: null },
      { id: 200_000n, submittedAt: Date.now() },
    ]),
  'open ranges': (db) => loadOpenRanges(db, advertiserId),
  'which accounts have files to fetch': loadDueAdvertisers,
  'a claim of files': async (db) => {
    const token = '00000000-0000-4000-8000-000000000000';
    const claim = { advertisers: [advertiserId], tier: 'usual', limit: 16, token, leaseMs: 60_000 } as const;
    const { claims } = await claimDownloads(db, claim);
    expect(claims).toHaveLength(16);
    await loadFileFacts(db, claims, 'learn');
  },
};

/** An index that is one level deeper costs a block for each lookup. */
const mostMore = { times: 1.3, blocks: 20 };

test('what runs often reads no more blocks when five times as much is stored', async () => {
  const [few, many] = [await measure(10_000), await measure(50_000)];
  const grown = Object.entries(many).filter(([what, blocks]) => {
    return blocks > (few[what] ?? 0) * mostMore.times + mostMore.blocks;
  });
  expect(grown.map(([what, blocks]) => `${what}: ${few[what]} blocks, then ${blocks}`)).toEqual([]);
});

/** Blocks of 8 kB that each of the frequent tasks touches, in an account of this size with a backlog of a thousand files. */
async function measure(applications: number): Promise<Record<string, number>> {
  await using database = await openTestDatabase();
  await fillAccount(database.url, applications);
  await database.query(
    `INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority)
     SELECT advertiser_id, application_id, kind, application_id % 2 FROM intake.attachments WHERE kind = 'resume' AND application_id <= 1000`,
  );
  await database.query('ANALYZE intake.downloads');
  const client = new pg.Client({ connectionString: database.url, types: { getTypeParser: toParser } });
  await client.connect();
  database.shared.defer(() => client.end());
  const touched: Record<string, number> = {};
  for (const [what, work] of Object.entries(frequent)) {
    touched[what] = 0;
    const db = watch(client, (blocks) => {
      touched[what] = (touched[what] ?? 0) + blocks;
    });
    await client.query('BEGIN');
    await work(db);
    await client.query('ROLLBACK');
  }
  return touched;
}

function toParser(oid: number, format?: 'text' | 'binary') {
  return oid === 20 ? BigInt : pg.types.getTypeParser(oid, format as 'text');
}

/** Runs each statement twice: explained, for the blocks that it touches, and undone; then for its rows. One after the other. */
function watch(client: pg.Client, onBlocks: (blocks: number) => void): Queryable {
  let last: Promise<unknown> = Promise.resolve();
  async function run<T extends object>(sql: string, values: readonly unknown[]): Promise<T[]> {
    await client.query('SAVEPOINT before');
    const explained = await client.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${sql}`,
      [...values],
    );
    await client.query('ROLLBACK TO before');
    const plan = explained.rows[0]?.['QUERY PLAN'][0].Plan ?? {};
    onBlocks((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0));
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

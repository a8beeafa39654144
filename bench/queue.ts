// Measures only the download queue: claims 500 rows and deletes them by their tokens, repeatedly, at 50,000 and at a million pending rows.
// The anchor is graphile-worker 0.18 with a local queue of 500 and batched completion, on jobs that do nothing. files.ts measures the rest
// of a download (bytes, blob, attachment, events).

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { claimDownloads } from '../src/store/files/download-queue.ts';
import { openDatabase } from '../src/store/postgres/database.ts';
import { type Figure, interleave, report, type Size, toCount, toCpuMs } from './support/figure.ts';
import { loadPeer, notInstalled } from './support/peers.ts';
import { type BenchDatabase, type Cost, openPlace, type Place } from './support/place.ts';

interface GraphileWorker {
  readonly run: (options: object) => Promise<{ stop(): Promise<void> }>;
  readonly runMigrations: (options: object) => Promise<void>;
  readonly Logger: new (factory: () => () => void) => object;
}

const peer = 'graphile-worker';
const atOnce = 500;

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const many = toCount(size, 1_000_000);
  // Also in a quick run: with fewer jobs, starting the peer's workers would be half of the time.
  const [few, done] = [50_000, 5_000];
  const worker = loadPeer<GraphileWorker>(peer);
  const anchor = `${peer} with local queue and batch completion`;
  const rows = [
    { figure: `queue, claims and completions at ${many} pending`, anchor, goal: { atLeast: 0.9 } },
    { figure: `queue, CPU of a claim and completion at ${few} pending`, anchor, goal: { atLeast: 2 } },
  ] as const;
  if (worker === null) {
    for (const row of rows) yield { ...row, ratio: null, ours: null, theirs: null, note: notInstalled(peer) };
    return;
  }
  await using place = await openPlace();
  for (const [row, pending] of [
    [rows[1], few],
    [rows[0], many],
  ] as const) {
    // Adds what the first half of the runs removes, so that `pending` is the average.
    const filled = pending + Math.floor(size.shortRepeats / 2) * done;
    await using mine = await openOurs(place, filled);
    await using jobs = await openTheirs(place, worker, filled);
    const { ours, theirs } = await interleave(size.shortRepeats, {
      ours: () => place.meter(() => mine.work(done)),
      theirs: () => place.meter(() => jobs.work(done)),
    });
    const byCpu = row === rows[1];
    const rate = (cost: Cost) => Math.round((done * 1_000) / cost.wallMs);
    const us = (cost: Cost) => ((toCpuMs(cost) * 1_000) / done).toFixed(0);
    yield {
      ...row,
      ratio: byCpu ? toCpuMs(theirs) / toCpuMs(ours) : theirs.wallMs / ours.wallMs,
      ours,
      theirs,
      note: `${rate(ours)}/s and ${us(ours)} us CPU each; theirs ${rate(theirs)}/s and ${us(theirs)} us`,
    };
  }
}

interface Queue extends AsyncDisposable {
  /** Claims and completes `count` entries. */
  work(count: number): Promise<void>;
}

async function openOurs(place: Place, pending: number): Promise<Queue> {
  const database = await place.openDatabase();
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('a', 1), ('b', 2)`);
  for (let from = 1; from <= pending; from += 100_000) await fill(database, from, Math.min(pending, from + 99_999));
  for (const table of ['applications', 'attachments', 'downloads'])
    await database.query(`VACUUM ANALYZE intake.${table}`);
  const db = openDatabase({ url: database.url, role: 'bench' });
  return {
    async work(count) {
      for (let done = 0; done < count; ) {
        const request = {
          advertisers: [1n, 2n],
          tier: 'usual',
          limit: atOnce,
          token: randomUUID(),
          leaseMs: 600_000,
        } as const;
        const { claims } = await claimDownloads(db, request);
        if (claims.length === 0) throw new Error('The queue ran dry.');
        const removed = await db.query(
          `DELETE FROM intake.downloads d USING unnest($1::bigint[], $2::bigint[], $3::text[], $4::uuid[]) AS c (advertiser_id, application_id, kind, token)
           WHERE d.advertiser_id = c.advertiser_id AND d.application_id = c.application_id AND d.kind = c.kind AND d.lease_token = c.token
           RETURNING 1`,
          [
            claims.map((c) => c.advertiserId),
            claims.map((c) => c.applicationId),
            claims.map((c) => c.kind),
            claims.map((c) => c.token),
          ],
        );
        done += removed.length;
      }
    },
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

async function fill(database: BenchDatabase, from: number, to: number): Promise<void> {
  await database.query(
    `WITH a AS (INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT 1 + n % 2, n, '', 1 FROM generate_series($1::int, $2::int) AS n RETURNING advertiser_id, application_id),
     f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state)
       SELECT advertiser_id, application_id, 'resume', 'pending' FROM a RETURNING advertiser_id, application_id)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority)
     SELECT advertiser_id, application_id, 'resume', application_id % 2 FROM f`,
    [from, to],
  );
}

async function openTheirs(place: Place, worker: GraphileWorker, pending: number): Promise<Queue> {
  const database = await place.openDatabase();
  await worker.runMigrations({ connectionString: database.url });
  for (let from = 1; from <= pending; from += 10_000) {
    await database.query(
      `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
         SELECT json_populate_record(NULL::graphile_worker.job_spec, json_build_object('identifier', 'nothing', 'payload', json_build_object('id', n)))
         FROM generate_series($1::int, $2::int) AS n))`,
      [from, Math.min(pending, from + 9_999)],
    );
  }
  await database.query('VACUUM ANALYZE graphile_worker._private_jobs');
  const pool = new pg.Pool({ connectionString: database.url, max: 10 });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return {
    async work(count) {
      let done = 0;
      const enough = Promise.withResolvers<void>();
      const runner = await worker.run({
        pgPool: pool,
        noHandleSignals: true,
        logger: new worker.Logger(() => () => undefined),
        preset: {
          worker: { concurrentJobs: 100, localQueue: { size: atOnce }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
        },
        taskList: {
          nothing: async () => {
            done += 1;
            if (done === count) enough.resolve();
          },
        },
      });
      await enough.promise;
      await runner.stop();
    },
    async [Symbol.asyncDispose]() {
      await pool.end();
      await database[Symbol.asyncDispose]();
    },
  };
}

if (import.meta.main) await report(measure);

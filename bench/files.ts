// Copies files from the source to S3, 16 at once: a whole download run (claim, fetch, hash, check, put, prove, one durable transaction)
// against rclone, which copies the same files from the same server to the same store and keeps no records. One figure has 40 ms of latency
// on both sides, where concurrency decides; the other has none, where CPU decides. rclone gets every switch that saves requests. Each of
// its 16 transfers fetches, then puts; Intake has 16 fetches and 16 puts in flight at the same time, which the figure with latency shows.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openS3Blobs } from '../src/blobs/s3.ts';
import { createSource } from '../src/source/client.ts';
import { openConnections } from '../src/source/http.ts';
import { describeFile } from '../src/source/parse/file-description.ts';
import { parseScreens } from '../src/source/parse/screen.ts';
import { runDownloads } from '../src/sync/files/download-run.ts';
import { openSpool } from '../src/sync/files/spool.ts';
import { type Figure, interleave, report, type Size, toCount, toCpuMs } from './support/figure.ts';
import { type FileServers, openFileServers } from './support/file-servers.ts';
import { openBenchStore } from './support/loading.ts';
import { type BenchDatabase, openPlace } from './support/place.ts';

// The SDK reads its credentials from the environment.
Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench' });

const run = promisify(execFile);
const sizeBytes = 40_000;
const concurrency = 16;

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const rclone = await run('rclone', ['version']).then(
    ({ stdout }) => stdout.split('\n')[0] ?? 'rclone',
    () => null,
  );
  await using place = await openPlace();
  for (const [latencyMs, files, repeats, atLeast] of [
    [40, toCount(size, 3_000), size.repeats, 0.9],
    [0, toCount(size, 3_000), size.shortRepeats, 0.4],
  ] as const) {
    await using servers = await openFileServers({ latencyMs, files, sizeBytes });
    const where = latencyMs > 0 ? `with ${latencyMs} ms latency on both sides` : 'without latency';
    const row = {
      figure: `files ${where}, ${concurrency} at once`,
      anchor: `${rclone ?? 'rclone'} copy, http to s3, ${files} files of ${sizeBytes / 1_000} kB`,
      goal: { atLeast },
    };
    const ours = async () => {
      await using database = await place.openDatabase();
      await queue(database, files);
      return await place.meter(() => fetchAll(database.url, servers, files));
    };
    if (rclone === null) {
      const { only } = await interleave(repeats, { only: ours });
      yield { ...row, ratio: null, ours: only, theirs: null, note: 'rclone is not installed: apt-get install rclone' };
      continue;
    }
    const costs = await interleave(repeats, { ours, theirs: () => place.meter(() => copy(servers)) });
    const rate = (wallMs: number) => `${Math.round((files * 1_000) / wallMs)}/s`;
    yield {
      ...row,
      ...costs,
      ratio: costs.theirs.wallMs / costs.ours.wallMs,
      note: `${rate(costs.ours.wallMs)} against ${rate(costs.theirs.wallMs)}; by CPU ${(toCpuMs(costs.theirs) / toCpuMs(costs.ours)).toFixed(2)}`,
    };
  }
}

/** Inserts one pending resume per application, as a first load does. */
async function queue(database: BenchDatabase, files: number): Promise<void> {
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('default', 42)`);
  await database.query(
    `WITH a AS (INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT 42, n, '', 1 FROM generate_series(1, $1::int) AS n RETURNING application_id),
     f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, size_bytes)
       SELECT 42, application_id, 'resume', 'pending', $2 FROM a RETURNING application_id)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) SELECT 42, application_id, 'resume', 0 FROM f`,
    [files, sizeBytes],
  );
  // The product does the same in its first load.
  await database.query('ANALYZE intake.applications, intake.attachments, intake.downloads');
}

async function fetchAll(url: string, { sourceUrl, storeUrl }: FileServers, files: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-bench-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const signal = AbortSignal.timeout(600_000);
  const store = stack.use(openBenchStore(url));
  const source = createSource({
    url: sourceUrl,
    credential: () => 'none',
    format: 'json',
    totalTimeoutMs: 600_000,
    connections: stack.adopt(openConnections(concurrency, 30_000), (agent) => agent.destroy()),
    listMaxBytes: 3_000_000,
    applicationMaxBytes: 50_000_000,
  });
  const blobs = stack.use(
    openS3Blobs({
      bucket: 'bench',
      prefix: 'intake',
      endpoint: storeUrl,
      region: 'us-east-1',
      forcePathStyle: true,
      checksums: 'WHEN_REQUIRED',
      connections: concurrency,
      timeoutMs: 30_000,
    }),
  );
  const spool = openSpool(folder);
  const accounts = [{ name: 'default', advertiserId: 42n, source }];
  const summary = await runDownloads(
    { store, blobs, accounts, spool, describeFile, parseScreens },
    { concurrency, leaseMs: 30_000, maxBytes: 50_000_000, hash: 'learn', retryForMs: 0, graceMs: 0, signal },
  );
  if (summary.stored !== files) throw new Error(`${summary.stored} of ${files} files were stored.`);
}

async function copy({ sourceUrl, storeUrl }: FileServers): Promise<void> {
  const at = [`:s3,provider=Other,access_key_id=bench,secret_access_key=bench,endpoint="${storeUrl}":bench/copied`];
  // Not --no-traverse: with it, rclone looks up every file in the store before its put. One list request, or no check at all, is cheaper.
  const spared = [
    '--s3-no-check-bucket',
    '--s3-no-head',
    '--s3-no-head-object',
    '--no-check-dest',
    '--no-update-modtime',
  ];
  const atOnce = ['--transfers', String(concurrency), '--checkers', String(concurrency)];
  const args = ['copy', ':http:', ...at, '--http-url', `${sourceUrl}/files/`, ...spared, ...atOnce, '--retries', '1'];
  // Keeps environment settings for other programs away from rclone, for example a CA bundle.
  await run('rclone', args, { env: { PATH: process.env.PATH, HOME: process.env.HOME } });
}

if (import.meta.main) await report(measure);

// Measures how fast downloads are claimed and completed at 50,000 and at 1,000,000 queued rows: `node test/chaos/claim-rate.ts FOLDER`.
// The folder holds an embedded Postgres. The two queues are in two databases and alternate, so that other load affects both equally.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { claimDownloads } from '../../src/store/files/download-queue.ts';
import { migrate } from '../../src/store/postgres/apply-migrations.ts';
import { type Database, openDatabase } from '../../src/store/postgres/database.ts';

const root = process.argv[2] ?? '';
if (!root) throw new Error('Name an empty folder for the embedded Postgres.');
const sizes = [50_000, Number(process.argv[3] ?? 1_000_000)];
const runs = 12;
const rowsPerRun = 4_000;

interface Queue extends AsyncDisposable {
  readonly rows: number;
  readonly db: Database;
  filled: number;
  readonly samples: { perSecond: number; cpuMs: number; walBytes: number }[];
}

await using server = await openEmbedded({ root });
await using stack = new AsyncDisposableStack();
const queues: Queue[] = [];
for (const rows of sizes) queues.push(stack.use(await openQueue(rows)));
for (const queue of queues) await warmUp(queue);
for (let run = 0; run < runs; run++) {
  for (const queue of run % 2 === 0 ? queues : queues.toReversed()) {
    await fill(queue, rowsPerRun);
    await measure(queue);
  }
}
for (const { rows, samples } of queues) {
  const [rate, cpu, wal] = (['perSecond', 'cpuMs', 'walBytes'] as const).map((name) => toMedian(samples, name));
  const cpuUs = ((cpu ?? 0) * 1_000) / rowsPerRun;
  console.log(
    `${rows} rows: ${Math.round(rate ?? 0)} claimed and completed per second, ${cpuUs.toFixed(1)} us of Postgres' CPU and ${Math.round((wal ?? 0) / rowsPerRun)} bytes of WAL each`,
  );
}
const [small = 1, large = 0] = queues.map(({ samples }) => toMedian(samples, 'perSecond'));
const [smallCpu = 0, largeCpu = 1] = queues.map(({ samples }) => samples.reduce((sum, one) => sum + one.cpuMs, 0));
console.log(`ratio ${(large / small).toFixed(2)} by the clock, ${(smallCpu / largeCpu).toFixed(2)} by CPU`);

async function openQueue(rows: number): Promise<Queue> {
  const url = new URL(server.url);
  url.pathname = `/queue_${rows}`;
  {
    await using admin = openDatabase({ url: server.url, role: 'bench', connections: 1 });
    await admin.query(`DROP DATABASE IF EXISTS queue_${rows}`);
    await admin.query(`CREATE DATABASE queue_${rows}`);
  }
  await migrate(url.href);
  const db = openDatabase({ url: url.href, role: 'bench', connections: 1, statementTimeoutMs: 600_000 });
  await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('a', 1), ('b', 2)`);
  const queue: Queue = {
    rows,
    db,
    filled: 0,
    samples: [],
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  };
  while (queue.filled < rows) await fill(queue, Math.min(100_000, rows - queue.filled));
  return queue;
}

async function fill(queue: Queue, count: number): Promise<void> {
  await queue.db.query(
    `WITH a AS (INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT 1 + n % 2, n, '', 1 FROM generate_series($1::int, $2::int) AS n RETURNING advertiser_id, application_id),
     f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state)
       SELECT advertiser_id, application_id, 'resume', 'pending' FROM a RETURNING advertiser_id, application_id)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority)
     SELECT advertiser_id, application_id, 'resume', application_id / 2 % 2 FROM f`,
    [queue.filled + 1, queue.filled + count],
  );
  queue.filled += count;
}

/** Keeps the effects of filling (unvacuumed tables, dirty pages, cold pages) out of the measurement. */
async function warmUp(queue: Queue): Promise<void> {
  for (const table of ['applications', 'attachments', 'downloads']) {
    await queue.db.query(`VACUUM ANALYZE intake.${table}`);
  }
  await queue.db.query('CHECKPOINT');
  await measure(queue);
  queue.samples.length = 0;
}

/** Claims rows in batches of 100 and deletes them, as the worker does with completed downloads. */
async function measure({ db, samples }: Queue): Promise<void> {
  // The pool has one connection, so this backend does all the work.
  const [backend] = await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const pid = backend?.pid ?? 0;
  const [walBefore, cpuBefore, startedAt] = [await loadWal(db), loadCpuMs(pid), performance.now()];
  for (let done = 0; done < rowsPerRun; ) {
    const token = randomUUID();
    const request = { advertisers: [1n, 2n], tier: 'usual', limit: 100, token, leaseMs: 600_000 } as const;
    const { claims } = await claimDownloads(db, request);
    await db.query(
      `DELETE FROM intake.downloads d USING unnest($1::bigint[], $2::bigint[]) AS c (advertiser_id, application_id)
       WHERE d.advertiser_id = c.advertiser_id AND d.application_id = c.application_id AND d.kind = 'resume' AND d.lease_token = $3`,
      [claims.map((c) => c.advertiserId), claims.map((c) => c.applicationId), token],
    );
    done += claims.length;
    if (claims.length === 0) throw new Error('The queue ran dry.');
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const cpuMs = loadCpuMs(pid) - cpuBefore;
  samples.push({ perSecond: rowsPerRun / seconds, cpuMs, walBytes: (await loadWal(db)) - walBefore });
}

async function loadWal(db: Database): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(
    `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes`,
  );
  return row?.bytes ?? 0;
}

/** User and system time of a process, counted in the kernel's ticks of 10 ms. */
function loadCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

function toMedian(samples: Queue['samples'], name: keyof Queue['samples'][number]): number {
  return samples.map((sample) => sample[name]).sort((a, b) => a - b)[samples.length >> 1] ?? 0;
}

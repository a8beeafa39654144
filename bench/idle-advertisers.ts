// Measures the cost of polling idle advertisers: CPU of the worker and of Postgres, and bytes of WAL, per poll, at 10, 1,000 and 10,000
// advertisers, with the ratio to 10: npx node bench/idle-advertisers.ts [advertisers ...]. The board is a separate process and is not
// counted. Each advertiser is polled every second, or as often as the machine can. The load of a schedule is its polls per minute times
// this cost. Then the first advertiser becomes busy: the last column is what each of its applications costs beside the polls of the others.
// Loops of the lowest priority keep the cores busy meanwhile: a second of CPU does less on a core whose sibling works, and ten advertisers
// alone would leave it idle. The first row is the least possible poll: one HTTP request and one SELECT, two at once as in the worker.
// --quick counts fewer polls.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { runWorker } from '../src/app/worker.ts';
import { loadConfig } from '../src/config.ts';
import { openEmbedded } from '../src/dev/embedded/embedded.ts';
import { openSandbox } from '../src/dev/sandbox/http/server.ts';
import type { KnownPages } from '../src/domain/coverage/state.ts';
import { createLog } from '../src/log.ts';
import { type Database, openDatabase } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/postgres/migrations.ts';

const firstAdvertiser = 20_000_001;
const firstApplication = 100_001;

if (process.argv[2] === 'load') for (;;) JSON.parse(JSON.stringify(process.env));
else if (process.argv[2] === 'board') await serveBoard(Number(process.argv[3]));
else
  await measureAll(
    process.argv
      .slice(2)
      .filter((word) => word !== '--quick')
      .map(Number),
  );

async function serveBoard(advertisers: number): Promise<void> {
  const others = Array.from({ length: advertisers - 1 }, () => ({ applications: 0 }));
  await using board = await openSandbox({ applications: 0, advertisers: others });
  // Without files: the first poll finds each changed, and later ones would share the machine with its downloads.
  for (const account of board.advertisers) account.add([{ attachments: [] }]);
  process.send?.(board.url);
  // A hundred a second, in ten parts.
  const arriving = Array.from({ length: 10 }, () => ({ attachments: [] }));
  process.once('message', async (arrivals: number) => {
    for (let added = 0; added < arrivals; added += arriving.length) {
      board.add(arriving);
      await sleep(100);
    }
  });
  await once(process, 'disconnect');
}

async function measureAll(sizes: readonly number[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-idle-'));
  const loads = cpus().map(() => spawn('nice', ['-n', '19', process.execPath, import.meta.filename, 'load']));
  try {
    await using server = await openEmbedded({ root: folder, scratch: true });
    await migrate(server.url);
    await using db = openDatabase({ url: server.url, role: 'bench' });
    await db.query(`ALTER SYSTEM SET autovacuum = off`);
    await db.query(`SELECT pg_reload_conf()`);
    let base: Cost | undefined;
    const print = (what: string | number, cost: Cost, ratio: number) => {
      const { pollsPerSecond, workerMs, postgresMs, walBytes, rssMb, arrivalMs } = cost;
      const cells = [pollsPerSecond, workerMs, postgresMs, walBytes, ratio, rssMb, arrivalMs];
      console.log(`| ${what} | ${cells.map((cell) => cell.toFixed(cell < 100 ? 2 : 0)).join(' | ')} |`);
    };
    console.log(
      '| advertisers | polls/s | worker ms/poll | Postgres ms/poll | WAL bytes/poll | x of 10 | RSS MB | ms/arrival |',
    );
    console.log('|---|---|---|---|---|---|---|---|');
    const least = await measureLeast(db, server.url);
    for (const size of sizes.length > 0 ? sizes : [10, 1_000, 10_000]) {
      const cost = await measure(db, server.url, folder, size);
      if (base === undefined) print('one request, one SELECT', least, cpuMs(least) / cpuMs(cost));
      base ??= cost;
      print(size, cost, cpuMs(cost) / cpuMs(base));
    }
  } finally {
    for (const load of loads) load.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Cost {
  readonly pollsPerSecond: number;
  readonly workerMs: number;
  readonly postgresMs: number;
  readonly walBytes: number;
  readonly rssMb: number;
  /** CPU of each application that arrives at the busy advertiser, beyond that of the polls. */
  readonly arrivalMs: number;
}

function cpuMs(cost: Cost): number {
  return cost.workerMs + cost.postgresMs;
}

async function measure(db: Database, url: string, folder: string, advertisers: number): Promise<Cost> {
  await fill(db, advertisers);
  await using board = await openBoard(advertisers);
  const file = join(folder, 'advertisers.json');
  const accounts = Array.from({ length: advertisers }, (_, index) => ({
    name: `account-${index}`,
    credential: `sandbox-credential-${firstAdvertiser + index}`,
  }));
  writeFileSync(file, JSON.stringify(accounts));
  const env = {
    ...{ DATABASE_URL: url, SOURCE_URL: board.url, ADVERTISERS_FILE: file, SOURCE_RATE: '100000/s', ADMIN_PORT: '0' },
    ...{
      SYNC_SCHEDULE: '* * * * * *',
      RECHECK_SCHEDULE: 'off',
      BLOBS_URL: `file:${folder}/blobs`,
      PRIVACY_KEY: 'a privacy key for the benches',
    },
  };
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'webhooks', 'extract'] as const;
  const stop = new AbortController();
  let polls = 0;
  let arrived = 0;
  // A poll reads again what came within the lag: once more has arrived than a page holds, it is two requests.
  let isIdle = true;
  const enough = Promise.withResolvers<void>();
  const warm = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const noisy = Promise.withResolvers<never>();
  // Ten advertisers are polled ten times a second.
  const [leastWarm, leastCounted] = process.argv.includes('--quick') ? [200, 300] : [300, 1_000];
  const warmPolls = Math.max(leastWarm, 1.2 * advertisers);
  const counted = Math.max(leastCounted, Math.min(5_000, advertisers));
  const worker = runWorker(loadConfig(env, { needs }), {
    log: await createLog({ level: 'error', format: 'json' }),
    signal: stop.signal,
    onPass({ pass, outcome, kind, requests = 0, added = 0 }) {
      if (pass !== 'poll') return;
      if (outcome === 'failed' || (isIdle && requests !== 1))
        noisy.reject(new Error(`Not a quiet poll: ${outcome} (${kind ?? 'no error'}), ${requests} requests.`));
      polls++;
      arrived += added;
      if (arrived >= leastCounted) over.resolve();
      if (polls === warmPolls) warm.resolve();
      if (polls === warmPolls + counted) enough.resolve();
    },
  });
  const ended = Promise.race([worker, noisy.promise]);
  try {
    await Promise.race([warm.promise, ended]);
    const idle = await meter(db, url, counted, () => Promise.race([enough.promise, ended]));
    isIdle = false;
    const before = polls;
    board.arrive(leastCounted);
    const busy = await meter(db, url, 1, () => Promise.race([over.promise, ended]));
    const arrivalMs = (cpuMs(busy) - (polls - before) * cpuMs(idle)) / arrived;
    return { ...idle, arrivalMs };
  } finally {
    stop.abort();
    await worker;
  }
}

/** Requests the list of an advertiser with nothing new, and reads one row. */
async function measureLeast(db: Database, url: string): Promise<Cost> {
  await fill(db, 10);
  await using board = await openBoard(10);
  const pool = new Pool(board.url, { connections: 2 });
  const headers = { authorization: `SWS sandbox-credential-${firstAdvertiser}`, accept: 'application/json' };
  const path = `/v1/advertiser/applications?afterid=${firstApplication}&include=primaryjobseekinginfo`;
  const poll = async (count: number) => {
    for (let done = 0; done < count; done++) {
      const { body } = await pool.request({ method: 'GET', path, headers });
      await body.text();
      await db.query(`SELECT after_id FROM intake.cursors WHERE advertiser_id = $1`, [firstAdvertiser]);
    }
  };
  const pollAll = (count: number) => Promise.all([poll(count / 2), poll(count / 2)]);
  await pollAll(500);
  const cost = await meter(db, url, 2_000, () => pollAll(2_000));
  await pool.close();
  return cost;
}

/** The average cost of each of the `count` polls of the work. */
async function meter(db: Database, url: string, count: number, work: () => Promise<unknown>): Promise<Cost> {
  const [startedAt, cpu, postgresMs, wal] = [
    performance.now(),
    process.cpuUsage(),
    loadPostgresMs(url),
    await loadWal(db),
  ];
  await work();
  const used = process.cpuUsage(cpu);
  return {
    pollsPerSecond: (1_000 * count) / (performance.now() - startedAt),
    workerMs: (used.user + used.system) / 1_000 / count,
    postgresMs: (loadPostgresMs(url) - postgresMs) / count,
    walBytes: Number((await loadWal(db)) - wal) / count,
    rssMb: process.memoryUsage.rss() / 1e6,
    arrivalMs: 0,
  };
}

/** Starts the board as a separate process. */
async function openBoard(
  advertisers: number,
): Promise<AsyncDisposable & { readonly url: string; readonly arrive: (count: number) => void }> {
  const board = spawn(process.execPath, [import.meta.filename, 'board', String(advertisers)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [url] = (await once(board, 'message')) as [string];
  return {
    url,
    arrive: (count) => void board.send(count),
    async [Symbol.asyncDispose]() {
      board.disconnect();
      await once(board, 'exit');
    },
  };
}

/** Inserts advertisers that are fully synced, each with the one application that the board lists. */
async function fill(db: Database, advertisers: number): Promise<void> {
  await db.query(
    `TRUNCATE intake.advertisers, intake.applications, intake.cursors, intake.coverage, intake.leases CASCADE`,
  );
  const each = `generate_series(0, $1::int - 1) AS n`;
  // A sweep of a larger account has learned how long its pages are: a poll of it is one request.
  const page = { rows: 500, bytes: 400_000 };
  const learned: KnownPages = {
    longest: 500,
    largestRow: 2_000,
    order: 'ascending',
    together: true,
    after: page,
    both: page,
  };
  await db.query(
    `INSERT INTO intake.advertisers (name, advertiser_id, learned)
     SELECT 'account-' || n, ${firstAdvertiser} + n, $2::jsonb FROM ${each}`,
    [advertisers, learned],
  );
  await db.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, content_hash, observed_seq, first_seen_at)
     SELECT ${firstAdvertiser} + n, ${firstApplication}, now() - interval '3 days', '', 0, now() - interval '2 days' FROM ${each}`,
    [advertisers],
  );
  await db.query(
    `INSERT INTO intake.cursors (advertiser_id, after_id, as_of) SELECT ${firstAdvertiser} + n, ${firstApplication}, now() FROM ${each}`,
    [advertisers],
  );
  await db.query(
    `INSERT INTO intake.coverage (advertiser_id, axis, low, certificate, risk, reason, as_of, complete_through, sweep_id)
     SELECT ${firstAdvertiser} + n, 'id', 1, 'proven', 'none', 'bench', now(), now(), 1 FROM ${each}`,
    [advertisers],
  );
  await db.query(`VACUUM ANALYZE`);
}

async function loadWal(db: Database): Promise<bigint> {
  const [row] = await db.query<{ at: bigint }>(`SELECT (pg_current_wal_lsn() - '0/0')::bigint AS at`);
  return row?.at ?? 0n;
}

/** CPU time of the server and its sessions, including ended ones. Linux counts in hundredths of a second. */
function loadPostgresMs(url: string): number {
  const port = new URL(url).port;
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return [
          {
            pid,
            parent: fields[1],
            ticks: fields.slice(11, 15).map(Number),
            name: readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
          },
        ];
      } catch {
        return [];
      }
    });
  const server = stats.find(
    ({ name }) => /postgres/.test(name.split('\0')[0] ?? '') && name.split('\0').some((word) => word.includes(port)),
  );
  if (!server) throw new Error('The server is not among the processes.');
  const sum = (ticks: readonly number[]) => ticks.reduce((total, one) => total + one, 0);
  const sessions = stats.filter(({ parent }) => parent === server.pid).map(({ ticks }) => sum(ticks.slice(0, 2)));
  return 10 * (sum(server.ticks) + sum(sessions));
}

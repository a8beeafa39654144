// Measures what an account costs as it grows: npm run bench -- growth. `node bench/growth.ts --size 10000000` adds a size. At each size
// `intake sync --no-files` reads a board over HTTP and proves the list complete, `sync --recheck` reads it again, a worker polls it and
// serves its pages, and one person is erased. Of the files the first 5,000 are downloaded, and verified: at every size the same (what a
// download costs is measured in bench/files.ts). bench/growth.json keeps the points; the table and the plots of docs/performance.md are
// drawn from them.

import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runWorker } from '../src/app/worker.ts';
import { loadConfig } from '../src/config.ts';
import { createLog } from '../src/log.ts';
import { boardAdvertiser } from './support/board.ts';
import { type Figure, report, type Size } from './support/figure.ts';
import { countBlocks } from './support/frequent.ts';
import { type BenchDatabase, type Cost, openPlace, type Place } from './support/place.ts';
import { renderPlot } from './support/plot.ts';
import { type BoardServer, openBoardServer } from './support/servers.ts';
import type { Watched } from './support/watched.ts';
import { watchRun } from './support/watching.ts';

/** What was measured at one size. Costs are CPU in ms, of the process and of the server. */
interface Point {
  readonly applications: number;
  readonly measured: string;
  readonly machine: string;
  readonly perSecond: number;
  readonly peakBytes: number;
  readonly databaseBytes: number;
  readonly longestBlockMs: number;
  /** The most CPU of its own between two looks at the loop; absent in points of earlier versions. */
  readonly longestOwnMs?: number;
  /** Blocks of 8 kB that the statements of every minute touch together. */
  readonly frequentBlocks: number;
  /** Those of them that read a large table from its beginning to its end. */
  readonly scans: readonly string[];
  readonly costs: Readonly<Record<What, { readonly nodeMs: number; readonly postgresMs: number }>>;
}

/** Costs of the whole list, and costs that must not depend on it. */
const wholes = { sweep: 'first sweep', recheck: 'recheck' } as const;
const singles = {
  poll: 'a quiet poll',
  status: '`intake status`',
  page: 'status page',
  metrics: '/metrics',
  proof: '/proof',
  verify: '`intake verify` of 5,000 files',
  erase: 'erasing one person',
} as const;
type What = keyof typeof wholes | keyof typeof singles;

const sizes = { full: [10_000, 100_000, 1_000_000], quick: [3_000, 10_000] };
const main = join(import.meta.dirname, '../src/cli/main.ts');
const pointsFile = join(import.meta.dirname, 'growth.json');
const docs = join(import.meta.dirname, '../docs');
const yearly = '0 0 1 1 *';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  await using place = await openPlace();
  const points: Point[] = [];
  for (const applications of size.quick ? sizes.quick : sizes.full)
    points.push(await measurePoint(place, applications));
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) return;
  if (!size.quick) publish(points);
  const each = (what: keyof typeof wholes): Figure => ({
    figure: `CPU of a ${wholes[what]} per application, at ${last.applications}`,
    anchor: `at ${first.applications}`,
    ratio: toCpu(last, what) / last.applications / (toCpu(first, what) / first.applications),
    goal: { atMost: 1.3 },
    ...{ ours: null, theirs: null },
    note: points.map((point) => `${point.applications}: ${toUs(toCpu(point, what), point)} us`).join('; '),
  });
  const one = (what: keyof typeof singles): Figure => ({
    figure: `CPU of ${singles[what]}, at ${last.applications}`,
    anchor: `at ${first.applications}`,
    ratio: toCpu(last, what) / toCpu(first, what),
    goal: { atMost: 1.5 },
    ...{ ours: null, theirs: null },
    note: points.map((point) => `${point.applications}: ${toCpu(point, what).toFixed(1)} ms`).join('; '),
  });
  yield each('sweep');
  yield each('recheck');
  for (const what of Object.keys(singles) as (keyof typeof singles)[]) yield one(what);
  const grown = { ours: null, theirs: null, anchor: `at ${first.applications}` };
  yield {
    ...{ figure: `blocks read by what runs every minute, at ${last.applications}`, ...grown },
    ...{ ratio: last.frequentBlocks / first.frequentBlocks, goal: { atMost: 1.3 } },
  };
  yield {
    ...{ figure: `large tables read whole every minute, at ${last.applications}`, ...grown, anchor: 'none' },
    ...{ ratio: last.scans.length, unit: 'scans', goal: { atMost: 0 }, note: last.scans.join(', ') },
  };
  yield {
    ...{ figure: `peak RSS at ${last.applications} applications`, ...grown },
    ...{ ratio: last.peakBytes / first.peakBytes, goal: { atMost: 1.25 } },
  };
  yield {
    ...{ figure: `peak RSS at ${last.applications} applications, in all`, ...grown, anchor: 'none' },
    ...{ ratio: last.peakBytes / 1e6, unit: 'MB', goal: { atMost: 200 } },
  };
  yield {
    ...{ figure: 'longest block of the event loop', ...grown, anchor: 'none' },
    ...{
      ratio: Math.max(...points.map((point) => point.longestBlockMs)),
      unit: 'ms',
      goal: { atMost: 200 },
      note: `${Math.max(...points.map((point) => point.longestOwnMs ?? 0))} ms of CPU of its own at most`,
    },
  };
}

/** One account of this size, from its first sync on. */
async function measurePoint(place: Place, applications: number): Promise<Point> {
  await using board = await openBoardServer('board', applications);
  await using database = await place.openDatabase();
  await using folder = await mkdtempDisposable(join(tmpdir(), 'intake-growth-'));
  const env = {
    DATABASE_URL: database.url,
    BLOBS_URL: `file:${folder.path}`,
    SOURCE_URL: board.url,
    SOURCE_CREDENTIAL: board.credential,
    SOURCE_RATE: 'off',
    PRIVACY_KEY: 'a privacy key for the benches',
  };
  const watched: Watched[] = [];
  const run = (times: number, ...args: string[]) =>
    meterEach(place, times, async () => void watched.push(await watchRun([main, ...args], env)));
  const sweep = await run(1, 'sync', '--no-files', '--json');
  const [row] = await database.query<{ count: number; bytes: number }>(
    `SELECT count(*)::int, pg_database_size(current_database())::float8 AS bytes FROM intake.applications`,
  );
  if (row?.count !== applications) throw new Error(`${row?.count} of ${applications} applications came.`);
  await database.query('VACUUM ANALYZE');
  const recheck = await run(1, 'sync', '--recheck', '--no-files', '--json');
  const frequent = await countBlocks(database.url, boardAdvertiser);
  await keepDownloads(database);
  await run(1, 'sync', '--json');
  const verify = await run(3, 'verify', '--json');
  const served = await serve(place, database, board, env.BLOBS_URL);
  const status = await run(5, 'status', '--json');
  const erase = await run(1, 'erase', '--application', String(applications / 2), '--yes');
  return {
    ...{ applications, measured: new Date().toISOString().slice(0, 10) },
    machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    perSecond: Math.round((applications * 1_000) / sweep.wallMs),
    peakBytes: Math.max(...watched.map((each) => each.peakBytes)),
    databaseBytes: row.bytes,
    longestBlockMs: Math.round(Math.max(...watched.map((each) => each.longestBlockMs))),
    longestOwnMs: Math.round(Math.max(...watched.map((each) => each.longestOwnMs))),
    frequentBlocks: sum(Object.values(frequent.blocks)),
    scans: frequent.scans,
    costs: { sweep, recheck, ...served, status, verify, erase },
  };
}

/** Leaves the first 5,000 files in the queue: all of them would take most of the time. */
async function keepDownloads(database: BenchDatabase): Promise<void> {
  await database.query(
    `CREATE TEMP TABLE kept AS
     SELECT * FROM intake.downloads WHERE kind <> 'screen' ORDER BY application_id, kind LIMIT 5000`,
  );
  await database.query(`TRUNCATE intake.downloads`);
  await database.query(`INSERT INTO intake.downloads SELECT * FROM kept`);
  await database.query(`DELETE FROM intake.tallies`);
  await database.query(
    `INSERT INTO intake.tallies (advertiser_id, what, n) SELECT advertiser_id, what, n FROM intake.recounted`,
  );
}

/** A worker in this process: first it polls every second, then it only serves its pages, each when nothing of it is cached. */
async function serve(place: Place, database: BenchDatabase, board: BoardServer, blobsUrl: string) {
  const base = { database, board, blobsUrl };
  const poll = await withWorker({ ...base, schedule: '* * * * * *' }, async ({ polls }) => {
    await polls(5);
    const counted = 30;
    const { wallMs, nodeMs, postgresMs } = await place.meter(() => polls(counted));
    return { wallMs, nodeMs: nodeMs / counted, postgresMs: postgresMs / counted };
  });
  return await withWorker({ ...base, schedule: yearly }, async ({ url }) => {
    const get = async (path: string): Promise<Cost> => {
      await sleep(path === '/' ? longestCachedMs : statusCachedMs);
      return await place.meter(async () => {
        const response = await fetch(new URL(path, url));
        if (!response.ok) throw new Error(`${path} answered ${response.status}.`);
        await response.text();
      });
    };
    await get('/');
    const looks: Record<'page' | 'metrics' | 'proof', Cost>[] = [];
    // Linux counts the CPU of a server in steps of 10 ms, so one look says little.
    for (let look = 0; look < 6; look++)
      looks.push({ page: await get('/'), metrics: await get('/metrics'), proof: await get('/proof') });
    const of = (what: 'page' | 'metrics' | 'proof') => toMean(looks.map((look) => look[what]));
    return { poll, page: of('page'), metrics: of('metrics'), proof: of('proof') };
  });
}

/** The worker's pages load the status again after 2 s, a proof after 10 s and the charts after 30 s. */
const statusCachedMs = 2_100;
const longestCachedMs = 30_100;

async function withWorker<T>(
  {
    database,
    board,
    blobsUrl,
    schedule,
  }: { database: BenchDatabase; board: BoardServer; blobsUrl: string; schedule: string },
  use: (worker: { readonly url: string; polls(count: number): Promise<void> }) => Promise<T>,
): Promise<T> {
  const env = {
    DATABASE_URL: database.url,
    SOURCE_URL: board.url,
    SOURCE_CREDENTIAL: board.credential,
    SOURCE_RATE: '100000/s',
    SYNC_SCHEDULE: schedule,
    RECHECK_SCHEDULE: 'off',
    AUDIT_SCHEDULE: yearly,
    ADMIN_PORT: '0',
    BLOBS_URL: blobsUrl,
    PRIVACY_KEY: 'a privacy key for the benches',
  };
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'webhooks', 'extract'] as const;
  const stop = new AbortController();
  let onPoll = () => {};
  const opened = Promise.withResolvers<string>();
  const ended = runWorker(loadConfig(env, { needs }), {
    log: await createLog({ level: 'error', format: 'json' }),
    signal: stop.signal,
    onOpen: opened.resolve,
    onPass: ({ pass, outcome }) => {
      if (outcome === 'failed') throw new Error(`A pass failed: ${pass}.`);
      if (pass === 'poll') onPoll();
    },
  });
  const polls = (count: number) =>
    new Promise<void>((resolve) => {
      let left = count;
      onPoll = () => --left === 0 && resolve();
    });
  try {
    return await Promise.race([
      opened.promise.then((url) => use({ url, polls })),
      ended.then(() => Promise.reject(new Error('The worker ended.'))),
    ]);
  } finally {
    stop.abort();
    await ended;
  }
}

async function meterEach(place: Place, times: number, work: () => Promise<void>): Promise<Cost> {
  const costs: Cost[] = [];
  for (let time = 0; time < times; time++) costs.push(await place.meter(work));
  return toMean(costs);
}

function toMean(costs: readonly Cost[]): Cost {
  const mean = (of: (cost: Cost) => number) => sum(costs.map(of)) / costs.length;
  return { wallMs: mean((c) => c.wallMs), nodeMs: mean((c) => c.nodeMs), postgresMs: mean((c) => c.postgresMs) };
}

/** Keeps the points, and draws the table and the plots again. */
function publish(measured: readonly Point[]): void {
  const kept = JSON.parse(readFileSync(pointsFile, 'utf8')) as Point[];
  const sizesNow = new Set(measured.map((point) => point.applications));
  const points = [...kept.filter((point) => !sizesNow.has(point.applications)), ...measured].sort(
    (a, b) => a.applications - b.applications,
  );
  writeFileSync(pointsFile, `${JSON.stringify(points, null, 2)}\n`);
  const page = join(docs, 'performance.md');
  const [head = '', , tail = ''] = readFileSync(page, 'utf8').split(/<!-- growth: (?:begin|end) -->\n/);
  writeFileSync(page, `${head}<!-- growth: begin -->\n${renderTable(points)}<!-- growth: end -->\n${tail}`);
  const plots: Readonly<Record<string, { readonly title: string; readonly value: (point: Point) => number }>> = {
    throughput: { title: 'First sync with its proof: applications per second', value: (point) => point.perSecond },
    memory: { title: 'Peak resident memory of a sync, MB', value: (point) => Math.round(point.peakBytes / 1e6) },
    'growth-sweep': {
      title: 'First sweep: CPU per application, us',
      value: (point) => toUs(toCpu(point, 'sweep'), point),
    },
    'growth-recheck': {
      title: 'Recheck: CPU per application, us',
      value: (point) => toUs(toCpu(point, 'recheck'), point),
    },
    'growth-bytes': {
      title: 'Database: bytes per application',
      value: (point) => Math.round(point.databaseBytes / point.applications),
    },
    ...Object.fromEntries(
      Object.entries(singles).map(([what, name]) => [
        `growth-${what}`,
        {
          title: `CPU of ${name.replaceAll('`', '')}, ms`,
          value: (point: Point) => Number(toCpu(point, what as What).toPrecision(3)),
        },
      ]),
    ),
  };
  for (const [name, { title, value }] of Object.entries(plots)) {
    const line = points.map((point) => ({ x: point.applications, y: value(point) }));
    writeFileSync(join(docs, 'images', `${name}.svg`), renderPlot(title, line));
  }
}

/** A column for each size. Costs are CPU of the process + CPU of the server. */
function renderTable(points: readonly Point[]): string {
  const row = (name: string, cell: (point: Point) => string) => `| ${[name, ...points.map(cell)].join(' | ')} |`;
  const ms = (point: Point, what: What) =>
    `${point.costs[what].nodeMs.toFixed(0)} + ${point.costs[what].postgresMs.toFixed(0)} ms`;
  const us = (point: Point, what: What) =>
    `${toUs(point.costs[what].nodeMs, point)} + ${toUs(point.costs[what].postgresMs, point)} us`;
  return `${[
    row('applications', (point) => point.applications.toLocaleString('en')),
    row('---', () => '---'),
    row('first sync, per second', (point) => String(point.perSecond)),
    row('first sweep, per application', (point) => us(point, 'sweep')),
    row('recheck, per application', (point) => us(point, 'recheck')),
    ...Object.entries(singles).map(([what, name]) => row(name, (point) => ms(point, what as What))),
    row('blocks read by what runs every minute', (point) => String(point.frequentBlocks)),
    row('database, per application', (point) => `${Math.round(point.databaseBytes / point.applications)} bytes`),
    row('peak RSS of a sync', (point) => `${Math.round(point.peakBytes / 1e6)} MB`),
    row('longest block of the event loop', (point) => `${point.longestBlockMs} ms`),
    row('of its own CPU', (point) => (point.longestOwnMs === undefined ? '' : `${point.longestOwnMs} ms`)),
    row('measured', (point) => `${point.measured}, ${point.machine}`),
  ].join('\n')}\n`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function toCpu(point: Point, what: What): number {
  return point.costs[what].nodeMs + point.costs[what].postgresMs;
}

function toUs(ms: number, { applications }: Point): number {
  return Math.round((ms * 1_000) / applications);
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { size: { type: 'string' } }, strict: false });
  if (typeof values.size === 'string') {
    await using place = await openPlace();
    publish([await measurePoint(place, Number(values.size))]);
  } else await report(measure);
}

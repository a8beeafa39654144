// Measures an extract of a large account: npx node bench/extract.ts [applications, default 100000]. Prints seconds, CPU per row, peak memory
// and bytes per application beside `COPY .. TO` CSV of the same views, then ten everyday questions in DuckDB beside Postgres.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openEmbedded } from '../src/dev/embedded/embedded.ts';
import type { Manifest } from '../src/domain/extract/manifest.ts';
import { migrate } from '../src/store/postgres/migrations.ts';
import { loadRecipes } from '../test/support/documents/cookbook.ts';
import { loadLatest, openDuck } from '../test/support/extract/duck.ts';
import { fillAccount } from './support/filled-account.ts';

const applications = Number(process.argv[2] ?? 100_000);
const name = `bench_${process.pid}`;
const root = fileURLToPath(new URL('..', import.meta.url));
/** Questions that analysts ask every day, by their numbers in docs/analyse.md. */
const everyday = [1, 2, 3, 5, 6, 8, 9, 12, 14, 21];

interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

/** Runs `intake <args>` and watches its process. */
async function watch(args: readonly string[], url: string): Promise<Run> {
  const begunAt = performance.now();
  const child = spawn(process.execPath, [join(root, 'src/cli/main.ts'), ...args], {
    env: { PATH: process.env.PATH, DATABASE_URL: url, PRIVACY_KEY: 'a privacy key for a bench' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let [peakKb, ticks] = [0, 0];
  const look = () => {
    try {
      peakKb = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? peakKb);
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      ticks = Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
    } catch {
      // It has ended.
    }
  };
  const looking = setInterval(look, 100);
  const [code] = await once(child, 'exit');
  clearInterval(looking);
  if (code !== 0) throw new Error(`intake ${args[0]} ended with ${code}.`);
  return { seconds: (performance.now() - begunAt) / 1000, cpuSeconds: ticks / 100, peakMb: peakKb / 1024 };
}

/** Writes the same rows as CSV, which is what most people would do. */
async function copyCsv(
  url: string,
  folder: string,
  { columns }: Manifest,
): Promise<{ seconds: number; bytes: number }> {
  const begunAt = performance.now();
  let bytes = 0;
  for (const view of Object.keys(columns)) {
    const file = join(folder, `${view}.csv`);
    await query(url, `COPY (SELECT * FROM intake_analytics.${view}) TO '${file}' WITH (FORMAT csv, HEADER)`);
    bytes += statSync(file).size;
  }
  return { seconds: (performance.now() - begunAt) / 1000, bytes };
}

async function measure(url: string, folder: string): Promise<void> {
  const target = join(folder, 'extract');
  const whole = await watch(['extract', '--to', `file:${target}`], url);
  const manifest = loadLatest(target);
  const sum = (count: (file: Manifest['files'][number]) => number) =>
    manifest.files.reduce((all, file) => all + count(file), 0);
  const [rows, bytes] = [sum((file) => file.rows), sum((file) => file.bytes)];
  const again = await watch(['extract', '--to', `file:${target}`, '--since-last'], url);
  const csv = await copyCsv(url, folder, manifest);
  console.log(`\n${applications} applications, ${rows} rows in ${manifest.files.length} files`);
  console.log(
    '| | seconds | CPU of Intake, us a row | peak memory, MB | bytes an application |\n|---|---|---|---|---|',
  );
  const line = (what: string, run: Run) =>
    console.log(
      `| ${what} | ${run.seconds.toFixed(1)} | ${((run.cpuSeconds * 1e6) / rows).toFixed(1)} | ${run.peakMb.toFixed(0)} | ${(bytes / applications).toFixed(0)} |`,
    );
  line('intake extract', whole);
  line('intake extract --since-last, nothing changed', again);
  console.log(`| COPY .. TO CSV | ${csv.seconds.toFixed(1)} | | | ${(csv.bytes / applications).toFixed(0)} |`);
  using duck = await openDuck(target, manifest);
  await duck.query('SET integer_division = true');
  console.log('\n| question | DuckDB, ms | Postgres, ms |\n|---|---|---|');
  for (const { number, question, sql } of loadRecipes().filter((one) => everyday.includes(one.number))) {
    const [there, here] = [await time(() => duck.query(sql)), await time(() => query(url, sql))];
    console.log(`| ${number}. ${question} | ${there.toFixed(0)} | ${here.toFixed(0)} |`);
  }
}

/** The best of three. */
async function time(work: () => Promise<unknown>): Promise<number> {
  const tookMs: number[] = [];
  for (let run = 0; run < 3; run++) {
    const begunAt = performance.now();
    await work();
    tookMs.push(performance.now() - begunAt);
  }
  return Math.min(...tookMs);
}

async function query(to: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: to, application_name: 'bench' });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

await using server = await openEmbedded({ root, scratch: true });
await query(server.url, `CREATE DATABASE ${name}`);
const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
const folder = mkdtempSync(join(tmpdir(), 'intake-bench-'));
// The server writes the CSV files, as a user of its own.
chmodSync(folder, 0o777);
try {
  await migrate(url);
  await fillAccount(url, applications, console.log);
  await measure(url, folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
  await query(server.url, `DROP DATABASE ${name} WITH (FORCE)`);
}

// Measures the cookbook's queries on a large account: npx node bench/analytics.ts [applications, default 1000000].
// Fills a scratch Postgres with a year of applications, generated in SQL. Then runs every query of docs/analyse.md five times and prints
// the best time and the CPU time on one core, most expensive first.
// A million applications take some minutes and about 5 GB of disk.

import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openEmbedded } from '../src/dev/embedded/embedded.ts';
import { migrate } from '../src/store/postgres/migrations.ts';
import { loadRecipes } from '../test/support/documents/cookbook.ts';
import { fillAccount } from './support/filled-account.ts';

const applications = Number(process.argv[2] ?? 1_000_000);
const runs = 5;
const name = `bench_${process.pid}`;

async function measure(url: string): Promise<void> {
  await using bench = await open(url);
  const timings: { number: number; question: string; bestMs: number; cpuMs: number; rows: number }[] = [];
  for (const { number, question, sql } of loadRecipes()) {
    const tookMs: number[] = [];
    let rows = 0;
    for (let run = 0; run < runs; run++) {
      const begunAt = performance.now();
      rows = (await bench.client.query(sql)).rows.length;
      tookMs.push(performance.now() - begunAt);
    }
    timings.push({ number, question, bestMs: Math.min(...tookMs), cpuMs: await measureCpu(url, sql), rows });
  }
  timings.sort((a, b) => b.cpuMs - a.cpuMs);
  console.log(`\n| question | best of ${runs}, ms | CPU on one core, ms | rows |\n|---|---|---|---|`);
  for (const { number, question, bestMs, cpuMs, rows } of timings) {
    console.log(`| ${number}. ${question} | ${bestMs.toFixed(0)} | ${cpuMs.toFixed(0)} | ${rows} |`);
  }
  const count = (limitMs: number) => timings.filter(({ cpuMs }) => cpuMs < limitMs).length;
  console.log(
    `\n${applications} applications: ${count(300)} of ${timings.length} under 300 ms of CPU, ${count(2_000)} under 2 s.`,
  );
}

/** CPU time of the query in one server process without parallel workers. Unlike wall time, it excludes other load on the machine. */
async function measureCpu(url: string, sql: string): Promise<number> {
  await using bench = await open(url);
  const cpuMs: number[] = [];
  bench.client.on('notice', ({ detail }) => {
    const used = /([\d.]+) s user, ([\d.]+) s system/.exec(detail ?? '');
    if (used) cpuMs.push(1000 * (Number(used[1]) + Number(used[2])));
  });
  await bench.client.query(
    `SET max_parallel_workers_per_gather = 0; SET client_min_messages = log; SET log_statement_stats = on`,
  );
  cpuMs.length = 0;
  for (let run = 0; run < 2; run++) await bench.client.query(sql);
  return Math.min(...cpuMs);
}

async function open(to: string): Promise<{ readonly client: pg.Client } & AsyncDisposable> {
  const client = new pg.Client({ connectionString: to, application_name: 'bench' });
  await client.connect();
  return { client, [Symbol.asyncDispose]: () => client.end() };
}

async function query(to: string, sql: string): Promise<void> {
  await using bench = await open(to);
  await bench.client.query(sql);
}

await using server = await openEmbedded({ root: fileURLToPath(new URL('..', import.meta.url)), scratch: true });
await query(server.url, `CREATE DATABASE ${name}`);
const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
try {
  await migrate(url);
  await fillAccount(url, applications, console.log);
  await measure(url);
} finally {
  await query(server.url, `DROP DATABASE ${name} WITH (FORCE)`);
}

// The environment of the benches: their own Postgres with fsync on, a fresh database for every run, and a meter. The meter measures wall
// time, the CPU time of this process and its child processes, and the CPU time of all server processes.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import pg from 'pg';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { migrate } from '../../src/store/postgres/migrations.ts';

/** The cost of some work. The lowest of several runs counts, because other load on the machine only adds to it. */
export interface Cost {
  readonly wallMs: number;
  /** CPU time of node and its child processes. */
  readonly nodeMs: number;
  readonly postgresMs: number;
}

export interface Place extends AsyncDisposable {
  /** Creates a database with the product's schema; disposing drops it. */
  openDatabase(): Promise<BenchDatabase>;
  /**
   * Measures the work, after a checkpoint. A bench that counts WAL leaves the checkpoint out: the first change of a page after a checkpoint
   * logs the whole page.
   */
  meter(work: () => Promise<unknown>, options?: { readonly checkpoint: boolean }): Promise<Cost>;
}

export interface BenchDatabase extends AsyncDisposable {
  readonly url: string;
  query<Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

// Prevents a checkpoint or an autovacuum during one side of a ratio.
const settings = { autovacuum: 'off', max_wal_size: '8GB', checkpoint_timeout: '1h' };

/** Joins or starts the benches' server, which keeps its data under bench/.intake. */
export async function openPlace(): Promise<Place> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await openEmbedded({ root: dirname(import.meta.dirname) }));
  const admin = stack.use(await openClient(server.url));
  for (const [name, value] of Object.entries(settings)) await admin.query(`ALTER SYSTEM SET ${name} = '${value}'`);
  await admin.query('SELECT pg_reload_conf()');
  const [fsync] = await admin.query<{ fsync: string }>('SHOW fsync');
  if (fsync?.fsync !== 'on') throw new Error('The benches measure durable writes: fsync must be on.');
  const [backend] = await admin.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const postmaster = loadStat(backend?.pid ?? 0).parent;
  const prefix = `bench_${process.pid}`;
  await admin.query(`CREATE DATABASE ${prefix}`);
  stack.defer(async () => void (await admin.query(`DROP DATABASE ${prefix} WITH (FORCE)`)));
  await migrate(toUrl(server.url, prefix));
  let opened = 0;
  const owned = stack.move();
  return {
    async openDatabase() {
      const name = `${prefix}_${++opened}`;
      await admin.query(`CREATE DATABASE ${name} TEMPLATE ${prefix} STRATEGY FILE_COPY`);
      const client = await openClient(toUrl(server.url, name));
      return {
        url: toUrl(server.url, name),
        query: (sql, values) => client.query(sql, values),
        async [Symbol.asyncDispose]() {
          await client[Symbol.asyncDispose]();
          await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
        },
      };
    },
    async meter(work, { checkpoint } = { checkpoint: true }) {
      if (checkpoint) await admin.query('CHECKPOINT');
      const before = [performance.now(), loadNodeMs(), loadTreeMs(postmaster)] as const;
      await work();
      return {
        wallMs: performance.now() - before[0],
        nodeMs: loadNodeMs() - before[1],
        postgresMs: loadTreeMs(postmaster) - before[2],
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function openClient(url: string) {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  client.on('error', () => undefined);
  await client.connect();
  return {
    async query<Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
      return (await client.query<Row>(sql, [...values])).rows;
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

function toUrl(server: string, database: string): string {
  return Object.assign(new URL(server), { pathname: `/${database}` }).href;
}

/** Linux counts in hundredths of a second. */
const tickMs = 10;

/** CPU time of this process, in microseconds, and of its ended children, in ticks; in milliseconds. */
function loadNodeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + loadStat(process.pid).childrenTicks * tickMs;
}

/** CPU time of a process and of its running and ended children. Reads again if a child ended meanwhile. */
function loadTreeMs(root: number): number {
  for (;;) {
    const { ownTicks, childrenTicks } = loadStat(root);
    let ticks = ownTicks + childrenTicks;
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      const stat = loadStat(Number(name));
      if (stat.parent === root) ticks += stat.ownTicks + stat.childrenTicks;
    }
    if (loadStat(root).childrenTicks === childrenTicks) return ticks * tickMs;
  }
}

function loadStat(pid: number): { readonly parent: number; readonly ownTicks: number; readonly childrenTicks: number } {
  try {
    // The process name may contain spaces and parentheses; the fields after it are numbers, except the state.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    const at = (field: number) => fields[field - 3] ?? 0;
    return { parent: at(4), ownTicks: at(14) + at(15), childrenTicks: at(16) + at(17) };
  } catch {
    return { parent: 0, ownTicks: 0, childrenTicks: 0 };
  }
}

// The harness's own Postgres. It can be stopped without a clean shutdown, started again on the same port, and run out of disk space.
// Workers connect as an ordinary role that owns its database; the harness connects as the superuser.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { resolveBinaries } from '../../src/dev/embedded/embedded.ts';
import { openPlace } from '../../src/dev/embedded/place.ts';
import { openServer, type PostgresServer } from '../../src/dev/embedded/server.ts';

export interface Cluster extends AsyncDisposable {
  readonly port: number;
  /** True if a database can be put on its own small disk (needs root on Linux). */
  readonly hasSmallDisk: boolean;
  /** Creates the database that `query` uses from now on. The workers' role owns it. */
  openDatabase(name: string, onSmallDisk: boolean): Promise<void>;
  dropDatabase(): Promise<void>;
  /** Queries as the superuser; throws while the server is down. */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Sends SIGQUIT to the postmaster: no checkpoint, no clean shutdown. */
  stopAtOnce(): Promise<void>;
  start(): Promise<void>;
  /** Fills the small disk, or frees it again. */
  fillDisk(full: boolean): void;
  /** Gives the workers' role a new password; `toUrl` contains it from now on. */
  rotatePassword(): Promise<void>;
  /** The URL at which a worker reaches the database through a given port. */
  toUrl(port: number, applicationName: string): string;
}

const role = 'chaos_worker';
const firstPassword = 'chaos-worker-password';
const smallDiskMb = 60;

/** Creates a cluster in an empty folder and starts it. */
export async function openCluster(folder: string): Promise<Cluster> {
  chmodSync(folder, 0o755);
  const place = await openPlace({ folder, scratch: true, binaries: resolveBinaries() });
  const log = join(folder, 'postgres.log');
  let server: PostgresServer | null = await openServer(place, { scratch: true, port: null, log });
  const { port, url } = server;
  const disk = mountSmallDisk(join(folder, 'small-disk'), statSync(join(place.home, 'data')));
  let database = 'intake';
  let pool = openPool(url);
  let password = firstPassword;

  const query: Cluster['query'] = async (sql, values = []) => (await pool.query(sql, [...values])).rows as never;
  const use = async (name: string) => {
    await pool.end();
    database = name;
    pool = openPool(url.replace(/\/intake$/, `/${name}`));
  };
  await query(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
  if (disk) await query(`CREATE TABLESPACE small LOCATION '${disk}'`);

  return {
    port,
    hasSmallDisk: disk !== null,
    query,
    async openDatabase(name, onSmallDisk) {
      await query(`CREATE DATABASE ${name} OWNER ${role} TEMPLATE template0${onSmallDisk ? ' TABLESPACE small' : ''}`);
      await use(name);
    },
    async dropDatabase() {
      const name = database;
      await use('intake');
      await query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
    async stopAtOnce() {
      if (!server) return;
      const pid = Number(readFileSync(join(place.home, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
      process.kill(pid, 'SIGQUIT');
      await server.ended;
      server = null;
    },
    async start() {
      server ??= await openServer(place, { scratch: true, port, log });
    },
    fillDisk(full) {
      if (!disk) return;
      const ballast = join(disk, 'ballast');
      if (!full) return rmSync(ballast, { force: true });
      try {
        for (let mb = 0; mb < smallDiskMb; mb++) writeFileSync(ballast, Buffer.alloc(1 << 20), { flag: 'a' });
      } catch {
        // ENOSPC is the goal.
      }
    },
    async rotatePassword() {
      const next = `${firstPassword}-${randomBytes(4).toString('hex')}`;
      await query(`ALTER ROLE ${role} PASSWORD '${next}'`);
      password = next;
    },
    toUrl: (through, applicationName) =>
      `postgres://${role}:${password}@127.0.0.1:${through}/${database}?application_name=${applicationName}`,
    async [Symbol.asyncDispose]() {
      await pool.end();
      await server?.stop();
      if (disk) execFileSync('umount', [disk]);
      // If the server's account cannot reach the folder, the data is in another place.
      for (const path of [place.home, folder]) rmSync(path, { recursive: true, force: true });
    },
  };
}

function openPool(connectionString: string): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    application_name: 'chaos',
    max: 3,
    connectionTimeoutMillis: 5_000,
    query_timeout: 20_000,
  });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Waits until the server answers again. */
export async function untilAnswering({ query }: Pick<Cluster, 'query'>, retryForMs = 30_000): Promise<void> {
  const untilAt = performance.now() + retryForMs;
  for (;;) {
    try {
      await query('SELECT 1');
      return;
    } catch (error) {
      if (performance.now() > untilAt) throw error;
      await sleep(50);
    }
  }
}

function mountSmallDisk(folder: string, owner: { uid: number; gid: number }): string | null {
  try {
    mkdirSync(folder);
    const options = `size=${smallDiskMb}m,uid=${owner.uid},gid=${owner.gid},mode=0700`;
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' });
    return folder;
  } catch {
    return null;
  }
}

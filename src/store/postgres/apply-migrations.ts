// Applies migrations: forward only, one process at a time, in one transaction. A statement that waits for a lock makes everybody behind it
// wait as well. It therefore gives up after a second, everything is rolled back, and the migration begins again after a pause.
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { toEncodingTrouble } from '../../domain/schema.ts';
import { SchemaTrouble, Trouble } from '../../domain/trouble.ts';
import { clientOf, type DatabaseUrl } from './connection.ts';
import { type Queryable, sqlState } from './database.ts';

const folder = join(import.meta.dirname, '../../../migrations');
export const { version } = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8')) as { version: string };

/** The key of the advisory lock that lets one process migrate at a time. */
const lockKey = 7_400_105;
const lockTimeoutMs = 1_000;
const pauseMs = 5_000;
/** How long a transaction of somebody else may keep a migration from its lock. */
const longestBlockMs = 600_000;
const lockNotAvailable = '55P03';

interface Migration {
  readonly name: string;
  /** When it was written, in milliseconds since 1970. The schema records it. */
  readonly at: bigint;
}

/** All migrations of this version, oldest first, as drizzle-kit lists them. */
export function loadMigrations(): Migration[] {
  const journal = JSON.parse(readFileSync(join(folder, 'meta/_journal.json'), 'utf8')) as {
    entries: { tag: string; when: number }[];
  };
  return journal.entries.map(({ tag, when }) => ({ name: tag, at: BigInt(when) }));
}

export interface PendingMigration {
  readonly name: string;
  readonly statements: readonly string[];
}

/** The migrations that a schema lacks whose newest one was written at `newest`; null: there is no schema. */
export function toPending(newest: bigint | null): PendingMigration[] {
  const missing = loadMigrations().filter(({ at }) => newest === null || at > newest);
  return missing.map(({ name, at }, nth) => {
    const sql = readFileSync(join(folder, `${name}.sql`), 'utf8');
    const statements = sql.split('--> statement-breakpoint').map((one) => one.trim());
    const record = `INSERT INTO intake.migrations (hash, created_at, version) VALUES ('${hash('sha256', sql)}', ${at}, '${version}');`;
    return { name, statements: [...(newest === null && nth === 0 ? first : []), ...statements, record] };
  });
}

/** Where the applied migrations are recorded. */
const first = [
  'CREATE SCHEMA IF NOT EXISTS intake;',
  'CREATE TABLE IF NOT EXISTS intake.migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint);',
];

/** When the newest migration of the schema was written; null where there is none, or where it may not be read. */
export async function loadNewest(db: Queryable): Promise<bigint | null> {
  try {
    const [row] = await db.query<{ newest: string | null }>(
      `SELECT max(created_at)::text AS newest FROM intake.migrations`,
    );
    return row?.newest == null ? null : BigInt(row.newest);
  } catch (error) {
    if (notThere.has(sqlState(error) ?? '')) return null;
    throw error;
  }
}

/** Undefined table, undefined schema, insufficient privilege: a caller that waits for the schema treats them alike. */
const notThere = new Set(['42P01', '3F000', '42501']);

export interface MigrateOptions {
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
  /** Called before each wait for a lock, with the transaction that is in the way, and once before a wait for another role. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
}

/**
 * Applies missing migrations and returns their names. Any number of processes may call it at once: one migrates, the others wait and then
 * have nothing to do.
 */
export async function migrate(url: DatabaseUrl, options: MigrateOptions = {}): Promise<string[]> {
  const client = new (clientOf(url))({ application_name: 'intake migrate' });
  await client.connect();
  try {
    const { rows } = await client.query<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
    const trouble = toEncodingTrouble(rows[0]?.encoding ?? 'unknown');
    if (trouble !== null) throw trouble;
    await client.query('SELECT pg_advisory_lock($1)', [lockKey]);
    await client.query(`SET lock_timeout = ${lockTimeoutMs}`);
    const until = performance.now() + longestBlockMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await applyMissing(client, options);
      } catch (error) {
        if (sqlState(error) !== lockNotAvailable) throw error;
        await client.query('ROLLBACK');
        const happened = `A migration waits for a lock. ${await findBlocker(client)}`;
        if (performance.now() > until) {
          const next = 'Nothing was changed. End that transaction, then run `intake migrate`.';
          throw new SchemaTrouble(happened, next, error);
        }
        options.onWait?.(new Trouble('local', happened, { at: 'database' }), pauseMs, attempt);
        await sleep(pauseMs, undefined, { signal: options.signal });
      }
    }
  } finally {
    // Closing the connection releases the lock, whatever state the connection is in.
    await client.end();
  }
}

async function applyMissing(client: pg.Client, { dryRun = false, crashPoint }: MigrateOptions): Promise<string[]> {
  const missing = toPending(await loadNewest({ query: async (sql) => (await client.query(sql)).rows }));
  const statements = missing.flatMap((migration) => migration.statements);
  for (const sql of ['BEGIN', ...statements, dryRun ? 'ROLLBACK' : 'COMMIT']) {
    crashPoint?.('migrating');
    await client.query(sql);
  }
  return missing.map(({ name }) => name);
}

/** Names the oldest transaction that uses a table of Intake. */
async function findBlocker(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ pid: number; usename: string; name: string; state: string; seconds: number }>(
    `SELECT a.pid, a.usename, a.application_name AS name, a.state, extract(epoch FROM now() - a.xact_start)::int AS seconds
     FROM pg_stat_activity a
     WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND EXISTS (
       SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
       WHERE l.pid = a.pid AND l.granted AND c.relnamespace::regnamespace::text LIKE 'intake%')
     ORDER BY a.xact_start LIMIT 1`,
  );
  const [row] = rows;
  if (row === undefined) return 'The transaction that held it has ended by now.';
  const { pid, usename, name, state, seconds } = row;
  return `A transaction of ${usename} (process ${pid}, application "${name}", ${state}) has been open for ${seconds} s.`;
}

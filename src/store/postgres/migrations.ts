// Compares the schema with this version, and brings it up to date where the caller may: forward only, one process at a time. A statement
// that waits for a lock makes everybody behind it wait as well. It therefore gives up after a second, and begins again after a pause.
// Migrations are SQL files in the order of drizzle-kit's journal. The comments at the top of a file say how it is applied:
//
//   -- expand             Processes of earlier versions go on beside it. Files before 0017 say nothing and count as such.
//   -- breaking: 1.2.0    Older versions than this one may not run from then on. Only `intake migrate --finish` applies it.
//   -- no transaction     Its statements run one by one, and all of them again after an interruption: CREATE INDEX CONCURRENTLY after
//                         DROP INDEX CONCURRENTLY IF EXISTS, VALIDATE CONSTRAINT. They may wait for long, and nobody waits for them.
//
// Every other file is one transaction.
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import {
  type AppliedMigration,
  isUsable,
  toEncodingTrouble,
  toSchema,
  toSchemaTrouble,
  version,
} from '../../domain/schema.ts';
import { SchemaTrouble, Trouble } from '../../domain/trouble.ts';
import { clientOf, type DatabaseUrl } from './connection.ts';
import { type Queryable, sqlState, toTrouble } from './database.ts';
import { keepOutOlder } from './processes.ts';

/** The key of the advisory lock that lets one process migrate at a time. */
const lockKey = 7_400_105;
/** How long a migration waits for a lock, and others behind it, before it gives way and tries again. */
export const lockTimeoutMs = 1_000;
const pauseMs = 5_000;
const turnMs = 500;
const lookMs = 250;
/** A process that is suspended amid a migration, or cut off from the server, keeps its locks no longer than this. */
const longestSilenceMs = 5_000;
/** How long a transaction of somebody else may keep a migration from its lock. */
const longestBlockMs = 600_000;
/** Lock not available, deadlock detected: another transaction is in the way. */
const gaveWay = new Set(['55P03', '40P01']);

export interface Migration {
  readonly name: string;
  /** When it was written, in milliseconds since 1970. The schema records it. */
  readonly at: bigint;
  /** The last one records that the migration was applied. */
  readonly statements: readonly string[];
  readonly inTransaction: boolean;
  /** The lowest version that may run once it is applied; null for one that only expands the schema. */
  readonly lowest: string | null;
}

let own: readonly Migration[] | undefined;

/** The migrations of this version, oldest first. */
export function loadMigrations(): readonly Migration[] {
  own ??= readMigrations(join(import.meta.dirname, '../../../migrations'));
  return own;
}

function readMigrations(folder: string): Migration[] {
  const journal = JSON.parse(readFileSync(join(folder, 'meta/_journal.json'), 'utf8')) as {
    entries: { tag: string; when: number }[];
  };
  return journal.entries.map(({ tag, when }, nth) => {
    const sql = readFileSync(join(folder, `${tag}.sql`), 'utf8');
    const head = /^(?:--(?!>).*\n)*/.exec(sql)?.[0] ?? '';
    const statements = sql.split('--> statement-breakpoint').map((one) => one.trim());
    const lowest = /^-- breaking: (\d+\.\d+\.\d+)$/m.exec(head)?.[1] ?? null;
    return {
      name: tag,
      at: BigInt(when),
      statements: [...(nth === 0 ? first : []), ...statements, toRecord(hash('sha256', sql), when, lowest)],
      inTransaction: !/^-- no transaction\b/m.test(head),
      lowest,
    };
  });
}

/** The column `lowest` is younger than the first migrations. */
function toRecord(hashed: string, when: number, lowest: string | null): string {
  const [column, value] = lowest === null ? ['', ''] : [', lowest', `, '${lowest}'`];
  return `INSERT INTO intake.migrations (hash, created_at, version${column}) VALUES ('${hashed}', ${when}, '${version}'${value});`;
}

/** Where the applied migrations are recorded. */
const first = [
  'CREATE SCHEMA IF NOT EXISTS intake;',
  'CREATE TABLE IF NOT EXISTS intake.migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint);',
];

/** Those that the schema lacks, expanding ones first: they need no breaking one. A new database, on which nobody runs, gets all at once. */
export function toPending(applied: readonly AppliedMigration[], finish: boolean, migrations = loadMigrations()) {
  if (applied.length === 0) return migrations;
  const known = new Set(applied.map(({ at }) => at));
  const missing = migrations.filter(({ at }) => !known.has(at));
  const expanding = missing.filter(({ lowest }) => lowest === null);
  return finish ? [...expanding, ...missing.filter(({ lowest }) => lowest !== null)] : expanding;
}

/** What was applied, in the order of writing; empty where there is no schema, or where it may not be read. */
export async function loadApplied(db: Queryable): Promise<AppliedMigration[]> {
  try {
    // By way of JSON, because an earlier schema lacks columns.
    const rows = await db.query<{ at: string; version: string | null; lowest: string | null }>(
      `SELECT created_at::text AS at, to_jsonb(m) ->> 'version' AS version, to_jsonb(m) ->> 'lowest' AS lowest
       FROM intake.migrations m ORDER BY created_at`,
    );
    return rows.map(({ at, ...row }) => ({ at: BigInt(at), ...row }));
  } catch (error) {
    if (notThere.has(sqlState(error) ?? '')) return [];
    throw error;
  }
}

/** Undefined table, undefined schema, insufficient privilege: a caller that waits for the schema treats them alike. */
const notThere = new Set(['42P01', '3F000', '42501']);

export interface MigrateOptions {
  readonly dryRun?: boolean;
  /** Applies the breaking migrations as well, unless a process is alive that is too old for them. */
  readonly finish?: boolean;
  readonly signal?: AbortSignal;
  /** Called while a migration waits for a lock, with the transaction that is in the way, and once before a wait for another role. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
  /** Those of this version, unless a test brings others. */
  readonly migrations?: readonly Migration[];
}

/** Applies missing migrations and returns their names; of many processes, one migrates. Throws SchemaTrouble where one fails. */
export async function migrate(url: DatabaseUrl, options: MigrateOptions = {}): Promise<string[]> {
  try {
    await using db = await connect(url, { application_name: 'intake migrate' });
    await using watch = await connect(url, { application_name: 'intake migrate watch', query_timeout: 10_000 });
    const [session] = await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    using blockers = watchBlockers(watch, session?.pid ?? 0, options);
    return await applyMissing(db, blockers, options);
  } catch (error) {
    // A wait that was aborted, or an unreachable, full or read-only server says nothing about the migration: the caller retries.
    const known = toTrouble(error, url);
    const code = sqlState(error);
    if (known instanceof Trouble || code === undefined || code === 'ABORT_ERR') throw known;
    throw new SchemaTrouble(
      `A migration failed (${code}) and was rolled back. Those before it stay.`,
      'Fix the cause and run `intake migrate`.',
      error,
    );
  }
}

/** A session of its own. Its end releases the advisory lock, whatever state the connection is in. */
async function connect(url: DatabaseUrl, config: pg.ClientConfig): Promise<Queryable & AsyncDisposable> {
  const client = new (clientOf(url))(config);
  const end = () => client.end();
  await client.connect().catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return {
    query: async (sql, values = []) => (await client.query(sql, [...values])).rows,
    [Symbol.asyncDispose]: end,
  };
}

async function applyMissing(db: Queryable, blockers: Blockers, options: MigrateOptions): Promise<string[]> {
  // Limits of the role are for its queries. Not every server knows all of them.
  await db.query(
    `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')`,
  );
  await db.query(`SET idle_in_transaction_session_timeout = ${longestSilenceMs}`);
  await lockSchema(db, options);
  const [server] = await db.query<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
  const trouble = toEncodingTrouble(server?.encoding ?? 'unknown');
  if (trouble !== null) throw trouble;
  const applied = await loadApplied(db);
  const missing = toPending(applied, options.finish ?? false, options.migrations);
  const plan = options.dryRun ? [toTrial(missing)] : missing.map(toSteps);
  // On a new database there is nobody to wait for, and no table yet that would tell.
  const guard = applied.length === 0 ? { lowest: null } : {};
  for (const steps of plan) await apply(db, blockers, { ...steps, ...guard }, options);
  return missing.map(({ name }) => name);
}

/** Waits by statements that end at once: an index that the other process builds CONCURRENTLY waits for those that have begun. */
async function lockSchema(db: Queryable, { signal, onWait }: MigrateOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    const [row] = await db.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [lockKey]);
    if (row?.taken) return;
    if (attempt % 10 === 0) {
      onWait?.(new Trouble('local', 'Another process migrates the database.', { at: 'database' }), turnMs, attempt);
    }
    await sleep(turnMs, undefined, { signal });
  }
}

/** What one migration sends. */
type Steps = Pick<Migration, 'statements' | 'inTransaction' | 'lowest'>;

function toSteps(migration: Migration): Steps {
  const { statements, inTransaction } = migration;
  return inTransaction ? { ...migration, statements: ['BEGIN', ...statements, 'COMMIT'] } : migration;
}

/** All of them in one transaction that is rolled back. No transaction takes CONCURRENTLY. */
function toTrial(missing: readonly Migration[]): Steps {
  const statements = missing.flatMap((one) => one.statements).map((sql) => sql.replaceAll(/\bCONCURRENTLY\b/gi, ''));
  const lowests = missing.flatMap(({ lowest }) => lowest ?? []);
  return { statements: ['BEGIN', ...statements, 'ROLLBACK'], inTransaction: true, lowest: lowests.at(-1) ?? null };
}

/** Retries for as long as another transaction is in the way; throws SchemaTrouble after ten minutes. */
async function apply(
  db: Queryable,
  blockers: Blockers,
  { statements, inTransaction, lowest }: Steps,
  { signal, onWait, crashPoint }: MigrateOptions,
): Promise<void> {
  const until = performance.now() + longestBlockMs;
  // Nobody waits behind what runs without a transaction, so it may wait.
  await db.query(`SET lock_timeout = ${inTransaction ? lockTimeoutMs : 0}`);
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    // The session that was in the way before may be gone.
    blockers.last = null;
    try {
      for (const [nth, sql] of statements.entries()) {
        crashPoint?.('migrating');
        await db.query(sql);
        // Behind BEGIN, so that its lock holds until the end.
        if (nth === 0 && lowest !== null) await keepOutOlder(db, lowest);
      }
      return;
    } catch (error) {
      if (!gaveWay.has(sqlState(error) ?? '')) throw error;
      await db.query('ROLLBACK');
      const last = blockers.last as Blockers['last'];
      if (performance.now() > until) {
        const how = last === null ? '' : ` (SELECT pg_terminate_backend(${last.pid}))`;
        const next = `End that transaction${how}, then run \`intake migrate\`.`;
        throw new SchemaTrouble(toWaiting(last).message, next, error);
      }
      // One that is seen, its watch has told.
      if (last === null) onWait?.(toWaiting(last), pauseMs, attempt);
      await sleep(pauseMs, undefined, { signal });
    }
  }
}

interface Blockers extends Disposable {
  /** The session that this attempt waits for, or waited for last: for the operator who has to decide about it. */
  last: { readonly pid: number; readonly text: string } | null;
}

function toWaiting(blocker: Blockers['last']): Trouble {
  const who = blocker?.text ?? 'Which transaction holds it could not be seen.';
  return new Trouble('local', `A migration waits for a lock. ${who}`, { at: 'database' });
}

/** Looks which session the migration waits for, the one with the oldest transaction, and says so, again from time to time. */
function watchBlockers(watch: Queryable, pid: number, { onWait }: MigrateOptions): Blockers {
  let saidAt = Number.NEGATIVE_INFINITY;
  const look = async () => {
    // What this role may not see of it is left out.
    const [blocker] = await watch.query<{ pid: number; text: string }>(
      `SELECT pid, format('A transaction of %s (process %s, application "%s"%s) %s.', coalesce(usename, 'an unknown user'), pid,
         application_name, ', ' || state, coalesce('has been open for ' || extract(epoch FROM now() - xact_start)::int || ' s', 'holds it')) AS text
       FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1)) ORDER BY xact_start LIMIT 1`,
      [pid],
    );
    if (blocker === undefined) return;
    blockers.last = blocker;
    if (performance.now() - saidAt < pauseMs) return;
    saidAt = performance.now();
    onWait?.(toWaiting(blocker), pauseMs, 1);
  };
  let isLooking = false;
  const lookAlone = async () => {
    if (isLooking) return;
    isLooking = true;
    await look().catch(() => {});
    isLooking = false;
  };
  const looking = setInterval(lookAlone, lookMs);
  const blockers: Blockers = { last: null, [Symbol.dispose]: () => clearInterval(looking) };
  return blockers;
}

export async function loadSchema(db: Queryable) {
  return toSchema(await loadApplied(db), loadMigrations());
}

interface ServerFacts {
  readonly version: string;
  readonly now: Date;
  readonly encoding: string;
  /** True for a standby, or where default_transaction_read_only is on. */
  readonly readOnly: boolean;
  readonly mayCreate: boolean;
}

export async function loadServer(db: Queryable) {
  const [row] = await db.query<ServerFacts>(
    `SELECT current_setting('server_version') AS version, clock_timestamp() AS now,
       current_setting('server_encoding') AS encoding,
       current_setting('transaction_read_only')::boolean AS "readOnly",
       has_database_privilege(current_database(), 'CREATE') AS "mayCreate"`,
  );
  return { ...(row as ServerFacts), schema: await loadSchema(db) };
}

export interface SchemaRequest extends MigrateOptions {
  /** Where to migrate: a direct connection, not a pooler in transaction mode. */
  readonly directUrl: DatabaseUrl;
  readonly signal: AbortSignal;
  /** How long to wait for another role to migrate when this one lacks the privilege. */
  readonly retryForMs?: number;
}

const schemaLookMs = 1_000;

/** Ensures that the schema is the one this version needs: migrates if the role may, else waits. Throws SchemaTrouble. */
export async function ensureSchema(db: Queryable, { directUrl, retryForMs = 120_000, ...request }: SchemaRequest) {
  const until = performance.now() + retryForMs;
  for (let attempt = 1; ; attempt++) {
    const schema = await loadSchema(db);
    if (isUsable(schema)) return;
    if (schema.state === 'ahead') throw toSchemaTrouble(schema);
    try {
      await migrate(directUrl, request);
    } catch (error) {
      if (sqlState(error) !== '42501') throw error;
      const trouble = new SchemaTrouble(
        'The schema is missing or too old, and this role may not change it.',
        'Run `intake migrate` as the owner of the schema.',
        error,
      );
      if (performance.now() > until) throw trouble;
      const happened = `${trouble.message} ${trouble.next} Waiting up to ${retryForMs / 1_000} s for the migration.`;
      if (attempt === 1) request.onWait?.(new Trouble('local', happened, { at: 'database' }), schemaLookMs, attempt);
      await sleep(schemaLookMs, undefined, { signal: request.signal });
    }
  }
}

/** Throws unless this version may use the schema; changes nothing. */
export async function requireSchema(db: Queryable): Promise<void> {
  const schema = await loadSchema(db);
  if (!isUsable(schema)) throw toSchemaTrouble(schema);
}

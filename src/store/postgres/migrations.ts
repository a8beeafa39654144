// Compares the schema with this version, and brings it up to date where the caller may: forward only, one process at a time, each migration in
// a transaction of its own. A statement that waits for a lock makes everybody behind it wait as well. It therefore gives up after a second,
// its migration is rolled back, and begins again after a pause.
import { setInterval, setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import {
  type AppliedMigration,
  isUsable,
  type Schema,
  toEncodingTrouble,
  toSchema,
  toSchemaTrouble,
} from '../../domain/schema.ts';
import { SchemaTrouble, Trouble } from '../../domain/trouble.ts';
import { clientOf, type DatabaseUrl } from './connection.ts';
import { type Queryable, sqlState, toTrouble } from './database.ts';
import { loadMigrations, type Migration } from './migration-files.ts';
import { keepOutOlder } from './processes.ts';

/** The key of the advisory lock that lets one process migrate at a time. */
const lockKey = 7_400_105;
const lockTimeoutMs = 1_000;
const pauseMs = 5_000;
const turnMs = 500;
const lookMs = 250;
/** A process that is suspended amid a migration, or cut off from the server, keeps its locks no longer than this. */
const longestSilenceMs = 5_000;
/** How long a transaction of somebody else may keep a migration from its lock. */
const longestBlockMs = 600_000;
/** Lock not available, deadlock detected: another transaction is in the way. */
const gaveWay = new Set(['55P03', '40P01']);

/**
 * Those that the schema lacks. First the ones that expand it, which need no breaking one before them; then, to finish, the breaking ones. A
 * new database gets all of them at once, since nobody runs on it.
 */
export function toPending(
  applied: readonly AppliedMigration[],
  finish: boolean,
  migrations = loadMigrations(),
): readonly Migration[] {
  if (applied.length === 0) return migrations;
  const known = new Set(applied.map(({ at }) => at));
  const missing = migrations.filter(({ at }) => !known.has(at));
  const [expanding, breaking] = [true, false].map((is) => missing.filter(({ lowest }) => (lowest === null) === is));
  return [...(expanding ?? []), ...((finish && breaking) || [])];
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

/**
 * Applies missing migrations and returns their names. Any number of processes may call it at once: one migrates, the others wait and then
 * have nothing to do. Throws SchemaTrouble where one fails or may not be applied.
 */
export async function migrate(url: DatabaseUrl, options: MigrateOptions = {}): Promise<string[]> {
  try {
    await using db = await connect(url, { application_name: 'intake migrate' });
    await using watch = await connect(url, { application_name: 'intake migrate watch', query_timeout: 10_000 });
    const [own] = await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await using blockers = watchBlockers(watch, own?.pid ?? 0, options);
    return await applyMissing(db, blockers, options);
  } catch (error) {
    // An unreachable, full or read-only server says nothing about the migration: it stays a Trouble, which the caller retries. Nor does a
    // wait that was aborted.
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
  for (const steps of plan) await applyInTime(db, blockers, { ...steps, ...guard }, options);
  return missing.map(({ name }) => name);
}

/**
 * Waits until no other process migrates. With statements that end at once: an index that the other one builds CONCURRENTLY would wait for the
 * end of a statement that waits, and so for itself.
 */
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
type Steps = Omit<Migration, 'name' | 'at'>;

function toSteps({ statements, inTransaction, lowest }: Migration): Steps {
  return { statements: inTransaction ? ['BEGIN', ...statements, 'COMMIT'] : statements, inTransaction, lowest };
}

/** All of them in one transaction that is rolled back. No transaction takes CONCURRENTLY. */
function toTrial(missing: readonly Migration[]): Steps {
  const statements = missing.flatMap((one) => one.statements).map((sql) => sql.replaceAll(/\bCONCURRENTLY\b/gi, ''));
  const lowests = missing.flatMap(({ lowest }) => lowest ?? []);
  return { statements: ['BEGIN', ...statements, 'ROLLBACK'], inTransaction: true, lowest: lowests.at(-1) ?? null };
}

/** Retries for as long as another transaction is in the way; throws SchemaTrouble after ten minutes. */
async function applyInTime(db: Queryable, blockers: Blockers, steps: Steps, options: MigrateOptions): Promise<void> {
  const until = performance.now() + longestBlockMs;
  for (let attempt = 1; ; attempt++) {
    options.signal?.throwIfAborted();
    blockers.forget();
    try {
      return await apply(db, steps, options);
    } catch (error) {
      if (!gaveWay.has(sqlState(error) ?? '')) throw error;
      await db.query('ROLLBACK');
      const { last } = blockers;
      if (performance.now() > until) {
        const how = last === null ? '' : ` (SELECT pg_terminate_backend(${last.pid}))`;
        throw new SchemaTrouble(toWaiting(last), `End that transaction${how}, then run \`intake migrate\`.`, error);
      }
      // One that is seen, its watch has told.
      if (last === null) options.onWait?.(new Trouble('local', toWaiting(last), { at: 'database' }), pauseMs, attempt);
      await sleep(pauseMs, undefined, { signal: options.signal });
    }
  }
}

async function apply(db: Queryable, { statements, inTransaction, lowest }: Steps, options: MigrateOptions) {
  // Nobody waits behind what runs without a transaction, so it may wait.
  await db.query(`SET lock_timeout = ${inTransaction ? lockTimeoutMs : 0}`);
  for (const [nth, sql] of statements.entries()) {
    options.crashPoint?.('migrating');
    await db.query(sql);
    // Behind BEGIN, so that its lock holds until the end.
    if (nth === 0 && lowest !== null) await keepOutOlder(db, lowest);
  }
}

/** A session in the way of a migration, for the operator who has to decide about it. */
interface Blocker {
  readonly pid: number;
  readonly text: string;
}

interface Blockers extends AsyncDisposable {
  /** The session that this attempt waits for, or waited for last. */
  readonly last: Blocker | null;
  /** Before another attempt: the session that was in the way may be gone. */
  forget(): void;
}

const toWaiting = (blocker: Blocker | null) =>
  `A migration waits for a lock. ${blocker?.text ?? 'Which transaction holds it could not be seen.'}`;

/** Looks which session the migration waits for, and says so, again from time to time. */
function watchBlockers(watch: Queryable, pid: number, { onWait }: MigrateOptions): Blockers {
  const over = new AbortController();
  let last: Blocker | null = null;
  const look = async () => {
    let saidAt = Number.NEGATIVE_INFINITY;
    for await (const _ of setInterval(lookMs, undefined, { signal: over.signal })) {
      const blocker = await findBlocker(watch, pid).catch(() => null);
      if (blocker === null) continue;
      last = blocker;
      if (performance.now() - saidAt < pauseMs) continue;
      saidAt = performance.now();
      onWait?.(new Trouble('local', toWaiting(blocker), { at: 'database' }), pauseMs, 1);
    }
  };
  const looking = look().catch(() => {});
  return {
    get last() {
      return last;
    },
    forget() {
      last = null;
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await looking;
    },
  };
}

/** The session with the oldest transaction in the way. What this role may not see of it is left out. */
async function findBlocker(watch: Queryable, pid: number): Promise<Blocker | null> {
  const [blocker] = await watch.query<Blocker>(
    `SELECT pid, format('A transaction of %s (process %s, application "%s"%s) %s.', coalesce(usename, 'an unknown user'), pid,
       application_name, ', ' || state, coalesce('has been open for ' || extract(epoch FROM now() - xact_start)::int || ' s', 'holds it')) AS text
     FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1)) ORDER BY xact_start LIMIT 1`,
    [pid],
  );
  return blocker ?? null;
}

export async function loadSchema(db: Queryable): Promise<Schema> {
  return toSchema(await loadApplied(db), loadMigrations());
}

export interface ServerFacts {
  readonly version: string;
  readonly now: Date;
  readonly encoding: string;
  readonly schema: Schema;
  /** True for a standby, or where default_transaction_read_only is on. */
  readonly readOnly: boolean;
  readonly mayCreate: boolean;
}

export async function loadServer(db: Queryable): Promise<ServerFacts> {
  const [row] = await db.query<Omit<ServerFacts, 'schema'>>(
    `SELECT current_setting('server_version') AS version, clock_timestamp() AS now,
       current_setting('server_encoding') AS encoding,
       current_setting('transaction_read_only')::boolean AS "readOnly",
       has_database_privilege(current_database(), 'CREATE') AS "mayCreate"`,
  );
  if (row === undefined) throw new Error('The server returned no row for a SELECT without FROM.');
  return { ...row, schema: await loadSchema(db) };
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
export async function ensureSchema(
  db: Queryable,
  { directUrl, retryForMs = 120_000, ...request }: SchemaRequest,
): Promise<void> {
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

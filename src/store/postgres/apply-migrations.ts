// Applies migrations: forward only, one process at a time, each in a transaction of its own. A statement that waits for a lock makes everybody
// behind it wait as well. It therefore gives up after a second, its migration is rolled back, and begins again after a pause.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { toEncodingTrouble } from '../../domain/schema.ts';
import { SchemaTrouble, Trouble } from '../../domain/trouble.ts';
import { clientOf, type DatabaseUrl } from './connection.ts';
import { type Queryable, sqlState } from './database.ts';
import { describeBlocker, type LockWatch, openLockWatch } from './lock-watch.ts';
import { loadMigrations, type Migration } from './migration-files.ts';

/** The key of the advisory lock that lets one process migrate at a time. */
const lockKey = 7_400_105;
const lockTimeoutMs = 1_000;
const pauseMs = 5_000;
/** How long a transaction of somebody else may keep a migration from its lock. */
const longestBlockMs = 600_000;
const lockNotAvailable = '55P03';

/** The migrations that a schema lacks whose newest one was written at `newest`; null: there is no schema. */
export function toPending(newest: bigint | null, migrations = loadMigrations()): readonly Migration[] {
  return migrations.filter(({ at }) => newest === null || at > newest);
}

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
  /** Called while a migration waits for a lock, with the transaction that is in the way, and once before a wait for another role. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
  /** Those of this version, unless a test brings others. */
  readonly migrations?: readonly Migration[];
}

/**
 * Applies missing migrations and returns their names. Any number of processes may call it at once: one migrates, the others wait and then
 * have nothing to do.
 */
export async function migrate(url: DatabaseUrl, options: MigrateOptions = {}): Promise<string[]> {
  await using session = await openSession(url, options);
  const { client } = session;
  const { rows } = await client.query<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
  const trouble = toEncodingTrouble(rows[0]?.encoding ?? 'unknown');
  if (trouble !== null) throw trouble;
  await whileReporting(session, () => client.query('SELECT pg_advisory_lock($1)', [lockKey]));
  const newest = await loadNewest({ query: async (sql) => (await client.query(sql)).rows });
  const missing = toPending(newest, options.migrations);
  for (const steps of options.dryRun ? [toTrial(missing)] : missing.map(toSteps)) await applyInTime(session, steps);
  return missing.map(({ name }) => name);
}

/** The connection that migrates, and the one that sees what it waits for. */
interface Session extends AsyncDisposable {
  readonly client: pg.Client;
  readonly watch: LockWatch;
  readonly options: MigrateOptions;
}

async function openSession(url: DatabaseUrl, options: MigrateOptions): Promise<Session> {
  await using stack = new AsyncDisposableStack();
  const client = new (clientOf(url))({ application_name: 'intake migrate' });
  await client.connect();
  // Closing the connection releases the advisory lock, whatever state the connection is in.
  stack.defer(() => client.end());
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const watch = stack.use(await openLockWatch(url, rows[0]?.pid ?? 0));
  const owned = stack.move();
  return { client, watch, options, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** What one migration sends. */
interface Steps {
  readonly statements: readonly string[];
  readonly inTransaction: boolean;
}

function toSteps({ statements, inTransaction }: Migration): Steps {
  return { statements: inTransaction ? ['BEGIN', ...statements, 'COMMIT'] : statements, inTransaction };
}

/** All of them in one transaction that is rolled back. No transaction takes CONCURRENTLY. */
function toTrial(missing: readonly Migration[]): Steps {
  const statements = missing.flatMap((one) => one.statements).map((sql) => sql.replaceAll(/\bCONCURRENTLY\b/gi, ''));
  return { statements: ['BEGIN', ...statements, 'ROLLBACK'], inTransaction: true };
}

/** Retries for as long as another transaction holds a lock; throws SchemaTrouble after ten minutes. */
async function applyInTime(session: Session, steps: Steps): Promise<void> {
  const { client, watch, options } = session;
  const until = performance.now() + longestBlockMs;
  for (let attempt = 1; ; attempt++) {
    options.signal?.throwIfAborted();
    try {
      return await apply(session, steps);
    } catch (error) {
      if (sqlState(error) !== lockNotAvailable) throw error;
      await client.query('ROLLBACK');
      const blocker = watch.take();
      const happened = `A migration waits for a lock. ${describeBlocker(blocker)}`;
      if (performance.now() > until) {
        const how = blocker === null ? '' : ` (SELECT pg_terminate_backend(${blocker.pid}))`;
        throw new SchemaTrouble(happened, `End that transaction${how}, then run \`intake migrate\`.`, error);
      }
      options.onWait?.(new Trouble('local', happened, { at: 'database' }), pauseMs, attempt);
      await sleep(pauseMs, undefined, { signal: options.signal });
    }
  }
}

async function apply(session: Session, { statements, inTransaction }: Steps): Promise<void> {
  const { client, options } = session;
  const send = async () => {
    for (const sql of statements) {
      options.crashPoint?.('migrating');
      await client.query(sql);
    }
  };
  if (inTransaction) {
    await client.query(`SET lock_timeout = ${lockTimeoutMs}`);
    return await send();
  }
  await client.query('SET lock_timeout = 0');
  await whileReporting(session, send);
}

/** Runs what may wait for long because nobody waits behind it, and says from time to time what it waits for. */
async function whileReporting(session: Session, work: () => Promise<unknown>): Promise<void> {
  const { watch, options } = session;
  let attempt = 0;
  const timer = setInterval(() => {
    const blocker = watch.take();
    if (blocker === null) return;
    attempt += 1;
    const happened = `A migration waits for another session. ${describeBlocker(blocker)}`;
    options.onWait?.(new Trouble('local', happened, { at: 'database' }), pauseMs, attempt);
  }, pauseMs);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
}

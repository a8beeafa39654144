// Brings the schema up to date: forward only, one process at a time, in one transaction. drizzle runs the migrations under our advisory
// lock, because its migrator fails when several processes start together (measured: 3 of 4 fail).
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { type Schema, toEncodingTrouble, toSchemaTrouble } from '../../domain/schema.ts';
import { SchemaTrouble, Trouble } from '../../domain/trouble.ts';
import { clientOf, type DatabaseUrl } from './connection.ts';
import { type Queryable, sqlState, toTrouble } from './database.ts';

const folder = join(import.meta.dirname, '../../../migrations');
const lockKey = 7_400_105;
const { version } = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8')) as { version: string };

/** Undefined table, undefined schema, insufficient privilege: a caller that waits for the schema treats them alike. */
const notThere = new Set(['42P01', '3F000', '42501']);

const duplicateTable = '42P07';

/** Compares the schema with the migrations of this version. */
export async function loadSchema(db: Queryable): Promise<Schema> {
  const wanted = newestMigration();
  const rows = await db
    .query<{ newest: bigint | null }>(`SELECT max(created_at) AS newest FROM intake.migrations`)
    .catch((error: unknown) => {
      if (notThere.has(sqlState(error) ?? '')) return [];
      throw error;
    });
  const newest = rows[0]?.newest ?? null;
  if (newest === null) return { state: 'absent', migratedBy: null };
  if (newest === wanted) return { state: 'current', migratedBy: version };
  // The column `version` may be missing from an older schema.
  if (newest < wanted) return { state: 'behind', migratedBy: null };
  const [last] = await db.query<{ version: string | null }>(
    `SELECT version FROM intake.migrations ORDER BY created_at DESC LIMIT 1`,
  );
  return { state: 'ahead', migratedBy: last?.version ?? null };
}

export interface ServerFacts {
  readonly version: string;
  readonly now: Date;
  readonly encoding: string;
  readonly schema: Schema;
  /** The server's setting. Intake's own transactions turn jit off. */
  readonly jit: boolean;
  /** True for a standby, or where default_transaction_read_only is on. */
  readonly readOnly: boolean;
  /** Whether this role could create the schema. */
  readonly mayCreate: boolean;
}

/** Loads the server's version, clock and settings, and the state of the schema. */
export async function loadServer(db: Queryable): Promise<ServerFacts> {
  const [row] = await db.query<{
    version: string;
    now: Date;
    encoding: string;
    jit: boolean;
    read_only: boolean;
    may_create: boolean;
  }>(
    `SELECT current_setting('server_version') AS version, clock_timestamp() AS now,
       current_setting('server_encoding') AS encoding,
       current_setting('jit')::boolean AS jit,
       current_setting('transaction_read_only')::boolean AS read_only,
       has_database_privilege(current_database(), 'CREATE') AS may_create`,
  );
  if (row === undefined) throw new Error('The server returned no row for a SELECT without FROM.');
  return {
    version: row.version,
    now: row.now,
    encoding: row.encoding,
    jit: row.jit,
    readOnly: row.read_only,
    schema: await loadSchema(db),
    mayCreate: row.may_create,
  };
}

/** Applies missing migrations. Any number of processes may call it at once: one migrates, the others wait and then have nothing to do. */
export async function migrate(url: DatabaseUrl, crashPoint?: PassCrashPoint): Promise<void> {
  const client = new (clientOf(url))({ application_name: 'intake migrate' });
  await client.connect();
  try {
    const { rows } = await client.query<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
    const trouble = toEncodingTrouble(rows[0]?.encoding ?? 'unknown');
    if (trouble !== null) throw trouble;
    await client.query('SELECT pg_advisory_lock($1)', [lockKey]);
    // `require`, because the ESM entry of drizzle takes six times as long to load.
    const require = createRequire(import.meta.url);
    const { drizzle } = require('drizzle-orm/node-postgres') as typeof import('drizzle-orm/node-postgres');
    const migrator =
      require('drizzle-orm/node-postgres/migrator') as typeof import('drizzle-orm/node-postgres/migrator');
    const logger = crashPoint && { logQuery: () => crashPoint('migrating') };
    await migrator.migrate(drizzle(client, { ...(logger && { logger }) }), {
      migrationsFolder: folder,
      migrationsSchema: 'intake',
      migrationsTable: 'migrations',
    });
    await client.query('UPDATE intake.migrations SET version = $1 WHERE version IS NULL', [version]);
  } finally {
    // Closing the connection releases the lock, whatever state the connection is in.
    await client.end();
  }
}

export interface SchemaRequest {
  /** Where to migrate: a direct connection, not a pooler in transaction mode. */
  readonly directUrl: DatabaseUrl;
  readonly signal: AbortSignal;
  /** True (the default) also migrates a schema that is behind. False only creates a missing schema and never changes an existing one. */
  readonly upgrade?: boolean;
  /** How long to wait for another role to migrate when this one lacks the privilege. */
  readonly retryForMs?: number;
  /** Called once, before the first wait. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
}

const schemaLookMs = 1_000;

/** Ensures that the schema is the one this version needs: migrates if the role may, else waits. Throws SchemaTrouble. */
export async function ensureSchema(db: Queryable, request: SchemaRequest): Promise<void> {
  const retryForMs = request.retryForMs ?? 120_000;
  const until = Date.now() + retryForMs;
  for (let isReported = false; ; ) {
    const schema = await loadSchema(db);
    if (schema.state === 'current') return;
    if (schema.state === 'ahead' || (schema.state === 'behind' && request.upgrade === false)) {
      throw toSchemaTrouble(schema);
    }
    try {
      await migrate(request.directUrl, request.crashPoint);
      continue;
    } catch (error) {
      if (sqlState(error) !== '42501') throw toMigrationTrouble(error, schema, request.directUrl);
      const trouble = new SchemaTrouble(
        'The schema is missing or too old, and this role may not change it.',
        'Run `intake migrate` as the owner of the schema.',
        error,
      );
      if (Date.now() > until) throw trouble;
      if (!isReported) {
        const happened = `${trouble.message} ${trouble.next} Waiting up to ${retryForMs / 1_000} s for the migration.`;
        request.onWait?.(new Trouble('local', happened, { at: 'database' }), schemaLookMs, 1);
        isReported = true;
      }
    }
    await sleep(schemaLookMs, undefined, { signal: request.signal });
  }
}

/** Throws unless the schema is the one that this version needs; changes nothing. */
export async function requireSchema(db: Queryable): Promise<void> {
  const schema = await loadSchema(db);
  if (schema.state !== 'current') throw toSchemaTrouble(schema);
}

function toMigrationTrouble(error: unknown, schema: Schema, url: DatabaseUrl): unknown {
  // An unreachable, full or read-only server says nothing about the migration: it stays a Trouble, which the caller retries.
  const known = toTrouble(error, url);
  const code = sqlState(error);
  if (known instanceof Trouble || code === undefined) return known;
  if (code === duplicateTable && schema.state === 'behind') {
    return new SchemaTrouble(
      'The schema "intake" was made before the first release, and no migration leads from it to this one.',
      'Use a new database, or drop the schemas intake and intake_analytics: the source still has the applications. For the demo, delete the folder .intake.',
      error,
    );
  }
  return new SchemaTrouble(
    `A migration failed (${code}) and was rolled back completely.`,
    'Fix the cause and run `intake migrate`.',
    error,
  );
}

function newestMigration(): bigint {
  const journal = JSON.parse(readFileSync(join(folder, 'meta/_journal.json'), 'utf8')) as {
    entries: { when: number }[];
  };
  return BigInt(Math.max(...journal.entries.map((entry) => entry.when)));
}

// Compares the schema with this version, and brings it up to date where the caller may.
import { setTimeout as sleep } from 'node:timers/promises';
import { isUsable, type Schema, toSchema, toSchemaTrouble } from '../../domain/schema.ts';
import { SchemaTrouble, Trouble } from '../../domain/trouble.ts';
import { version } from '../../domain/version.ts';
import { loadApplied, type MigrateOptions, migrate } from './apply-migrations.ts';
import type { DatabaseUrl } from './connection.ts';
import { type Queryable, sqlState } from './database.ts';
import { loadMigrations } from './migration-files.ts';

export async function loadSchema(db: Queryable): Promise<Schema> {
  return toSchema(await loadApplied(db), loadMigrations(), version);
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

// Brings the schema up to date: forward only, one process at a time, all of it or nothing.
// drizzle runs the migrations; the lock around it is ours, because its migrator fails when several start together (measured: 3 of 4).
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import { SchemaTrouble, Trouble } from '../domain/trouble.ts';
import type { Queryable } from './database.ts';
import { sqlState, toTrouble } from './database.ts';

const folder = join(import.meta.dirname, '../../migrations');
const lockKey = 7_400_105;

/** No such table, no such schema, or none that this role may see: the same to whoever waits for it. */
const notThere = new Set(['42P01', '3F000', '42501']);

export type SchemaState = 'current' | 'behind' | 'ahead' | 'absent';

/** Compares the schema with the migrations of this version. */
export async function loadSchemaState(db: Queryable): Promise<SchemaState> {
  const wanted = newestMigration();
  const rows = await db
    .query<{ newest: bigint | null }>(`SELECT max(created_at) AS newest FROM intake.migrations`)
    .catch((error: unknown) => {
      if (notThere.has(sqlState(error) ?? '')) return [];
      throw error;
    });
  const newest = rows[0]?.newest ?? null;
  if (newest === null) return 'absent';
  return newest === wanted ? 'current' : newest < wanted ? 'behind' : 'ahead';
}

/** What the server says of itself, and whether its schema is ours. */
export async function loadServer(db: Queryable): Promise<{ version: string; now: Date; schema: SchemaState }> {
  const [row] = await db.query<{ version: string; now: Date }>(
    `SELECT current_setting('server_version') AS version, clock_timestamp() AS now`,
  );
  return { version: row?.version ?? 'unknown', now: row?.now ?? new Date(0), schema: await loadSchemaState(db) };
}

/** Applies what is missing. Any number of processes may call it at once: one works, the others wait and find nothing to do. */
export async function migrate(url: string, crashPoint?: PassCrashPoint): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'intake migrate' });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [lockKey]);
    // By require: the ESM entry of drizzle takes six times as long to load.
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
  } finally {
    // Ending the connection frees the lock, whatever state it is in.
    await client.end();
  }
}

export interface SchemaRequest {
  /** Where to migrate: a direct connection, not a pooler in transaction mode. */
  readonly directUrl: string;
  readonly signal: AbortSignal;
  /** How long to wait for somebody else to migrate when this role may not. */
  readonly patienceMs?: number;
  readonly crashPoint?: PassCrashPoint | undefined;
}

/** Makes sure that the schema is the one this version needs: migrates if the role may, else waits for it. Throws SchemaTrouble. */
export async function ensureSchema(db: Queryable, request: SchemaRequest): Promise<void> {
  const until = Date.now() + (request.patienceMs ?? 120_000);
  for (;;) {
    const state = await loadSchemaState(db);
    if (state === 'current') return;
    if (state === 'ahead') {
      throw new SchemaTrouble(
        'The database was migrated by a newer version of Intake.',
        'Run that version, or a newer one.',
      );
    }
    try {
      await migrate(request.directUrl, request.crashPoint);
      continue;
    } catch (error) {
      if (sqlState(error) !== '42501') throw toSchemaTrouble(error);
      if (Date.now() > until) {
        throw new SchemaTrouble(
          'The schema is missing or too old, and this role may not change it.',
          'Run `intake migrate` as the owner of the schema.',
          error,
        );
      }
    }
    await sleep(1_000, undefined, { signal: request.signal });
  }
}

function toSchemaTrouble(error: unknown): unknown {
  // A server that is away, full or read-only says nothing about the migration: it is waited for.
  const known = toTrouble(error);
  const code = sqlState(error);
  if (known instanceof Trouble || code === undefined) return known;
  return new SchemaTrouble(
    `A migration failed (${code}) and was undone as a whole.`,
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

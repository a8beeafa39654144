// Reads the migrations: SQL files in the order of drizzle-kit's journal. The comments at the top of a file say how it is applied:
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
import { version } from '../../domain/schema.ts';

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

const ownFolder = join(import.meta.dirname, '../../../migrations');
let own: readonly Migration[] | undefined;

/** The migrations of this version, oldest first. */
export function loadMigrations(): readonly Migration[] {
  own ??= readMigrations(ownFolder);
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

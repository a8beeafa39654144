// Reads the migrations: SQL files in the order of drizzle-kit's journal. The comments at the top of a file say how it is applied:
//
//   -- no transaction     Its statements run one by one, and all of them again after an interruption: CREATE INDEX CONCURRENTLY after
//                         DROP INDEX CONCURRENTLY IF EXISTS, VALIDATE CONSTRAINT. They may wait for long, and nobody waits for them.
//
// Every other file is one transaction.
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from './version.ts';

export interface Migration {
  readonly name: string;
  /** When it was written, in milliseconds since 1970. The schema records it. */
  readonly at: bigint;
  /** The last one records that the migration was applied. */
  readonly statements: readonly string[];
  readonly inTransaction: boolean;
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
    const record = `INSERT INTO intake.migrations (hash, created_at, version) VALUES ('${hash('sha256', sql)}', ${when}, '${version}');`;
    return {
      name: tag,
      at: BigInt(when),
      statements: [...(nth === 0 ? first : []), ...statements, record],
      inTransaction: !/^-- no transaction\b/m.test(head),
    };
  });
}

/** Where the applied migrations are recorded. */
const first = [
  'CREATE SCHEMA IF NOT EXISTS intake;',
  'CREATE TABLE IF NOT EXISTS intake.migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint);',
];

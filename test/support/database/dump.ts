// Searches everything that could still hold a trace of a person: every row of every table as text, and every file below some folders.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestDatabase } from './test-database.ts';

export interface TraceRequest {
  readonly database: Pick<TestDatabase, 'query'>;
  readonly folders: readonly string[];
  /** The search ignores case. */
  readonly words: readonly string[];
  /** Other texts to search, such as logs. */
  readonly texts?: Readonly<Record<string, string>>;
}

/** Returns each place that contains one of the words. */
export async function findTraces({ database, folders, words, texts = {} }: TraceRequest): Promise<string[]> {
  const found: string[] = [];
  const look = (place: string, text: string) => {
    const lower = text.toLowerCase();
    for (const word of words) if (lower.includes(word.toLowerCase())) found.push(`${place}: ${word}`);
  };
  const tables = await database.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 1`,
  );
  for (const { name } of tables) {
    // The hash of deleted bytes stays for a day, in which a late put is deleted again.
    const where = /\bblobs$/.test(name) ? `WHERE t.state <> 'deleting' OR t.deleted_at IS NULL` : '';
    const rows = await database.query<{ text: string }>(`SELECT t::text AS text FROM ${name} t ${where}`);
    look(name, rows.map(({ text }) => text).join('\n'));
  }
  // Postgres keeps column values for its planner until the next ANALYZE. The planner needs the hashes of files, and they lead to no person.
  const kept = await database.query<{ place: string; text: string }>(
    `SELECT tablename || '.' || attname AS place, concat_ws(' ', most_common_vals, histogram_bounds, most_common_elems) AS text
     FROM pg_stats WHERE schemaname LIKE 'intake%' AND attname NOT IN ('sha256', 'key')`,
  );
  for (const { place, text } of kept) look(`statistics of ${place}`, text);
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      look('a name of a file', entry.name);
      if (entry.isFile()) look(path, readFileSync(path, 'latin1'));
    }
  }
  for (const [place, text] of Object.entries(texts)) look(place, text);
  return found;
}

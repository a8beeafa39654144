// Which processes run on this database, and of which version: the rows of `processes`, which each process renews. A breaking migration
// waits until no older one is alive, and an older one that comes back learns from its next row that it may not go on.
import { findExcluding, isOlder, toSchemaTrouble, version } from '../../domain/schema.ts';
import { SchemaTrouble } from '../../domain/trouble.ts';
import type { Columns } from '../schema/rows.ts';
import type { Queryable } from './database.ts';

/** A process that was not seen for this long has ended, or learns before it works again that it may not go on. */
const aliveFor = `interval '1 minute'`;
/** Rows of processes that were killed are kept this long, for operators who look for them. */
const keptFor = `interval '1 day'`;

/** Records that the process is alive. Throws SchemaTrouble where a breaking migration excludes its version. */
export async function renewProcess(db: Queryable, process: string): Promise<void> {
  // One statement: it waits for a breaking migration that is being applied, and then sees it.
  const rows = await db.query<{ lowest: string }>(
    `WITH renewed AS (
       INSERT INTO intake.processes (process, version, started_at, seen_at) VALUES ($1, $2, now(), now())
       ON CONFLICT (process) DO UPDATE SET seen_at = excluded.seen_at
     ), forgotten AS (
       DELETE FROM intake.processes WHERE seen_at < now() - ${keptFor} AND process <> $1
     )
     SELECT lowest FROM intake.migrations WHERE lowest IS NOT NULL`,
    [process, version],
  );
  const excluding = findExcluding(rows);
  if (excluding !== null) throw toSchemaTrouble({ state: 'ahead', version: excluding });
}

export async function endProcess(db: Queryable, process: string): Promise<void> {
  await db.query(`DELETE FROM intake.processes WHERE process = $1`, [process]);
}

/** Throws SchemaTrouble while a process older than `lowest` is alive. Until the transaction ends, none can record itself. */
export async function keepOutOlder(tx: Queryable, lowest: string): Promise<void> {
  await tx.query(`LOCK TABLE intake.processes IN SHARE ROW EXCLUSIVE MODE`);
  const alive = await tx.query<Columns<'processes', 'process' | 'version'>>(
    `SELECT process, version FROM intake.processes
     WHERE seen_at BETWEEN now() - ${aliveFor} AND now() + ${aliveFor} ORDER BY process`,
  );
  const older = alive.filter((one) => isOlder(one.version, lowest));
  if (older.length === 0) return;
  const named = older.slice(0, 5).map((one) => `${one.process}, version ${one.version}`);
  throw new SchemaTrouble(
    `Processes older than ${lowest} are alive: ${named.join('; ')}${older.length > 5 ? ` and ${older.length - 5} more` : ''}.`,
    'Stop them or let them be replaced, then run `intake migrate --finish` again. One that was killed counts for a minute.',
  );
}

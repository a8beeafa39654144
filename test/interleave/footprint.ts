// Decides which statements of two clients commute. Two schedules that differ only in the order of such statements end in the same state,
// so exploring one of them is enough. A statement runs under READ COMMITTED unless its transaction says otherwise, so
//
// - a plain read depends on what other clients commit in the tables that it names, and never on uncommitted data;
// - a write or a locking read depends on writes and locks of other clients in the same tables (they may wait for each other), and on
//   what other clients commit in the tables that it names;
// - COMMIT and ROLLBACK publish or discard the transaction's writes and release its locks;
// - BEGIN reads the clock, because now() is the start time of the transaction, whatever its statements touch;
// - under REPEATABLE READ the first query takes the snapshot that all later queries read. The tables of the later queries are not known
//   yet, so the first query depends on everything that another client commits. BEGIN and SET take no snapshot.
//
// The footprint has table granularity: it finds tables by their names in the SQL and does not distinguish rows. A write to a table also
// counts as a write to the tables that foreign keys and cascading deletes connect with it. An unknown statement depends on everything.

/** What a step reads and what it writes or locks: names of tables, 'advisory', 'sequences', 'objects', 'clock'. '*' is everything. */
export interface Footprint {
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  /** The step makes its writes visible to other clients at once, or unblocks clients that wait. */
  readonly isVisible: boolean;
}

/** For each table, the tables that a write to it may also lock or change through foreign keys and cascading deletes. */
export type Neighbours = ReadonlyMap<string, readonly string[]>;

const everything: ReadonlySet<string> = new Set(['*']);
const nothing: ReadonlySet<string> = new Set();

/** Footprints of steps that are not statements. */
export const onEverything: Footprint = { reads: everything, writes: everything, isVisible: true };
export const onObjects: Footprint = { reads: new Set(['objects']), writes: new Set(['objects']), isVisible: true };

/** The state of a client's open transaction that the footprints of its later statements need. */
export interface OpenTransaction {
  /** The tables that the transaction has written or locked. */
  readonly written: Set<string>;
  /** Whether the next query takes the snapshot of the transaction. */
  snapshotIsDue: boolean;
}

export function openTransaction(): OpenTransaction {
  return { written: new Set(), snapshotIsDue: false };
}

/** Clears the state at the end of a transaction. */
export function forget(open: OpenTransaction): void {
  open.written.clear();
  open.snapshotIsDue = false;
}

const isLocking = /\bFOR (NO KEY )?UPDATE\b|\bFOR (KEY )?SHARE\b/;

/** Derives the footprint of a statement and updates the state of the client's open transaction. */
export function toFootprint(sql: string, isAlone: boolean, open: OpenTransaction, neighbours: Neighbours): Footprint {
  if (/^\s*(COMMIT|ROLLBACK)\b/.test(sql)) {
    const writes = new Set(open.written);
    forget(open);
    return { reads: nothing, writes, isVisible: true };
  }
  if (/\bISOLATION LEVEL (REPEATABLE READ|SERIALIZABLE)\b/.test(sql)) open.snapshotIsDue = true;
  if (/^\s*SET TRANSACTION\b/.test(sql)) return { reads: nothing, writes: nothing, isVisible: false };
  const isBegin = /^\s*BEGIN\b/.test(sql);
  const takesSnapshot = open.snapshotIsDue && (!isBegin || /;\s*SELECT\b/.test(sql));
  if (takesSnapshot) open.snapshotIsDue = false;
  const writes = new Set<string>();
  const named = new Set<string>(isBegin ? ['clock'] : []);
  for (const [, name = ''] of sql.matchAll(/\bintake\.(\w+)/g)) named.add(neighbours.has(name) ? name : '*');
  const reads = takesSnapshot ? everything : named;
  if (/pg_advisory/.test(sql)) writes.add('advisory');
  if (/\bnextval\(/.test(sql)) writes.add('sequences');
  for (const [, name = ''] of sql.matchAll(/\b(?:INTO|UPDATE|FROM|COPY)\s+intake\.(\w+)/g)) {
    const isWritten = new RegExp(`\\b(INSERT INTO|UPDATE|DELETE FROM|COPY)\\s+intake\\.${name}\\b`).test(sql);
    if (isWritten) for (const one of [name, ...(neighbours.get(name) ?? ['*'])]) writes.add(one);
  }
  if (isLocking.test(sql)) for (const name of named) writes.add(name);
  if (reads.size + writes.size === 0 && !/^\s*SELECT pg_notify\(/.test(sql)) return onEverything;
  if (!isAlone) for (const name of writes) open.written.add(name);
  return { reads, writes, isVisible: isAlone };
}

function meets(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  if (one.size === 0 || other.size === 0) return false;
  if (one.has('*') || other.has('*')) return true;
  for (const name of one) if (other.has(name)) return true;
  return false;
}

/** True when the order of the two steps may matter. */
export function areDependent(one: Footprint, other: Footprint): boolean {
  return (
    meets(one.writes, other.writes) ||
    (one.isVisible && meets(one.writes, other.reads)) ||
    (other.isVisible && meets(other.writes, one.reads))
  );
}

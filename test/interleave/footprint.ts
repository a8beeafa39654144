// Which statements of two clients may change places without a difference. Two schedules that differ only in the order of such statements
// end in the same state, so one of them is enough. A statement runs under READ COMMITTED unless its transaction says otherwise, so
//
// - a plain read depends on what another client commits in the tables that it names, and on nothing that is not committed;
// - a write, or a read that locks, depends on writes and locks of others in the same tables (they may wait for each other), and on
//   what is committed in the tables that it names;
// - COMMIT and ROLLBACK free what the transaction wrote and locked;
// - BEGIN reads the clock: now() is the time at which the transaction began, whatever its statements touch;
// - under REPEATABLE READ the first query takes the snapshot that all later ones read. What these will name is not known yet, so the
//   first one depends on everything that another client commits. BEGIN and SET take no snapshot.
//
// Tables are told apart by their names in the text, rows are not. Who writes a table also writes those that a foreign key joins with it,
// and those that a delete cascades to. What is not understood depends on everything.

/** What a step reads and writes (or locks): names of tables, 'advisory', 'objects', 'clock'. '*' is everything. */
export interface Footprint {
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  /** Others see what it writes at once, or are freed by it. */
  readonly isVisible: boolean;
}

/** Tables, and the tables that a write of them may also lock or change: those that foreign keys and cascading deletes lead to. */
export type Neighbours = ReadonlyMap<string, readonly string[]>;

const everything: ReadonlySet<string> = new Set(['*']);
const nothing: ReadonlySet<string> = new Set();

/** The footprint of something that is no statement. */
export const onEverything: Footprint = { reads: everything, writes: everything, isVisible: true };
export const onObjects: Footprint = { reads: new Set(['objects']), writes: new Set(['objects']), isVisible: true };

/** The transaction that a client has open, as far as its later statements depend on it. */
export interface OpenTransaction {
  /** What it has written or locked. */
  readonly written: Set<string>;
  /** Whether the next query takes a snapshot for all that follow. */
  snapshotIsDue: boolean;
}

export function openTransaction(): OpenTransaction {
  return { written: new Set(), snapshotIsDue: false };
}

/** The transaction is over: what follows knows nothing of it. */
export function forget(open: OpenTransaction): void {
  open.written.clear();
  open.snapshotIsDue = false;
}

const isLocking = /\bFOR (NO KEY )?UPDATE\b|\bFOR (KEY )?SHARE\b/;

/** Reads the footprint of a statement, and keeps what the client's open transaction has to know of it. */
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

/** True where the order of the two may matter. */
export function areDependent(one: Footprint, other: Footprint): boolean {
  return (
    meets(one.writes, other.writes) ||
    (one.isVisible && meets(one.writes, other.reads)) ||
    (other.isVisible && meets(other.writes, one.reads))
  );
}

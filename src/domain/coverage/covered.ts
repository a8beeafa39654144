// What has been read, as a set of ranges of ids that do not overlap: a later reading replaces what earlier ones say of its range, and
// nothing else.

/** A range of ids with something said of it; `high` null is no end. */
export interface Covered {
  readonly low: bigint;
  readonly high: bigint | null;
}

/** The set after a range was read again: rows that it overlaps are trimmed, rows that it contains go. Rows that stay are the same objects. */
export function withRange<T extends Covered>(rows: readonly T[], read: T): T[] {
  const kept: T[] = [];
  for (const row of rows) {
    const isApart = (row.high !== null && row.high < read.low) || (read.high !== null && row.low > read.high);
    if (isApart) {
      kept.push(row);
      continue;
    }
    if (row.low < read.low) kept.push({ ...row, high: read.low - 1n });
    if (read.high !== null && (row.high === null || row.high > read.high)) kept.push({ ...row, low: read.high + 1n });
  }
  return [...kept, read].sort((a, b) => (a.low < b.low ? -1 : 1));
}

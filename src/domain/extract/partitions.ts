// How the rows of a view are divided into files, and which of the files of the snapshot before can serve again.
// Knows no database and no store.

import type { ExtractColumn, ExtractFile, Manifest } from './manifest.ts';

/** By month of submission; by a hash of the application id, so that an erasure rewrites a 64th; or not at all. */
export type Division = 'month' | 'bucket' | 'none';

/** Views with a row per application, file, screen or answer. All others are summaries: small, and written whole every time. */
const monthly: readonly string[] = ['applications_anonymous', 'attachments', 'screening_outcomes', 'screening_answers'];

export function toDivision(view: string, isPersonal: boolean): Division {
  if (isPersonal) return 'bucket';
  return monthly.includes(view) ? 'month' : 'none';
}

/** Which partitions of an advertiser have changed since the snapshot before; null: all may have. */
export interface Changed {
  readonly months: readonly string[];
  readonly buckets: readonly string[];
}

/** The partitions to write, and the files of the snapshot before that stay. `write` null: all partitions. */
export interface PartitionPlan {
  readonly write: readonly string[] | null;
  readonly keep: readonly ExtractFile[];
}

export function planPartitions(
  view: string,
  division: Division,
  earlier: readonly ExtractFile[],
  changed: Changed | null,
): PartitionPlan {
  if (changed === null || division === 'none') return { write: null, keep: [] };
  const write = division === 'month' ? changed.months : changed.buckets;
  const keep = earlier.filter(
    (file) => file.view === view && file.partition !== null && !write.includes(file.partition),
  );
  return { write, keep };
}

/** Whether the files of the snapshot before can serve for this view: it holds the view, with the same columns. */
export function isContinued(previous: Manifest, view: string, columns: readonly ExtractColumn[]): boolean {
  const before = previous.columns[view];
  return before !== undefined && JSON.stringify(before) === JSON.stringify(columns);
}

/**
 * The months of an advertiser's earlier files with the range of their ids. An application whose time of submission has changed, or that is
 * erased, was in one of the months whose range holds its id.
 */
export function toMonthRanges(files: readonly ExtractFile[]): { month: string; low: bigint; high: bigint }[] {
  const ranges = new Map<string, { month: string; low: bigint; high: bigint }>();
  for (const { view, partition, min_id, max_id } of files) {
    if (!monthly.includes(view) || partition === null || min_id === null || max_id === null) continue;
    const [low, high] = [BigInt(min_id), BigInt(max_id)];
    const known = ranges.get(partition) ?? { month: partition, low, high };
    ranges.set(partition, {
      month: partition,
      low: low < known.low ? low : known.low,
      high: high > known.high ? high : known.high,
    });
  }
  return [...ranges.values()];
}

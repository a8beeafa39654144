// The rule for unshown ids as a plain function. The store computes it in SQL (src/store/applications/diff-page.ts); a test compares the two on
// random pages, and the simulation uses this function.

import type { ListedRow, UnshownId } from '../../src/domain/coverage/question.ts';
import type { ExpectedIds } from '../../src/domain/coverage/unshown.ts';

/** A stored id, and when the source first showed it. Erased ids are left out. */
export interface Held {
  readonly id: bigint;
  /** By the same clock as the times below. */
  readonly firstSeenAt: number;
  /** Since when it is known to be gone at the source, or null. */
  readonly missingSince: number | null;
}

/** Stored ids that the answer should have shown. */
export function findUnshown(
  asked: ExpectedIds,
  rows: readonly Pick<ListedRow, 'id'>[],
  held: Iterable<Held>,
  times: { readonly sentAt: number; readonly sweepStartedAt: number },
): UnshownId[] {
  const shown = new Set(rows.map((row) => row.id));
  const unshown: UnshownId[] = [];
  for (const { id, firstSeenAt, missingSince } of held) {
    if (id < asked.low || (asked.high !== null && id > asked.high)) continue;
    if (firstSeenAt > times.sentAt || shown.has(id)) continue;
    if (missingSince !== null && missingSince < times.sweepStartedAt) continue;
    unshown.push({ id, old: firstSeenAt < times.sweepStartedAt });
  }
  unshown.sort((a, b) => (a.id < b.id === asked.fromTop ? 1 : -1));
  return unshown.slice(0, asked.limit);
}

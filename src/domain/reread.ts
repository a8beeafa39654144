// How many stored bytes one night reads again, so that none goes unread for longer than it may. A pure rule: the store counts the bytes,
// the pass reads them, those first that were read longest ago.

/** Stored bytes that must be read within so many nights, tonight included. */
export interface UnreadBytes {
  /** At least 1: what is overdue is read tonight. */
  readonly nights: number;
  readonly bytes: number;
}

export const nightMs = 86_400_000;

/** A night reads no more than this share of the bytes, or twice the usual amount where that is more: a worker that was away catches up in steps. */
const mostShare = 1 / 4;

/**
 * The least number of bytes a night at which every deadline is met: for each deadline, the bytes due by then over the nights until then. The
 * amount falls or stays from night to night unless bytes are added or a night is left out, so that a large account is read evenly from
 * its first night on. One night is spare: bytes are due the night before the last.
 */
export function toNightBudget(unread: readonly UnreadBytes[], withinMs: number): number {
  let due = 0;
  let needed = 0;
  for (const { nights, bytes } of unread.toSorted((a, b) => a.nights - b.nights)) {
    due += bytes;
    needed = Math.max(needed, due / nights);
  }
  // Bytes that were stored just after the last night have one night less than those that it read.
  const usual = due / Math.max(1, Math.floor(withinMs / nightMs) - 2);
  return Math.min(needed, Math.max(mostShare * due, 2 * usual));
}

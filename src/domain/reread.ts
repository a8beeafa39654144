// How many stored bytes one nightly verify reads again, starting with those read longest ago, so that none stays unread beyond the limit.

/** Stored bytes that must be read within `nights` nights, including tonight. */
export interface UnreadBytes {
  /** At least 1: overdue bytes are due tonight. */
  readonly nights: number;
  readonly bytes: number;
}

export const nightMs = 86_400_000;

/** A night reads at most this share of all bytes, or twice the usual amount if that is more: a worker that was down catches up in steps. */
const mostShare = 1 / 4;

/**
 * The smallest number of bytes per night that meets every deadline. It never rises from night to night unless bytes are added or a night is
 * skipped, so a large account is read evenly from its first night on. One night is spare: bytes are due one night before the limit.
 */
export function toNightBudget(unread: readonly UnreadBytes[], withinMs: number): number {
  let due = 0;
  let needed = 0;
  for (const { nights, bytes } of unread.toSorted((a, b) => a.nights - b.nights)) {
    due += bytes;
    needed = Math.max(needed, due / nights);
  }
  // Bytes stored just after a night's run have one night less than bytes that the run has read.
  const usual = due / Math.max(1, Math.floor(withinMs / nightMs) - 2);
  return Math.min(needed, Math.max(mostShare * due, 2 * usual));
}

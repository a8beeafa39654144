// How far the cursor may rise. All ids of a board come from one sequence, so the ids of an account have no leaps: an id far beyond all
// others is an error of the source, or the first one of a new part of the sequence. It moves the cursor when enough ids lie close to it.

/** A usual id is not larger than twice its predecessor plus this. */
const usualLeap = 1_000_000n;

/** So many of the newest ids decide. */
export const newestIds = 16;

/** So many ids without a leap between them confirm the leap before them. The first ids of an account begin anywhere: two are enough. */
const confirming = { first: 2, later: 8 };

/** The new cursor, from the current one (null before the first) and the newest ids that were read, rising, at most `newestIds`. */
export function toCursor(current: bigint | null, newest: readonly bigint[]): bigint | null {
  const firstLeap = newest.findIndex((id, nth) => isLeap(newest[nth - 1] ?? id, id));
  const close = firstLeap === -1 ? newest.length : firstLeap;
  const isConfirmed = close >= (current === null || current === 0n ? confirming.first : confirming.later);
  let cursor = current;
  for (const [nth, id] of newest.entries()) {
    if (cursor !== null && id <= cursor) continue;
    if (isLeap(cursor ?? 0n, id) && !(isConfirmed && nth < close)) break;
    cursor = id;
  }
  return cursor;
}

const isLeap = (from: bigint, to: bigint): boolean => to > from * 2n + usualLeap;

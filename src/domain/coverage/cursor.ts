// How far a live sweep may say that it has come. A cursor that is too low costs a few rows read again; one that is too high
// hides every later application. Knows ids only: the lag window is counted by the database's clock.

/** Ids of one board rise from one sequence; nothing real doubles it between two neighbours. */
const usualLeap = 1_000_000n;

/** The cursor after these ids are committed: the largest of them, but a lone id far beyond all others does not move it. */
export function toCursor(current: bigint | null, committed: readonly bigint[]): bigint | null {
  let cursor = current;
  const ids = [...new Set(committed)].filter((id) => cursor === null || id > cursor).sort((a, b) => (a < b ? -1 : 1));
  for (const [index, id] of ids.entries()) {
    const isLeap = id > (cursor ?? 0n) * 2n + usualLeap;
    // A second id beyond the leap confirms it.
    if (isLeap && index === ids.length - 1) break;
    cursor = id;
  }
  return cursor;
}

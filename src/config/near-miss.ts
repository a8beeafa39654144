// Finds variables that were probably meant to be a setting: misspelt, or in the wrong case.
// Compares by edit distance alone and ignores short names, since the environment holds other programs' variables too.

/** The known name that `name` was probably meant to be, if any. */
export function findNearMiss(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toUpperCase();
  let nearest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    // Below eight letters foreign names are too close: RELEASE and LEASE, HOSTS and HOST.
    const limit = candidate.length < 8 ? -1 : candidate.length < 10 ? 1 : 2;
    if (Math.abs(candidate.length - wanted.length) > limit) continue;
    const distance = toDistance(wanted, candidate);
    if (distance <= limit && distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** Edits between two texts: a letter added, dropped or replaced, or two neighbours swapped. */
function toDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current[column] = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, previous] = [previous, current];
  }
  return previous[b.length] ?? 0;
}

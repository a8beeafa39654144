// In which order the rows of pages come, by counting neighbours.

/** Adjacent pairs in which pages rose and fell. */
export interface Pairs {
  readonly rising: number;
  readonly falling: number;
}

export type Direction = 'ascending' | 'descending' | 'mixed';

/** Fewer pairs than these are chance, not order. */
export const fewestPairs = 10;

/** The order in which pages came, by three pairs in four. */
export function directionOf({ rising, falling }: Pairs): Direction {
  const pairs = rising + falling;
  if (rising * 4 > pairs * 3) return 'ascending';
  return falling * 4 > pairs * 3 ? 'descending' : 'mixed';
}

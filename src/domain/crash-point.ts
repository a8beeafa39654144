// Named moments at which a test may end or stop the process, by the task they belong to. Inert unless a test arms one.
// The list is the harness's too: a moment that no run ever reaches is found by its name.

/** Every moment, in the order in which its task passes them. */
export const crashPoints = {
  /** Before each statement of a migration. */
  migration: ['migrating'],
  /** A page is compared with what is held; written and not committed; committed, and nobody told. */
  page: ['pageCompared', 'pageWritten', 'pageCommitted'],
  download: ['claimed', 'fetched', 'intended', 'put', 'completed'],
  /** The rows are gone and it is not committed; committed, the files lie there still; these are deleted and their rows are not; what
   *  ran at the time is waited for; the second look is over, and nobody told. */
  erasure: ['erasureWritten', 'erasureBegun', 'erasureDeleted', 'erasureWaiting', 'erasureLooked'],
  /** Orphans are marked; their bytes are deleted and their rows are not; both are. */
  collection: ['orphansMarked', 'orphansDeleted', 'orphansCollected'],
} as const;

export type CrashPoint = (typeof crashPoints)[keyof typeof crashPoints][number];

/** Called at each moment with its name. */
export type PassCrashPoint = (name: CrashPoint) => void;

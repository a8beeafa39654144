// Named points at which a test may end or stop the process, grouped by task. Inert unless a test arms one.
// The test harness reads this list as well, so that it finds points that no run ever reaches.

export const crashPoints = {
  /** Before each statement of a migration. */
  migration: ['migrating'],
  /** In order: the page is compared with the stored rows; written but not committed; committed but not yet reported to the caller. */
  page: ['pageCompared', 'pageWritten', 'pageCommitted'],
  download: ['claimed', 'fetched', 'intended', 'put', 'completed'],
  /** In order: the rows are deleted but not committed; committed, with the files still in the store; files deleted but not their rows;
   *  closed but not yet reported to the caller. */
  erasure: ['erasureWritten', 'erasureBegun', 'erasureDeleted', 'erasureClosed'],
  /** In order: orphans are marked; their bytes are deleted but not their rows; both are deleted. */
  collection: ['orphansMarked', 'orphansDeleted', 'orphansCollected'],
  /** An endpoint has answered a message, and its position is not yet written. */
  webhook: ['webhookAnswered'],
  /** In order: a file is written; all files are; the manifest is written, but no pointer names it; the pointer does, and what expired is
   *  there; an erasure has deleted that, and its job does not know. */
  extract: ['extractPut', 'extractWritten', 'extractDescribed', 'extractPublished', 'extractErased'],
} as const;

export type CrashPoint = (typeof crashPoints)[keyof typeof crashPoints][number];

export type PassCrashPoint = (name: CrashPoint) => void;

// Named points at which a test may end or stop the process. Inert unless a test arms one. The harness finds points that no run reaches.

export const crashPoints = {
  /** Before each statement of a migration. */
  migration: ['migrating'],
  /** In order: the page is compared with the stored rows; written but not committed; committed but not yet reported to the caller. */
  page: ['pageCompared', 'pageWritten', 'pageCommitted'],
  download: ['claimed', 'fetched', 'intended', 'put', 'completed'],
  /** In order: rows are deleted but not committed; committed, with the files in the store; files deleted, not their rows; not reported. */
  erasure: ['erasureWritten', 'erasureBegun', 'erasureDeleted', 'erasureClosed'],
  /** In order: orphans are marked; their bytes are deleted but not their rows; both are deleted. */
  collection: ['orphansMarked', 'orphansDeleted', 'orphansCollected'],
  /** An endpoint has answered a message, and its position is not yet written. */
  webhook: ['webhookAnswered'],
  /** In order: a file is written; all are; the manifest is, but no pointer; what expired is still there; an erasure has deleted that. */
  extract: ['extractPut', 'extractWritten', 'extractDescribed', 'extractPublished', 'extractErased'],
} as const;

export type CrashPoint = (typeof crashPoints)[keyof typeof crashPoints][number];

export type PassCrashPoint = (name: CrashPoint) => void;

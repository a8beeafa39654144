// The exit codes that scripts and supervisors rely on: one table for the whole CLI.

/** What a command's end means. */
export const exitCodes = {
  done: 0,
  unexpected: 1,
  /** Usage or configuration. */
  usage: 2,
  /** Finished, but some items failed, or coverage of the account is unproven or in doubt. */
  incomplete: 3,
  /** Credentials refused, or of another advertiser. */
  refused: 4,
  /** Temporary or interrupted: try again. */
  temporary: 5,
  /** The same lane is held by a live process. */
  held: 6,
  schema: 7,
  /** Stale or unhealthy. */
  unhealthy: 8,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

// The exit codes that scripts and supervisors rely on: one table for the whole CLI.

export const exitCodes = {
  done: 0,
  unexpected: 1,
  /** Usage or configuration. */
  usage: 2,
  /** Finished, but some items failed, or coverage of the account is unproven or in doubt. */
  incomplete: 3,
  /** Credentials refused, or they belong to another advertiser. */
  refused: 4,
  /** A temporary failure or an interruption: run it again. */
  temporary: 5,
  /** Another live process holds the same lane. */
  held: 6,
  schema: 7,
  /** Stale or unhealthy. */
  unhealthy: 8,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

// What the work of an account waits for.

import type { Dependency } from './trouble.ts';

/** The work that waits. Each kind goes on while the others wait. */
export type WaitingTask = 'reading' | 'downloads' | 'deletion';

export interface Wait {
  /** The account, by its configured name. */
  readonly advertiser: string;
  readonly task: WaitingTask;
  readonly dependency: Dependency;
  /** The failure in words: host, port and error code, never a payload. */
  readonly reason: string;
  readonly since: Date;
}

// What a worker waits for: one value, told by its own page and probes at once, and by every other process through the database.

import type { Dependency } from './trouble.ts';

export interface Wait {
  readonly worker: string;
  readonly dependency: Dependency;
  /** What the worker met, in words: host, port and error code, never a payload. */
  readonly reason: string;
  /** The accounts that wait, by their configured names; empty where all do. */
  readonly advertisers: readonly string[];
  readonly since: Date;
}

/** How the reason of a wait begins where infected bytes cannot be deleted. Downloads may go on meanwhile. */
export const undeleted = 'Infected files are not deleted.';

// What a worker waits for. Its own page and probes show it at once; other processes read it from the database.

import type { Dependency } from './trouble.ts';

export interface Wait {
  readonly worker: string;
  readonly dependency: Dependency;
  /** The failure in words: host, port and error code, never a payload. */
  readonly reason: string;
  /** The accounts that wait, by their configured names; empty if all do. */
  readonly advertisers: readonly string[];
  readonly since: Date;
}

/** The reason of a wait begins with this where infected bytes cannot be deleted. Downloads may continue meanwhile. */
export const undeleted = 'Infected files are not deleted.';

// What happened in the last day, hour by hour, and the recent sweeps. It is computed from existing rows and names no person.
import type { SweepFacts } from './advertiser-status.ts';

/** All advertisers of a database together. */
export interface History {
  /** The last 24 hours, the empty ones too; the last one is still running. */
  readonly hours: readonly Hour[];
  /** Newest first, a few of them: rechecks, backfills and cross-checks, and polls that left a doubt. */
  readonly recentSweeps: readonly RecentSweep[];
}

export interface Hour {
  /** A whole hour of UTC. */
  readonly startAt: Date;
  /** Applications submitted in this hour, by the source's clock. */
  readonly applications: number;
  /**
   * Within this time after their submission 95 % of the stored applications of this hour were stored. Those submitted before Intake knew
   * their advertiser are left out: their delay says nothing about Intake. Null when none is left.
   */
  readonly delayMs: number | null;
}

export interface RecentSweep extends SweepFacts {
  readonly advertiser: string;
  /** True for the oldest sweep of this advertiser. */
  readonly isFirst: boolean;
}

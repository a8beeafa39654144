// What happened over a period, in equal steps, and the recent sweeps. It is computed from existing rows and names no person.
import type { SweepFacts } from './advertiser-status.ts';

export const periods = ['24h', '30d'] as const;

/** The period of a chart: a day by the hour, or thirty days by the day. */
export type Period = (typeof periods)[number];

/** How each period is divided. Steps begin at whole hours and days of UTC; the last step is still running. */
export const steps: Readonly<Record<Period, { readonly stepMs: number; readonly count: number }>> = {
  '24h': { stepMs: 3_600_000, count: 24 },
  '30d': { stepMs: 86_400_000, count: 30 },
};

/** All advertisers of a database together, one entry per step; empty steps are included. */
export interface History {
  readonly period: Period;
  readonly steps: readonly Step[];
  /** Newest first, a few of them: rechecks, backfills and cross-checks, and polls that left a doubt. */
  readonly recentSweeps: readonly RecentSweep[];
}

export interface Step {
  readonly startAt: Date;
  /** Applications submitted in this step, by the source's clock. */
  readonly applications: number;
  /**
   * Within this time after their submission 95 % of the stored applications of this step were stored. Those submitted before Intake knew
   * their advertiser are left out: their delay says nothing about Intake. Null when none is left.
   */
  readonly delayMs: number | null;
}

export interface RecentSweep extends SweepFacts {
  readonly advertiser: string;
  /** True for the oldest sweep of this advertiser. */
  readonly isFirst: boolean;
}

export function toStepStarts(period: Period, now: Date): Date[] {
  const { stepMs, count } = steps[period];
  const last = Math.floor(now.getTime() / stepMs) * stepMs;
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * stepMs));
}

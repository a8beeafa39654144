// What happened over a period, in equal steps, and the sweeps behind it. Made of rows that exist anyway; no person is in it.
import type { SweepFacts } from './status.ts';

export const periods = ['24h', '30d'] as const;

/** What a chart looks back on: a day by the hour, or thirty days by the day. */
export type Period = (typeof periods)[number];

/** How each period is cut; steps begin at whole hours and days of UTC, the last one is still running. */
export const steps: Readonly<Record<Period, { readonly stepMs: number; readonly count: number }>> = {
  '24h': { stepMs: 3_600_000, count: 24 },
  '30d': { stepMs: 86_400_000, count: 30 },
};

/** All advertisers of a database together, one entry per step, none left out. */
export interface History {
  readonly period: Period;
  readonly steps: readonly Step[];
  readonly polls: PollSummary;
  /** Newest first: first sweeps, rechecks and backfills, and the polls that left a doubt. */
  readonly recentSweeps: readonly RecentSweep[];
}

/** The polls of a period, all advertisers together. A poll that finds nothing leaves no row, so their number and requests are not known. */
export interface PollSummary {
  /** Polls that brought something new or changed, and what they brought. */
  readonly fruitful: number;
  readonly added: number;
  readonly changed: number;
  /** Polls that left a doubt. */
  readonly doubtful: number;
}

export interface Step {
  readonly startAt: Date;
  /** Applications made in this step, by the source's clock. */
  readonly applications: number;
  /** From submission to storage, of what was stored in this step and submitted since its advertiser is read; null when nothing was. */
  readonly delayP50Ms: number | null;
  readonly delayP95Ms: number | null;
}

export interface RecentSweep extends SweepFacts {
  readonly advertiser: string;
  /** True where no sweep of this advertiser is older. */
  readonly isFirst: boolean;
}

/** The starts of a period's steps, oldest first. */
export function toStepStarts(period: Period, now: Date): Date[] {
  const { stepMs, count } = steps[period];
  const last = Math.floor(now.getTime() / stepMs) * stepMs;
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * stepMs));
}

// What happened over a while, in equal steps: the words behind the charts. Made of rows that exist anyway; no person is in it.
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
  /** The newest sweeps, newest first. */
  readonly recentSweeps: readonly RecentSweep[];
}

export interface Step {
  readonly startAt: Date;
  /** Applications made in this step, by the source's clock. */
  readonly applications: number;
  /** From submission to storage, of what was stored in this step and submitted since its advertiser is read; null when nothing was. */
  readonly delayP50Ms: number | null;
  readonly delayP95Ms: number | null;
  /** Files whose bytes were stored and verified. */
  readonly files: number;
  readonly fileBytes: number;
  /** Sweeps that were begun, and of these those that ended with nothing left open. */
  readonly sweeps: number;
  readonly closedSweeps: number;
  /** How long those that ended took; null when none did. */
  readonly sweepP50Ms: number | null;
  readonly sweepP95Ms: number | null;
}

export interface RecentSweep extends SweepFacts {
  readonly advertiser: string;
}

/** The starts of a period's steps, oldest first. */
export function toStepStarts(period: Period, now: Date): Date[] {
  const { stepMs, count } = steps[period];
  const last = Math.floor(now.getTime() / stepMs) * stepMs;
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * stepMs));
}

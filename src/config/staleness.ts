// When silence of the reader itself is a fault: derived from the schedule it was given, so that no second setting can contradict it.
import { createTask } from 'node-cron';

/** Enough runs to meet the longest pause of a schedule that rests at night and at weekends (measured: 1,000 take 80 ms). */
const runs = 1_000;
const graceMs = 600_000;

/** Twice the schedule's longest pause and ten minutes; null for a schedule that is off. */
export function toStaleAfterMs(schedule: string | null): number | null {
  if (schedule === null) return null;
  const times = createTask(schedule, () => {})
    .getNextRuns(runs)
    .map((run) => run.getTime());
  const longestMs = times.reduce((longest, at, index) => Math.max(longest, at - (times[index - 1] ?? at)), 0);
  return 2 * longestMs + graceMs;
}

/** For rechecks that a person starts. */
const unscheduledProofMs = 14 * 86_400_000;

/** How old a proof may be: as late as a poll may be, by the schedule of rechecks; two weeks where that is off. */
export function toProofLimit(schedule: string | null): { readonly ms: number; readonly isScheduled: boolean } {
  return { ms: toStaleAfterMs(schedule) ?? unscheduledProofMs, isScheduled: schedule !== null };
}

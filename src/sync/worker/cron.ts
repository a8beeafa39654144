// Runs work by cron schedules. If the time of a run passed while the process was busy, suspended or asleep, the run starts once, as soon as
// possible. If the clock is set back, the schedules do not wait until it has caught up.
import { createTask } from 'node-cron';
import type { WorkerLog } from './pass.ts';

/** When to run, as cron text (null is never), and what to start. */
export type Schedule = readonly [when: string | null, start: () => void];

/** Starts every schedule; returns what stops them. */
export function startSchedules(schedules: readonly Schedule[], log: WorkerLog): () => void {
  const stops = schedules.flatMap(([when, start]) => (when === null ? [] : [startSchedule(when, start, log)]));
  return () => {
    for (const stop of stops) stop();
  };
}

/** A timer does not notice that the machine slept or that the clock was set, so the clock is looked at this often. */
const lookEveryMs = 60_000;
/** Log runs that start later than this. A delay of a second or two is not worth a warning. */
const lateMs = 10_000;

/**
 * Each look counts the next run from its own time. node-cron only parses: its timer goes through every run that was missed, which takes 43
 * s when a clock jumps by two days under a schedule of seconds, and after a clock was set back it waits for the date that it had.
 */
function startSchedule(when: string, start: () => void, log: WorkerLog) {
  const cron = createTask(when, () => {});
  let [due, lookAt] = [findNext(), 0];
  let timer = wait();

  function findNext(): number {
    return cron.getNextRuns(1)[0]?.getTime() ?? Number.POSITIVE_INFINITY;
  }

  function wait(): NodeJS.Timeout {
    lookAt = Math.min(due, Date.now() + lookEveryMs);
    return setTimeout(look, Math.max(0, lookAt - Date.now()));
  }

  function look(): void {
    const now = Date.now();
    const next = findNext();
    const byMs = now - due;
    if (byMs >= lateMs) log.warn({ schedule: when, byMs }, 'scheduled run late: the process was busy or paused');
    if (byMs < 0 && next < due)
      log.warn({ byMs: lookAt - now, schedule: when }, 'the clock was set back; next run moved ahead');
    due = next;
    timer = wait();
    if (byMs >= 0) start();
  }

  return () => clearTimeout(timer);
}

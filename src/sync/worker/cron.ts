// Runs work by cron schedules. If the time of a run passed while the process was busy, suspended or asleep, the run starts once, as soon as
// possible. If the clock is set back, the schedules do not wait until it has caught up. Knows nothing about what a run does.
import { type ScheduledTask, schedule, type TaskContext } from 'node-cron';
import type { WorkerLog } from './download-loop.ts';

/** When to run, as cron text (null is never), and what to run. */
export type Schedule = readonly [when: string | null, take: () => unknown];

/** Starts every schedule. Runs of one schedule do not overlap. */
export function startSchedules(schedules: readonly Schedule[], log: WorkerLog) {
  const tasks = schedules.flatMap(([when, take]) => (when === null ? [] : [toTask(when, take, log)]));
  let offsetMs = toOffsetMs();
  const watching = setInterval(() => {
    const before = offsetMs;
    offsetMs = toOffsetMs();
    if (before - offsetMs < setBackMs) return;
    log.warn({ byMs: Math.round(before - offsetMs) }, 'the clock was set back; schedules restarted');
    for (const task of tasks) {
      void task.stop();
      void task.start();
    }
  }, lookEveryMs);
  return {
    /** Prevents further runs; does not wait for those in progress. */
    async stop(): Promise<void> {
      clearInterval(watching);
      for (const task of tasks) await task.destroy();
    },
  };
}

/** Schedules restart when the clock was set back by this much. node-cron keeps its next date: with a clock a day behind, it waits a day. */
const setBackMs = 30_000;
const lookEveryMs = 60_000;
/** Log runs that start later than this. A delay of a second or two is not worth a warning. */
const lateMs = 10_000;

function toTask(when: string, take: () => unknown, log: WorkerLog): ScheduledTask {
  async function runOnTime({ date, triggeredAt }: TaskContext): Promise<void> {
    const byMs = triggeredAt.getTime() - date.getTime();
    if (byMs >= lateMs) log.warn({ schedule: when, byMs }, 'scheduled run late: the process was busy or paused');
    await take();
  }
  return schedule(when, runOnTime, {
    noOverlap: true,
    // By default node-cron skips a run that is more than a second late, although the next one may be a day away.
    missedExecutionTolerance: Number.POSITIVE_INFINITY,
    // node-cron would log a line for each second of a pause. `runOnTime` logs the delay once.
    suppressMissedWarning: true,
    logger: toCronLog(when, log),
  });
}

/** Sends node-cron's messages to the worker's log, errors without their text. By default both go to the console. */
function toCronLog(when: string, log: WorkerLog) {
  const tell = (level: keyof WorkerLog) => (said: string | Error, error?: Error) => {
    const err = said instanceof Error ? said : error;
    log[level]({ schedule: when, ...(err && { err }) }, said instanceof Error ? 'scheduled run failed' : said);
  };
  return { info: tell('info'), warn: tell('warn'), error: tell('warn'), debug: tell('debug') };
}

/** The difference between the system clock and the monotonic clock. It shrinks when the system clock is set back. */
function toOffsetMs(): number {
  return Date.now() - performance.now();
}

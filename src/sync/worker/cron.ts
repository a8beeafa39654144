// Runs work by cron schedules. A run whose time passed while the process was busy, paused or asleep starts once as soon as it can, and a
// clock that is set back does not stop the schedules until it is level again. Knows nothing of what a run does.
import { type ScheduledTask, schedule, type TaskContext } from 'node-cron';
import type { WorkerLog } from './download-loop.ts';

/** When, as cron text (null is never), and what. */
export type Schedule = readonly [when: string | null, take: () => unknown];

export interface Schedules {
  /** No run begins any more; running ones are not waited for. */
  stop(): Promise<void>;
}

/** Starts every schedule. Runs of one schedule do not overlap. */
export function startSchedules(schedules: readonly Schedule[], log: WorkerLog): Schedules {
  const tasks = schedules.flatMap(([when, take]) => (when === null ? [] : [toTask(when, take, log)]));
  let offsetMs = toOffsetMs();
  const watching = setInterval(() => {
    const before = offsetMs;
    offsetMs = toOffsetMs();
    if (before - offsetMs < setBackMs) return;
    log.warn({ byMs: Math.round(before - offsetMs) }, 'the clock was set back; schedules begin anew');
    for (const task of tasks) {
      void task.stop();
      void task.start();
    }
  }, lookEveryMs);
  return {
    async stop() {
      clearInterval(watching);
      for (const task of tasks) await task.destroy();
    },
  };
}

/** node-cron keeps the moment it waits for: with a clock that is a day behind it would wait for a day. */
const setBackMs = 30_000;
const lookEveryMs = 60_000;
/** Said from here on: a second or two are nothing that anybody could mend. */
const lateMs = 10_000;

function toTask(when: string, take: () => unknown, log: WorkerLog): ScheduledTask {
  async function runOnTime({ date, triggeredAt }: TaskContext): Promise<void> {
    const byMs = triggeredAt.getTime() - date.getTime();
    if (byMs >= lateMs) log.warn({ schedule: when, byMs }, 'scheduled run late: the process was busy or paused');
    await take();
  }
  return schedule(when, runOnTime, {
    noOverlap: true,
    // By default a run that is more than a second late is left out, though the next one may be a day away.
    missedExecutionTolerance: Number.POSITIVE_INFINITY,
    // One line for each second of a pause would follow; runOnTime has said it.
    suppressMissedWarning: true,
    logger: toCronLog(when, log),
  });
}

/** node-cron's own words go where ours go, and errors without their text: by default both go to the console. */
function toCronLog(when: string, log: WorkerLog) {
  const tell = (level: keyof WorkerLog) => (said: string | Error, error?: Error) => {
    const err = said instanceof Error ? said : error;
    log[level]({ schedule: when, ...(err && { err }) }, said instanceof Error ? 'scheduled run failed' : said);
  };
  return { info: tell('info'), warn: tell('warn'), error: tell('warn'), debug: tell('debug') };
}

/** How far the clock of the day is from one that nobody sets. */
function toOffsetMs(): number {
  return Date.now() - performance.now();
}

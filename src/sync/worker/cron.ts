// Turns by the clock. A turn whose moment passed while the process was busy, paused or asleep is taken once as soon as it can be, and a
// clock that is set back does not make everybody wait until it is level again. Knows nothing of what a turn does.
import { type ScheduledTask, schedule, type TaskContext } from 'node-cron';
import type { WorkerLog } from './download-loop.ts';

/** When, as cron text (null is never), and what. */
export type Turn = readonly [when: string | null, take: () => unknown];

export interface Schedules {
  /** No turn begins any more; those under way are not waited for. */
  stop(): Promise<void>;
}

/** Starts every schedule. Of one schedule a turn is taken at a time. */
export function startSchedules(turns: readonly Turn[], log: WorkerLog): Schedules {
  const tasks = turns.flatMap(([when, take]) => (when === null ? [] : [toTask(when, take, log)]));
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
  async function takeSlot({ date, triggeredAt }: TaskContext): Promise<void> {
    const byMs = triggeredAt.getTime() - date.getTime();
    if (byMs >= lateMs) log.warn({ schedule: when, byMs }, 'a turn comes late: the process was busy or paused');
    await take();
  }
  return schedule(when, takeSlot, {
    noOverlap: true,
    // By default a turn that is more than a second late is left out, though the next one may be a day away.
    missedExecutionTolerance: Number.POSITIVE_INFINITY,
    // One line for each second of a pause would follow; takeTurn has said it.
    suppressMissedWarning: true,
    logger: toCronLog(when, log),
  });
}

/** node-cron's own words go where ours go, and errors without their text: by default both go to the console. */
function toCronLog(when: string, log: WorkerLog) {
  const tell = (level: keyof WorkerLog) => (said: string | Error, error?: Error) => {
    const err = said instanceof Error ? said : error;
    log[level]({ schedule: when, ...(err && { err }) }, said instanceof Error ? 'a turn failed' : said);
  };
  return { info: tell('info'), warn: tell('warn'), error: tell('warn'), debug: tell('debug') };
}

/** How far the clock of the day is from one that nobody sets. */
function toOffsetMs(): number {
  return Date.now() - performance.now();
}

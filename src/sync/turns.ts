// Turns by the clock. One that is missed because the machine was busy, or is still under way when the next is due, is said as everything
// else is: a line of our log, not one of the scheduler's own between them.
import { schedule as cron, type ScheduledTask } from 'node-cron';
import type { WorkerLog } from './draining.ts';

/** Runs at every turn of the cron text, never twice at once; null when there is no text. */
export function startTurns(text: string | null, run: () => unknown, log: WorkerLog): ScheduledTask | null {
  if (text === null) return null;
  const tell = (reason: string | Error) => log.debug({ schedule: text }, `a turn did not run: ${toFirstLine(reason)}`);
  const logger = {
    info: tell,
    warn: tell,
    debug: tell,
    error: (err: string | Error) => log.warn({ schedule: text, err }, 'a turn failed'),
  };
  return cron(text, async () => void (await run()), { noOverlap: true, logger });
}

function toFirstLine(reason: string | Error): string {
  return String(reason).split('\n', 1)[0] ?? '';
}

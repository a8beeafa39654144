// `intake worker`: the long-running worker, the container's default. It ends well with SIGTERM; a second signal ends it at once.
import { command } from './command.ts';
import { createCrashPoint } from './crash-point.ts';
import { exitCodes } from './exit-codes.ts';
import { Failure } from './failure.ts';
import { withinGrace } from './grace.ts';

/** A process in which nothing came to an end for so long, and no timer runs, is of no use to anybody. */
const stuckMs = 600_000;

/** Supervisors wait half a minute before they kill; two seconds of it are for handles that stay open. */
const graceMs = 21_000;

export const worker = command({
  name: 'worker',
  summary: 'keep every advertiser up to date until it is stopped',
  examples: [['intake worker', 'polls, rechecks and fetches files by the schedules of the configuration']],
  async run({ env, signal, terminal }) {
    const { loadConfig } = await import('../config.ts');
    const config = loadConfig(env, { needs: ['database', 'source', 'sync', 'privacy', 'blobs'] });
    const { createLog } = await import('../log.ts');
    const log = await createLog(config.log);
    for (const warning of config.warnings) log.warn({}, warning);
    const stuck = new AbortController();
    const ending = AbortSignal.any([signal, stuck.signal]);
    let watch: NodeJS.Timeout | undefined;
    const { runWorker } = await import('../app/worker.ts');
    try {
      const work = runWorker(config, {
        log,
        crashPoint: createCrashPoint(env.INTAKE_CRASH_AT),
        signal: ending,
        onStart(running) {
          watch = setInterval(() => {
            if (running.facts().idleMs > stuckMs) stuck.abort();
          }, 30_000);
        },
      });
      if ((await withinGrace(work, ending, graceMs)) === 'overdue') {
        log.warn({}, 'not everything could be given back in time; it lapses by itself');
      }
    } catch (error) {
      // Stopped while it still waited for its database: nothing was begun, nothing has to be given back.
      if (!signal.aborted) throw error;
    } finally {
      clearInterval(watch);
    }
    if (stuck.signal.aborted) {
      throw new Failure(exitCodes.unhealthy, 'Nothing came to an end for ten minutes.', {
        kept: 'Everything committed so far.',
        next: 'The supervisor starts it again; the log says what it did last.',
      });
    }
    terminal.event({ worker: 'ended' });
    return exitCodes.done;
  },
});

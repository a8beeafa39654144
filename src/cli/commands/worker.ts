// `intake worker`: the long-running worker, the default command of the image. SIGTERM shuts it down; a second signal ends it at once.
import { setTimeout as sleep } from 'node:timers/promises';
import { command } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { createCrashPoint, loadCommandConfig } from '../open.ts';

/** The worker finishes or releases everything this long after a signal; what it does not release expires. Supervisors wait 25 s or more. */
const endMs = 20_000;

export const worker = createWorkerCommand();

/** The command; a test may set shorter limits. */
export function createWorkerCommand({ stuckMs, loopMs }: { readonly stuckMs?: number; readonly loopMs?: number } = {}) {
  return command({
    name: 'worker',
    summary: 'keep every advertiser up to date until it is stopped',
    examples: [['intake worker', 'polls, rechecks and downloads files by the configured schedules']],
    async run({ env, signal, terminal }) {
      const needs = ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'webhooks', 'extract'] as const;
      const config = await loadCommandConfig(env, { needs });
      const { createLog } = await import('../../log.ts');
      const log = await createLog(config.log);
      for (const warning of config.warnings) log.warn({}, warning);
      const { runWorker } = await import('../../app/worker.ts');
      const running = runWorker(config, {
        ...{ log, signal, crashPoint: createCrashPoint(env.INTAKE_CRASH_AT) },
        ...(stuckMs && { stuckMs }),
        ending: { exitCode: exitCodes.unhealthy, ...(loopMs && { loopMs }) },
      }).then(
        () => 'ended' as const,
        (error: unknown) => {
          // Stopped while it still waited for its database: nothing was started, nothing has to be released.
          if (signal.aborted) return 'ended' as const;
          throw error;
        },
      );
      const end = await Promise.race([running, overstay(signal)]);
      if (end === 'late') log.warn({}, 'shutdown took too long; leases and claims expire after LEASE');
      terminal.event({ worker: end });
      return exitCodes.done;
    },
  });
}

async function overstay(signal: AbortSignal): Promise<'late'> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  return await sleep(endMs, 'late' as const, { ref: false });
}

// `intake worker`, the default command of the image, and `intake prefill`: processes that run until SIGTERM. A second signal ends them at once.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config.ts';
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
      const config = await loadCommandConfig(env, needs);
      const log = await openLog(config);
      const { runWorker } = await import('../../app/worker.ts');
      const running = runWorker(config, {
        ...{ log, signal, crashPoint: createCrashPoint(env.INTAKE_CRASH_AT) },
        ...(stuckMs && { stuckMs }),
        ending: { exitCode: exitCodes.unhealthy, ...(loopMs && { loopMs }) },
      });
      const end = await Promise.race([untilEnded(running, signal), overstay(signal)]);
      if (end === 'late') log.warn({}, 'shutdown took too long; leases and claims expire after LEASE');
      terminal.event({ worker: end });
      return exitCodes.done;
    },
  });
}

export const prefill = command({
  name: 'prefill',
  summary: 'serve the prefill routes to candidates until it is stopped',
  examples: [['intake prefill', 'listens on HOST and PORT; a worker runs beside it']],
  async run({ env, signal, terminal }) {
    const config = await loadCommandConfig(env, ['database', 'privacy', 'blobs', 'prefill']);
    const log = await openLog(config);
    const { runPrefill } = await import('../../app/prefill.ts');
    const end = await untilEnded(runPrefill(config, log, { exitCode: exitCodes.unhealthy }, signal), signal);
    terminal.event({ prefill: end });
    return exitCodes.done;
  },
});

async function openLog({ log: options, warnings }: Config<never>) {
  const { createLog } = await import('../../log.ts');
  const log = await createLog(options);
  for (const warning of warnings) log.warn({}, warning);
  return log;
}

/** Stopped while it still waited for its database: nothing was started, nothing has to be released. */
export async function untilEnded(running: Promise<void>, signal: AbortSignal): Promise<'ended'> {
  await running.catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return 'ended';
}

async function overstay(signal: AbortSignal): Promise<'late'> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  return await sleep(endMs, 'late' as const, { ref: false });
}

// `intake prefill`: the candidate routes on the public port, a process of its own beside the workers. SIGTERM ends it.
import { command } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

export const prefill = command({
  name: 'prefill',
  summary: 'serve the prefill routes to candidates until it is stopped',
  examples: [['intake prefill', 'listens on HOST and PORT; a worker runs beside it']],
  async run({ env, signal, terminal }) {
    const config = await loadCommandConfig(env, { needs: ['database', 'privacy', 'blobs', 'prefill'] });
    if (config.prefill === null) {
      const next = 'Set AUTH_URL and the settings beside it: docs/prefill.md.';
      throw new Misuse('Prefill is off: none of its settings is set.', next);
    }
    const { createLog } = await import('../../log.ts');
    const log = await createLog(config.log);
    for (const warning of config.warnings) log.warn({}, warning);
    const { runPrefill } = await import('../../app/prefill.ts');
    await runPrefill(config, log, { exitCode: exitCodes.unhealthy }, signal).catch((error: unknown) => {
      // Stopped while it still waited for its database.
      if (!signal.aborted) throw error;
    });
    terminal.event({ prefill: 'ended' });
    return exitCodes.done;
  },
});

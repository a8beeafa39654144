// `intake status`: one value, printed for a person or as JSON.
import type { Status } from '../domain/status.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';

export const status = command({
  name: 'status',
  summary: 'show advertisers, coverage, cursor, queue and problems',
  examples: [
    ['intake status', 'what is stored, how far it is read, and what needs a look'],
    ['intake status --json', 'the same for a program'],
  ],
  async run({ env, signal, terminal }) {
    const { loadConfig } = await import('../config.ts');
    const config = loadConfig(env, { needs: ['database', 'privacy'] });
    const { loadStatus } = await import('../app.ts');
    const value = await loadStatus(config, signal);
    const { renderStatus } = await import('./render-status.ts');
    terminal.result(toJsonStatus(value), () => renderStatus(value));
    return exitCodes.done;
  },
});

/** For programs: without the arrival times, which only serve to find a silence. */
function toJsonStatus(value: Status): object {
  return { ...value, advertisers: value.advertisers.map(({ submittedAt: _, ...one }) => one) };
}

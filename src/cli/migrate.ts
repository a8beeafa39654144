// `intake migrate`: brings the schema up to date. Safe to run at any time and from several places at once.
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { loadCommandConfig } from './load-config.ts';

export const migrate = command({
  name: 'migrate',
  summary: 'bring the database schema up to date',
  examples: [['intake migrate', 'apply missing migrations; does nothing when the schema is up to date']],
  async run({ env, signal, terminal }) {
    const config = await loadCommandConfig(env, { needs: ['database'] });
    const { migrateDatabase } = await import('../app.ts');
    await migrateDatabase(config, signal);
    terminal.result({ schema: 'current' }, () => 'The schema is up to date.');
    return exitCodes.done;
  },
});

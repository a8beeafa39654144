// `intake migrate`: brings the schema up to date. Safe to run at any time and from several places at once.
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { Misuse } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';

interface MigrateOptions {
  readonly print: boolean;
  readonly dryRun: boolean;
}

export const migrate = command<MigrateOptions>({
  name: 'migrate',
  summary: 'bring the database schema up to date',
  examples: [
    ['intake migrate', 'apply missing migrations; does nothing when the schema is up to date'],
    ['intake migrate --print', 'show the SQL of the missing migrations and change nothing'],
    ['intake migrate --dry-run', 'run them and roll them back'],
  ],
  shape: (shaped) =>
    shaped
      .option('--print', 'print the missing migrations instead of running them', false)
      .option('--dry-run', 'run the missing migrations in one transaction and roll it back', false),
  async run({ env, signal, terminal }, { print, dryRun }) {
    if (print && dryRun) throw new Misuse('--print and --dry-run exclude each other.');
    const config = await loadCommandConfig(env, { needs: ['database'] });
    const { loadPendingMigrations, migrateDatabase, tryMigrations } = await import('../app.ts');
    if (print) {
      const pending = await loadPendingMigrations(config);
      terminal.result({ pending }, () =>
        pending.length === 0 ? '-- The schema is up to date.' : pending.map(renderMigration).join('\n'),
      );
      return exitCodes.done;
    }
    const onWait = (message: string) => terminal.note(message);
    if (dryRun) {
      const migrations = await tryMigrations(config, { signal, onWait });
      terminal.result({ migrations }, () =>
        migrations.length === 0
          ? 'The schema is up to date.'
          : `Ran and rolled back: ${migrations.join(', ')}. The schema is unchanged.`,
      );
      return exitCodes.done;
    }
    await migrateDatabase(config, { signal, onWait });
    terminal.result({ schema: 'current' }, () => 'The schema is up to date.');
    return exitCodes.done;
  },
});

function renderMigration({ name, statements }: { name: string; statements: readonly string[] }): string {
  return [`-- ${name}`, 'BEGIN;', ...statements, 'COMMIT;', ''].join('\n');
}

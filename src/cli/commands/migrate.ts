// `intake migrate`: brings the schema up to date. Safe to run at any time and from several places at once.
import type { Trouble } from '../../domain/trouble.ts';
import type { Migration } from '../../store/postgres/migration-files.ts';
import { command, flag } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

export const migrate = command({
  name: 'migrate',
  summary: 'bring the database schema up to date',
  examples: [
    ['intake migrate', 'apply missing migrations; does nothing when the schema is up to date'],
    ['intake migrate --print', 'show the SQL of the missing migrations and change nothing'],
    ['intake migrate --dry-run', 'run them and roll them back'],
    ['intake migrate --finish', 'end an upgrade: drop what only older versions needed; they cannot run any more'],
  ],
  options: {
    print: flag('print the missing migrations instead of running them'),
    dryRun: flag('run the missing migrations in one transaction and roll it back'),
    finish: flag('also those after which older versions cannot run; refused while one runs'),
  },
  async run({ env, signal, terminal }, { print, dryRun, finish }) {
    if (print && dryRun) throw new Misuse('--print and --dry-run exclude each other.');
    const config = await loadCommandConfig(env, { needs: ['database'] });
    const { openPlace } = await import('../../app/database.ts');
    const {
      loadApplied,
      migrate: applyMigrations,
      toPending,
    } = await import('../../store/postgres/apply-migrations.ts');
    const { openDatabase } = await import('../../store/postgres/database.ts');
    const { ensureSchema } = await import('../../store/postgres/migrations.ts');
    await using place = await openPlace(config);
    await using db = openDatabase({ url: place.url, role: 'migrate' });
    if (print) {
      const pending = toPending(await loadApplied(db), finish);
      terminal.result({ pending: pending.map(({ name, statements }) => ({ name, statements })) }, () =>
        pending.length === 0 ? '-- The schema is up to date.' : pending.map(renderMigration).join('\n'),
      );
      return exitCodes.done;
    }
    // Says which transaction keeps a migration from its lock.
    const onWait = (trouble: Trouble) => terminal.note(trouble.message);
    if (dryRun) {
      const migrations = await applyMigrations(place.directUrl, { dryRun, finish, signal, onWait });
      terminal.result({ migrations }, () =>
        migrations.length === 0
          ? 'The schema is up to date.'
          : `Ran and rolled back: ${migrations.join(', ')}. The schema is unchanged.`,
      );
      return exitCodes.done;
    }
    await ensureSchema(db, { directUrl: place.directUrl, signal, onWait, retryForMs: 0 });
    if (finish) await applyMigrations(place.directUrl, { finish, signal, onWait });
    const isFinished = toPending(await loadApplied(db), true).length === 0;
    terminal.result({ schema: 'current', finished: isFinished }, () =>
      isFinished
        ? 'The schema is up to date.'
        : 'The schema is up to date. Older versions may still run on it; once none does, `intake migrate --finish` drops what only they need.',
    );
    return exitCodes.done;
  },
});

function renderMigration({ name, statements, inTransaction }: Migration): string {
  const lines = inTransaction ? ['BEGIN;', ...statements, 'COMMIT;'] : statements;
  return [`-- ${name}`, ...lines, ''].join('\n');
}

// `intake migrate`: brings the schema up to date, at any time and from several places at once. `intake grants`: the SQL that gives every role
// the least privileges it needs.
import type { Trouble } from '../../domain/trouble.ts';
import type { Migration } from '../../store/postgres/migrations.ts';
import { command, flag, preset } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

export const migrate = command({
  name: 'migrate',
  summary: 'bring the database schema up to date',
  examples: [
    ['intake migrate', 'apply missing migrations; does nothing when the schema is up to date'],
    ['intake migrate --finish', 'end an upgrade: drop what only older versions needed; they cannot run any more'],
  ],
  options: {
    print: flag('print the missing migrations instead of running them'),
    dryRun: flag('run the missing migrations in one transaction and roll it back'),
    finish: flag('also those after which older versions cannot run; refused while one runs'),
  },
  async run({ env, signal, terminal }, { print, dryRun, finish }) {
    if (print && dryRun) throw new Misuse('--print and --dry-run exclude each other.');
    const config = await loadCommandConfig(env, ['database']);
    const { openPlace } = await import('../../app/database.ts');
    const { openDatabase } = await import('../../store/postgres/database.ts');
    const migrations = await import('../../store/postgres/migrations.ts');
    const { ensureSchema, loadApplied, lockTimeoutMs, migrate: apply, toPending } = migrations;
    await using place = await openPlace(config);
    await using db = openDatabase({ url: place.url, role: 'migrate' });
    // Says which transaction keeps a migration from its lock.
    const request = { signal, onWait: (trouble: Trouble) => terminal.note(trouble.message) };
    if (print) {
      const pending = toPending(await loadApplied(db), finish);
      terminal.result({ pending: pending.map(({ name, statements }) => ({ name, statements })) }, () =>
        pending.length === 0
          ? '-- The schema is up to date.'
          : pending.map((one) => renderMigration(one, lockTimeoutMs)),
      );
      return exitCodes.done;
    }
    if (dryRun) {
      const migrations = await apply(place.directUrl, { ...request, finish, dryRun });
      terminal.result({ migrations }, () =>
        migrations.length === 0
          ? 'The schema is up to date.'
          : `Ran and rolled back: ${migrations.join(', ')}. The schema is unchanged.`,
      );
      return exitCodes.done;
    }
    await ensureSchema(db, { ...request, directUrl: place.directUrl, retryForMs: 0 });
    if (finish) await apply(place.directUrl, { ...request, finish });
    const isFinished = toPending(await loadApplied(db), true).length === 0;
    terminal.result({ schema: 'current', finished: isFinished }, () =>
      isFinished
        ? 'The schema is up to date.'
        : 'The schema is up to date. Older versions may still run on it; once none does, `intake migrate --finish` drops what only they need.',
    );
    return exitCodes.done;
  },
});

export const grants = command({
  name: 'grants',
  summary: 'print (or apply) the SQL for the roles: owner, worker, analyst, analyst_personal, web',
  examples: [
    ['intake grants > roles.sql', 'for a DBA to read and run'],
    ['intake grants --prefix ats_intake', 'other names, where two Intakes share a server'],
  ],
  options: {
    apply: flag('run the SQL, as the role in DATABASE_URL, instead of printing it'),
    prefix: preset('<name>', 'prefix of the role names', 'intake'),
  },
  async run({ env, terminal }, { apply, prefix }) {
    if (!/^[a-z_][a-z0-9_]{0,30}$/.test(prefix)) {
      throw new Misuse('--prefix must be lower-case letters, digits and _, at most 31.');
    }
    const config = await loadCommandConfig(env, ['database']);
    const { openPlace } = await import('../../app/database.ts');
    const { openDatabase } = await import('../../store/postgres/database.ts');
    const { loadGrantsSql } = await import('../../store/postgres/grants.ts');
    const { requireSchema } = await import('../../store/postgres/migrations.ts');
    await using place = await openPlace(config);
    await using db = openDatabase({ url: place.directUrl, role: 'grants', connections: 1 });
    await requireSchema(db);
    const sql = await loadGrantsSql(db, prefix);
    if (apply) await db.query(sql);
    terminal.result({ applied: apply, sql }, () => (apply ? `The roles ${prefix}_* are up to date.` : sql));
    return exitCodes.done;
  },
});

/** As `intake migrate` runs it: with a limit for locks, behind which others wait. */
function renderMigration({ name, statements, inTransaction }: Migration, lockTimeoutMs: number): string {
  const limit = `SET LOCAL lock_timeout = ${lockTimeoutMs};`;
  const lines = inTransaction ? ['BEGIN;', limit, ...statements, 'COMMIT;'] : statements;
  return [`-- ${name}`, ...lines, ''].join('\n');
}

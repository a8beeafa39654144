// `intake grants`: the SQL that gives every role the least privileges it needs. Prints the SQL; --apply runs it.
import { command, flag, preset } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

export const grants = command({
  name: 'grants',
  summary: 'print (or apply) the SQL for the roles: owner, worker, analyst, analyst_personal, web',
  examples: [
    ['intake grants > roles.sql', 'for a DBA to read and run'],
    ['intake grants --apply', 'run it now, as the role in DATABASE_URL'],
    ['intake grants --prefix ats_intake', 'other names, where two Intakes share a server'],
  ],
  options: {
    apply: flag('run the SQL instead of printing it'),
    prefix: preset('<name>', 'prefix of the role names', 'intake'),
  },
  async run({ env, terminal }, { apply, prefix }) {
    if (!/^[a-z_][a-z0-9_]{0,30}$/.test(prefix)) {
      throw new Misuse('--prefix must be lower-case letters, digits and _, at most 31.');
    }
    const config = await loadCommandConfig(env, { needs: ['database'] });
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

// `intake doctor`: checks everything that Intake needs, and shows what is wrong and what was learned about the source.
import type { Config } from '../../config.ts';
import type { Store } from '../../store/store.ts';
import type { Finding } from '../../sync/worker/health-checks.ts';
import { advertiser, command } from '../command.ts';
import { exitCodes, toFailure } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';
import { toPrintable } from '../terminal.ts';

export const doctor = command({
  name: 'doctor',
  summary: 'check configuration, database, schema, clock, storage and credentials; show what was learned of the source',
  examples: [['intake doctor', 'every check, one line each']],
  options: { advertiser },
  async run({ env, signal, terminal }, { advertiser }) {
    const needs = ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'prefill', 'webhooks'] as const;
    const config = await loadCommandConfig(env, needs, advertiser);
    const findings = await runChecks(config, signal);
    terminal.result({ findings: findings.map(({ trouble: _, ...finding }) => finding) }, () =>
      findings.flatMap(({ check, ok, detail, trouble }) => [
        `${ok ? 'ok  ' : 'bad '} ${check}: ${toPrintable(detail)}`,
        // Subclasses of Trouble already say in their message what to do.
        trouble instanceof Error && trouble.name === 'Trouble' && `     Next: ${toFailure(trouble, signal).next}`,
      ]),
    );
    const bad = findings.filter(({ ok }) => !ok);
    if (bad.length === 0) return exitCodes.done;
    const known = bad.find(({ trouble }) => trouble !== undefined);
    return known ? toFailure(known.trouble, signal).exitCode : exitCodes.incomplete;
  },
});

/** Runs the checks. They do not change the schema, and a failing check does not stop the others. */
async function runChecks(
  config: Config<'database' | 'source' | 'sync' | 'privacy' | 'blobs'>,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { openAnyStore } = await import('../../app/database.ts');
  const { openSources } = await import('../../app/clients.ts');
  const { openConfiguredBlobs } = await import('../../app/storage.ts');
  const checks = await import('../../sync/worker/health-checks.ts');
  await using stack = new AsyncDisposableStack();
  const detail = config.warnings.join(' ') || 'complete';
  const findings: Finding[] = [{ check: 'configuration', ok: true, detail }];
  /** Null where the database is empty or unavailable: storage and source are checked all the same. */
  let store: Store | null = null;
  try {
    const opened = stack.use(await openAnyStore(config, 'doctor'));
    findings.push(...(await checks.checkDatabase(opened, Date.now)));
    const schema = await opened.schema.loadSchema().catch(() => null);
    store = schema === null || schema.state === 'absent' ? null : opened;
  } catch (trouble) {
    const detail = trouble instanceof Error ? trouble.message : 'cannot be opened';
    findings.push({ check: 'database', ok: false, detail, trouble });
  }
  const isGood = (name: string) => findings.every(({ check, ok }) => ok || check !== name);
  if (isGood('database')) findings.push(await checks.checkKey(store));
  else findings.push({ check: 'PRIVACY_KEY', ok: false, detail: 'not compared: the database is unavailable' });
  // A schema of another version may not tell whose the storage is.
  const owned = isGood('schema') ? store : null;
  findings.push(...(await checks.checkBlobs(owned, () => openConfiguredBlobs(config), signal)));
  const sources = stack.use(openSources(config, store, { isLook: true }));
  for (const account of config.source.advertisers) {
    findings.push(...(await checks.checkSource(store, sources.open(account), { ...account, signal })));
  }
  return findings;
}

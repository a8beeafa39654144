// `intake doctor`: checks everything that Intake needs, and shows what is wrong and what was learned about the source.
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { toFailure } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';
import { toPrintable } from './terminal.ts';

interface DoctorOptions {
  readonly advertiser?: string;
}

export const doctor = command<DoctorOptions>({
  name: 'doctor',
  summary:
    'check configuration, database, schema, clock, storage and credentials; show what was learned about the source',
  examples: [
    ['intake doctor', 'every check, one line each'],
    ['intake doctor --json', 'the same for a program'],
  ],
  shape: (shaped) => shaped.option('--advertiser <name>', 'only this account, where several are configured'),
  async run({ env, signal, terminal }, { advertiser }) {
    const config = await loadCommandConfig(env, {
      needs: ['database', 'source', 'sync', 'privacy', 'blobs', 'admin', 'prefill'],
      advertiser,
    });
    const { runChecks } = await import('../app.ts');
    const configuration = { check: 'configuration', ok: true, detail: config.warnings.join(' ') || 'complete' };
    const found: Awaited<ReturnType<typeof runChecks>> = [
      configuration,
      ...(await runChecks(config, { advertiser, signal })),
    ];
    const findings = await Promise.all(
      found.map(async ({ check, ok, detail, trouble }) => {
        const failure = trouble === undefined ? null : await toFailure(trouble, signal);
        // Subclasses of Trouble already say in their message what to do.
        const next = trouble instanceof Error && trouble.name === 'Trouble' ? failure?.next : undefined;
        return { check, ok, detail, next, exitCode: failure?.exitCode };
      }),
    );
    terminal.result({ findings: findings.map(({ check, ok, detail }) => ({ check, ok, detail })) }, () =>
      findings
        .flatMap(({ check, ok, detail, next }) => {
          const mark = ok ? terminal.paint('green', 'ok  ') : terminal.paint('red', 'bad ');
          return [`${mark} ${check}: ${toPrintable(detail)}`, ...(next === undefined ? [] : [`     Next: ${next}`])];
        })
        .join('\n'),
    );
    const bad = findings.filter(({ ok }) => !ok);
    if (bad.length === 0) return exitCodes.done;
    return bad.find(({ exitCode }) => exitCode !== undefined)?.exitCode ?? exitCodes.incomplete;
  },
});

// `intake doctor`: checks everything that Intake needs, and shows what is wrong and what was learned about the source.
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { toFailure } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';

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
    const findings = [
      { check: 'configuration', ok: true, detail: config.warnings.join(' ') || 'complete' },
      ...(await runChecks(config, { advertiser, signal })),
    ];
    const { toPrintable } = await import('./terminal.ts');
    const advice = new Map<object, string>();
    for (const finding of findings) {
      const cause = 'trouble' in finding ? finding.trouble : undefined;
      // Subclasses of Trouble already say in their message what to do.
      if (cause instanceof Error && cause.name === 'Trouble')
        advice.set(finding, (await toFailure(cause, signal)).next);
    }
    terminal.result({ findings: findings.map(({ check, ok, detail }) => ({ check, ok, detail })) }, () =>
      findings
        .flatMap((finding) => {
          const { check, ok, detail } = finding;
          const next = advice.get(finding);
          const line = `${ok ? terminal.paint('green', 'ok  ') : terminal.paint('red', 'bad ')} ${check}: ${toPrintable(detail)}`;
          return next === undefined ? [line] : [line, `     Next: ${next}`];
        })
        .join('\n'),
    );
    const bad = findings.filter((finding) => !finding.ok);
    if (bad.length === 0) return exitCodes.done;
    const causes = bad.flatMap((finding) => ('trouble' in finding && finding.trouble ? [finding.trouble] : []));
    const [first] = await Promise.all(causes.map((cause) => toFailure(cause, signal)));
    return first?.exitCode ?? exitCodes.incomplete;
  },
});

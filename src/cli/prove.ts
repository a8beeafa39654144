// `intake prove`: explains the evidence behind a certificate, exports it, or has it checked by an independent program.
import { resolve } from 'node:path';
import type { CheckReport, explainProofs } from '../app/prove.ts';
import { formatCount } from '../domain/format.ts';
import { toSeconds } from './arguments.ts';
import { type Context, command } from './command.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { Failure, Misuse } from './failure.ts';
import { loadCommandConfig } from './load-config.ts';

interface ProveOptions {
  readonly export?: string;
  /** True without a file: the evidence stored now is checked. */
  readonly check?: string | true;
  readonly noted?: readonly string[];
  readonly at?: string;
  readonly advertiser?: string;
}

export const prove = command<ProveOptions>({
  name: 'prove',
  summary: 'show, export or check the evidence that nobody is missing',
  examples: [
    ['intake prove', 'what is proven now, what it rests on, what would have falsified it'],
    ['intake prove --at 2026-07-31', 'the same for everything submitted until the end of that day'],
    ['intake prove --export proof.ndjson', 'every question and answer behind it, as docs/proof-format.md describes'],
    ['intake prove --check', 'check it with examples/check-proof.ts, which shares no code with Intake'],
    ['intake prove --check proof.ndjson --noted 42:9f86..', 'check a file, also against a hash noted earlier'],
  ],
  shape: (shaped) =>
    shaped
      .option('--export <file>', 'write the evidence of one account; readable by you only')
      .option('--check [file]', 'check a file, or the evidence stored now')
      .option('--noted <sweep:hash...>', 'with --check: hashes that were noted earlier')
      .option('--at <date>', 'a day (2026-07-31, until its end at +10:00) or a time with its zone')
      .option('--advertiser <name>', 'only this account, where several are configured')
      .addHelpText(
        'after',
        '\nExits with 3 where completeness is unproven or in doubt, and where the checker rejects the proof.',
      ),
  async run(context, options) {
    const { check, advertiser } = options;
    if ([options.export, check, options.at].filter((one) => one !== undefined).length > 1) {
      throw new Misuse('Choose one: --export, --check or --at.');
    }
    if (options.noted !== undefined && check === undefined) throw new Misuse('--noted belongs to --check.');
    const { noted = [] } = options;
    if (!noted.every((hash) => /^\d{1,19}:[0-9a-f]{64}$/.test(hash)))
      throw new Misuse('--noted must be a sweep and its hash, as 42:9f86..');
    if (typeof check === 'string') return await showCheck(context, resolve(check), noted);
    const config = await loadCommandConfig(context.env, { needs: ['database', 'source', 'privacy'], advertiser });
    const { signal, terminal } = context;
    const app = await import('../app/prove.ts');
    if (options.export === undefined && check === undefined) {
      const at = options.at === undefined ? null : toSeconds('--at', options.at, 'end');
      const moment = at === null ? null : new Date(Number(at) * 1_000);
      return showExplanations(context, await app.explainProofs(config, { at: moment, advertiser, signal }));
    }
    if (advertiser === undefined && config.source.advertisers.length > 1)
      throw new Misuse('Several accounts are configured: name one with --advertiser.');
    if (options.export !== undefined) {
      const file = resolve(options.export);
      const written = requireKnown(await app.exportProof(config, { file, advertiser, signal }));
      terminal.result(written, () =>
        [
          `${written.file}: ${formatCount(written.sweeps, 'sweep')} and ${formatCount(written.applications, 'application')} of ${written.name}, ${formatCount(written.lines, 'line')}.`,
          'Keep these hashes somewhere else; they show later whether the evidence is the same:',
          ...written.evidence.map((one) => `  ${one}`),
        ].join('\n'),
      );
      return exitCodes.done;
    }
    await using folder = await app.openProofFolder();
    requireKnown(await app.exportProof(config, { file: folder.file, advertiser, signal }));
    return await showCheck(context, folder.file, noted);
  },
});

function requireKnown<T>(written: T | null): T {
  if (written !== null) return written;
  throw new Failure(exitCodes.incomplete, 'This account was not read yet, so there is no evidence.', {
    kept: 'Everything, untouched.',
    next: 'intake sync',
  });
}

async function showCheck({ signal, terminal }: Context, file: string, noted: readonly string[]): Promise<ExitCode> {
  const { checkProofFile } = await import('../app/prove.ts');
  const report = await checkProofFile(file, noted, signal);
  terminal.result(report, () => renderCheck(report));
  return report.supported && report.verdict !== 'unproven' ? exitCodes.done : exitCodes.incomplete;
}

function renderCheck({ verdict, supported, sweeps, certificates, findings }: CheckReport): string {
  const all = [...findings, ...certificates.flatMap((one) => one.findings)];
  return [
    ...sweeps,
    ...certificates.map(
      (one) =>
        `ids ${one.ids}, submitted before ${one.completeThrough}: the certificate says ${one.says}, its lines support ${one.supports}`,
    ),
    ...all.slice(0, 10).map(({ worth, reason }) => `${worth}: ${reason}`),
    ...(all.length > 10 ? [`and ${all.length - 10} more (--json)`] : []),
    `verdict: ${verdict}${supported ? '' : ', refused'}`,
  ].join('\n');
}

type Explained = Awaited<ReturnType<typeof explainProofs>>[number];

function showExplanations({ terminal }: Context, explained: readonly Explained[]): ExitCode {
  terminal.result({ advertisers: explained }, () => explained.map(render).join('\n'));
  const isWell = explained.every(({ complete, risk }) => complete && risk !== 'doubt');
  return isWell ? exitCodes.done : exitCodes.incomplete;
}

function render({ name, at, complete, certificates, openRanges, ...proof }: Explained): string {
  const moment = at === null ? '' : ` through ${at.toISOString()}`;
  return [
    `${name}: ${complete ? `complete${moment}, ${proof.certificate}` : `not known to be complete${moment}`}`,
    ...certificates.flatMap((one) => [
      `  ids ${one.low} to ${one.high ?? 'infinity'}: ${one.certificate}: ${one.reason}`,
      `    covers applications submitted until ${one.completeThrough.toISOString()}${one.reaches ? '' : ', which is not far enough'}`,
      `    sweep ${one.sweepId} of ${one.startedAt.toISOString()}: ${formatCount(one.questions, 'question')} (${formatCount(one.witnesses, 'witness', 'witnesses')} among them), ${formatCount(one.audits, 'audit')} since`,
      `    evidence ${one.evidence ?? 'was not recorded by the version that read it; intake sync --recheck records it'}`,
    ]),
    ...(certificates.length === 0 ? ['  nothing was read to its end yet'] : []),
    ...(openRanges > 0
      ? [`  ${formatCount(openRanges, 'id range is', 'id ranges are')} not covered; run intake backfill --gaps`]
      : []),
    '  It rests on:',
    ...proof.assumptions.map((text) => `    ${text}`),
    '  It would have been falsified by:',
    ...proof.falsifiedBy.map((text) => `    ${text}`),
    '  Others can check it: intake prove --export FILE, then npx node examples/check-proof.ts FILE',
  ].join('\n');
}

// `intake prove`: explains the evidence behind a certificate, exports it, or has it checked by an independent program.
import { execFile } from 'node:child_process';
import { createWriteStream, statSync } from 'node:fs';
import { access, constants, mkdtempDisposable, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Conclusion } from '../../domain/coverage/certificate.ts';
import { type Explanation, explain } from '../../domain/evidence/record.ts';
import { formatCount } from '../../domain/format.ts';
import { advertiser, type Context, command, option, toSeconds } from '../command.ts';
import { type ExitCode, exitCodes, Failure, Misuse, toFileMisuse } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

export const prove = command({
  name: 'prove',
  summary: 'show, export or check the evidence that nobody is missing',
  examples: [
    ['intake prove', 'what is proven now, and what it rests on'],
    ['intake prove --at 2026-07-31', 'the same for everything submitted until the end of that day'],
    ['intake prove --export proof.ndjson', 'every question and answer behind it (docs/proof-format.md)'],
    ['intake prove --check', 'check it with examples/check-proof.ts, which shares no code with Intake'],
  ],
  options: {
    export: option('<file>', 'write the evidence of one account; readable by you only'),
    check: option<string | true>('[file]', 'check a file, or the evidence stored now'),
    at: option('<date>', 'a day (2026-07-31, until its end at +10:00) or a time with its zone', toSeconds('end')),
    advertiser,
  },
  after: 'Exits with 3 where completeness is unproven or in doubt, and where the checker rejects the proof.',
  async run(context, { export: target, check, at: until, advertiser: account }) {
    if ([target, check, until].filter((one) => one !== undefined).length > 1) {
      throw new Misuse('Choose one: --export, --check or --at.');
    }
    if (typeof check === 'string') return await showCheck(context, resolve(check));
    const { signal, terminal } = context;
    const config = await loadCommandConfig(context.env, ['database', 'accounts', 'privacy'], account);
    const isExport = target !== undefined || check !== undefined;
    if (isExport && config.accounts.length > 1)
      throw new Misuse('Several accounts are configured: name one with --advertiser.');
    const { openStoreOf } = await import('../../app/database.ts');
    await using store = await openStoreOf(config, 'prove');
    const accounts = [];
    for (const one of config.accounts) accounts.push(await store.advertisers.lookUp(one.name, one.advertiserId));
    if (!isExport) {
      const at = until === undefined ? null : new Date(Number(until) * 1_000);
      const advertisers = await Array.fromAsync(accounts, async ({ name, advertiserId }) => {
        return { name, advertiserId, ...explain(at, await store.evidence.loadCurrentProof(advertiserId)) };
      });
      terminal.result({ advertisers }, () => advertisers.flatMap(render));
      const isWell = advertisers.every(({ complete, risk }) => complete && risk !== 'doubt');
      return isWell ? exitCodes.done : exitCodes.incomplete;
    }
    const [{ name, advertiserId } = { name: '', advertiserId: null }] = accounts;
    if (advertiserId === null)
      throw new Failure(exitCodes.incomplete, 'This account was not read yet, so there is no evidence.', 'intake sync');
    const exportTo = (file: string) =>
      store.evidence.withProofs(advertiserId, async ({ lines, ...stored }) => {
        const written = await withFile(file, () => writeLines(file, lines, signal));
        return { name, advertiserId, file, lines: written, sweeps: stored.evidence.length, ...stored };
      });
    if (target === undefined) {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'intake-proof-'));
      const { file } = await exportTo(join(folder.path, 'proof.ndjson'));
      return await showCheck(context, file);
    }
    const written = await exportTo(resolve(target));
    terminal.result(written, () => [
      `${written.file}: ${formatCount(written.sweeps, 'sweep')} and ${formatCount(written.applications, 'application')} of ${name}, ${formatCount(written.lines, 'line')}.`,
      'Keep these hashes somewhere else; examples/check-proof.ts --noted shows later whether the evidence is the same:',
      ...written.evidence.map((one) => `  ${one}`),
    ]);
    return exitCodes.done;
  },
});

/** Refuses a device or a folder, and names the file in errors of its use. */
async function withFile<T>(file: string, use: () => Promise<T>): Promise<T> {
  try {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) throw toFileMisuse(file, 'not a regular file');
    return await use();
  } catch (error) {
    throw error instanceof Error && 'syscall' in error ? toFileMisuse(file, error) : error;
  }
}

/** Writes a temporary file and renames it when it is complete. Until then an existing file stays; its mode is not kept. */
async function writeLines(file: string, lines: AsyncIterable<string>, signal: AbortSignal): Promise<number> {
  const unfinished = `${file}.${process.pid}.tmp`;
  let count = 0;
  const text = async function* () {
    for await (const line of lines) {
      count++;
      yield `${line}\n`;
    }
  };
  try {
    await pipeline(text, createWriteStream(unfinished, { flags: 'wx', mode: 0o600 }), { signal });
    await rename(unfinished, file);
    return count;
  } finally {
    await rm(unfinished, { force: true }).catch(() => {});
  }
}

type Findings = readonly { readonly worth: string; readonly reason: string }[];

/** The checker's report on a file, as far as people are shown it; `supported` if no certificate claims more than its lines support. */
interface CheckReport {
  readonly verdict: 'forged' | 'unproven' | 'assumed' | 'proven';
  readonly risk: Conclusion['risk'];
  readonly supported: boolean;
  readonly sweeps: readonly string[];
  readonly certificates: readonly (Readonly<Record<'ids' | 'completeThrough' | 'says' | 'supports', string>> & {
    readonly findings: Findings;
  })[];
  readonly findings: Findings;
}

const checker = join(import.meta.dirname, '../../../examples/check-proof.ts');

/** Runs the checker on a file in a separate process, which gets the file and no environment. */
async function showCheck({ signal, terminal }: Context, file: string): Promise<ExitCode> {
  await withFile(file, () => access(file, constants.R_OK));
  const report = await new Promise<CheckReport>((end, fail) => {
    execFile(
      process.execPath,
      [checker, file],
      { signal, env: {}, maxBuffer: 256 * 1024 * 1024 },
      (error, stdout, stderr) => {
        // Exit code 1 means that the checker rejects the proof, which is a valid result.
        if (error === null || error.code === 1) end(JSON.parse(stdout) as CheckReport);
        else fail(signal.aborted ? (signal.reason as Error) : new Error(stderr.trim() || error.message));
      },
    );
  });
  terminal.result(report, () => renderCheck(report));
  return report.supported && report.risk !== 'doubt' ? exitCodes.done : exitCodes.incomplete;
}

function renderCheck({ verdict, risk, supported, sweeps, certificates, findings }: CheckReport): string[] {
  const all = [...findings, ...certificates.flatMap((one) => one.findings)];
  return [
    ...sweeps,
    ...certificates.map(
      (one) =>
        `ids ${one.ids}, submitted before ${one.completeThrough}: the certificate says ${one.says}, its lines support ${one.supports}`,
    ),
    ...all.slice(0, 10).map(({ worth, reason }) => `${worth}: ${reason}`),
    ...(all.length > 10 ? [`and ${all.length - 10} more (--json)`] : []),
    `verdict: ${verdict}${verdict === 'assumed' && risk === 'doubt' ? ', in doubt' : ''}${supported ? '' : ', refused'}`,
  ];
}

function render({ name, at, complete, certificates, openRanges, ...proof }: Explanation & { name: string }) {
  const moment = at === null ? '' : ` through ${at.toISOString()}`;
  return [
    `${name}: ${complete ? `complete${moment}, ${proof.certificate}` : `not known to be complete${moment}`}`,
    ...certificates.flatMap((one) => [
      `  ids ${one.low} to ${one.high ?? 'infinity'}: ${one.certificate}: ${one.reason}`,
      `    covers applications submitted until ${one.completeThrough.toISOString()}${one.reaches ? '' : ', which is not far enough'}`,
      `    sweep ${one.sweepId} of ${one.startedAt.toISOString()}: ${formatCount(one.questions, 'question')} (${formatCount(one.witnesses, 'witness', 'witnesses')} among them), ${formatCount(one.audits, 'audit')} since`,
      `    evidence ${one.evidence ?? 'was not recorded by the version that read it; intake sync --recheck records it'}`,
    ]),
    certificates.length === 0 && '  nothing was read to its end yet',
    openRanges > 0 &&
      `  ${formatCount(openRanges, 'id range is', 'id ranges are')} not covered; run intake backfill --gaps`,
    '  It rests on:',
    ...proof.assumptions.map((text) => `    ${text}`),
    '  Others can check it: intake prove --export FILE, then npx node examples/check-proof.ts FILE',
  ];
}

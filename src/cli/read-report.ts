// What `sync`, `backfill` and the demo have in common: progress while advertisers are read, and one report at the end.

import type { Outcome, ReadEvents, ReadOutcome } from '../app.ts';
import { weakestOf } from '../domain/coverage/certificate.ts';
import { formatBytes, formatCount } from '../domain/format.ts';
import type { Context } from './command.ts';
import { type ExitCode, exitCodes, toFailure } from './failure.ts';
import { createCrashPoint } from './open.ts';
import type { Progress } from './terminal.ts';

/** Runs a command that reads, and shows its progress, then its outcome. Returns the worst exit code. */
export async function runAndReport(context: Context, read: (events: ReadEvents) => Promise<ReadOutcome>) {
  return report(context, await showProgress(context, read));
}

/** Applications, of a total estimated from the share of ids already read, then files. */
async function showProgress({ terminal, env, signal }: Context, read: (events: ReadEvents) => Promise<ReadOutcome>) {
  using stack = new DisposableStack();
  const applications = stack.use(terminal.openProgress('applications'));
  let files: Progress | null = null;
  const found = new Map<string, { found: number; total: number; requests: number }>();
  return await read({
    signal,
    crashPoint: createCrashPoint(env.INTAKE_CRASH_AT),
    ending: { exitCode: exitCodes.unhealthy },
    onStep(name, { found: count, share, requests }) {
      const total = share === null || share < 0.01 ? Number.NaN : Math.round(count / share);
      found.set(name, { found: count, total, requests });
      const sum = (member: 'found' | 'total' | 'requests') => found.values().reduce((all, one) => all + one[member], 0);
      const asked = formatCount(sum('requests'), 'request');
      const detail = sum('found') === sum('total') ? `${asked}, checking that none is missing` : asked;
      applications.update(sum('found'), Number.isNaN(sum('total')) ? null : sum('total'), detail);
    },
    onFiles({ stored, infected, missing, rejected, givenUp, bytes }, queued) {
      if (files === null) {
        applications[Symbol.dispose]();
        files = stack.use(terminal.openProgress('files'));
      }
      const done = stored + infected + missing + rejected + givenUp;
      files.update(done, Math.max(done, queued), formatBytes(bytes));
    },
    onWait(name, trouble, waitMs, attempt) {
      const next = `Attempt ${attempt} failed. Trying again in ${Math.ceil(waitMs / 1_000)} s.`;
      terminal.note(`${name}: ${trouble.message} ${next}`);
    },
  });
}

/** Prints the outcome of each advertiser and of the files. */
function report({ signal, terminal }: Context, outcome: ReadOutcome): ExitCode {
  const { advertisers: outcomes, files, filesTrouble } = outcome;
  const troubles = [...outcomes.map(({ trouble }) => trouble), filesTrouble].filter((trouble) => trouble !== null);
  const failures = troubles.map((trouble) => toFailure(trouble, signal));
  const [only] = failures;
  if (only && outcomes.length === 1 && outcomes[0]?.account === null) throw only;
  const jsonFiles = filesTrouble === null ? files : { trouble: toMessage(filesTrouble) };
  terminal.result({ advertisers: outcomes.map(toJsonOutcome), files: jsonFiles }, () => [
    ...outcomes.flatMap(renderOutcome),
    renderFiles(outcome),
  ]);
  for (const failure of failures) terminal.note(`${failure.message}\n  Next: ${failure.next}`);
  // A sweep of this command may give reason to doubt an account that was proven before.
  const isInDoubt = outcomes.some(({ account, sweeps }) => [account, ...sweeps].some((one) => one?.risk === 'doubt'));
  // Files that the source does not have yet are no failure. Other waiting files, and files that ended without bytes, are.
  const isUnfinished = files !== null && (files.waiting > files.notThere || files.rejected + files.givenUp > 0);
  const codes = [isInDoubt || isUnfinished ? incomplete : done, ...failures.map(({ exitCode }) => exitCode)];
  return worstFirst.find((code) => codes.includes(code)) ?? done;
}

function renderFiles({ files, filesTrouble }: ReadOutcome): string | false {
  if (filesTrouble !== null) return 'files: not all downloaded';
  if (files === null) return false;
  const { stored, linked, bytes, waiting, notThere } = files;
  const others = {
    infected: files.infected,
    missing: files.missing,
    rejected: files.rejected,
    'given up': files.givenUp,
    'not at the source yet': notThere,
    'waiting for another try': waiting - notThere,
  };
  const first = `files: ${stored} stored (${formatBytes(bytes)}${linked > 0 ? `, ${linked} duplicates skipped` : ''})`;
  return [first, ...Object.entries(others).flatMap(([what, n]) => (n > 0 ? [`${n} ${what}`] : []))].join(', ');
}

const { unexpected, schema, refused, usage, held, temporary, unhealthy, incomplete, done } = exitCodes;
/** The code that needs a person most comes first. */
const worstFirst = [unexpected, schema, refused, usage, held, temporary, unhealthy, incomplete, done] as const;

function toMessage(trouble: unknown): string {
  return trouble instanceof Error ? trouble.message : 'failed';
}

function toJsonOutcome({ name, advertiserId, account, counts, sweeps, trouble }: Outcome) {
  const { certificate = null, risk = null, reason = null, evidence = [] } = account ?? {};
  const { requests, received, added, changed, quarantined, bytes } = counts;
  const openRanges = sweeps.reduce((sum, sweep) => sum + sweep.openRanges, 0);
  const weakest = weakestOf(sweeps);
  return {
    ...{ name, advertiserId, requests, received, added, changed, quarantined, openRanges, bytes },
    ...{ certificate, risk, reason, evidence },
    sweep: weakest ? { certificate: weakest.certificate, risk: weakest.risk, reason: weakest.reason } : null,
    trouble: trouble === null ? null : toMessage(trouble),
  };
}

function renderOutcome({ name, account, counts, sweeps }: Outcome): (string | false)[] {
  if (account === null) return [`${name}: not read`];
  const weakest = weakestOf(sweeps);
  const { added, changed, quarantined, requests, bytes } = counts;
  const kept = `${added} new, ${changed} changed${quarantined > 0 ? `, ${quarantined} in quarantine` : ''}`;
  return [
    weakest
      ? `${name}: ${kept}; ${formatCount(requests, 'request')}, ${formatBytes(bytes)} read`
      : `${name}: nothing to read, every range is closed`,
    weakest?.risk === 'doubt' &&
      weakest.reason !== account.reason &&
      `  this sweep ${weakest.certificate}: ${weakest.reason}`,
    `  coverage ${account.certificate}: ${account.reason}`,
  ];
}

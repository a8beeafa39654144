// What `sync`, `backfill` and the demo have in common: progress while advertisers are read, and one report at the end.

import type { Outcome, ReadEvents, ReadOutcome } from '../app.ts';
import { assumptions, weakestOf } from '../domain/coverage/certificate.ts';
import { formatBytes, formatCount } from '../domain/format.ts';
import type { Context } from './command.ts';
import { type ExitCode, exitCodes, toFailure } from './failure.ts';
import { createCrashPoint } from './open.ts';
import type { Progress } from './terminal.ts';

/**
 * Runs a command and shows its progress: requests and applications found, of a total estimated from the share of ids already read; then
 * files and bytes, of the number queued.
 */
export async function showReadProgress<T>(
  { terminal, env }: Context,
  run: (events: ReadEvents) => Promise<T>,
): Promise<T> {
  using stack = new DisposableStack();
  const applications = stack.use(terminal.openProgress('applications'));
  let files: Progress | null = null;
  const found = new Map<string, { found: number; total: number | null; requests: number }>();
  return await run({
    crashPoint: createCrashPoint(env.INTAKE_CRASH_AT),
    ending: { exitCode: exitCodes.unhealthy },
    onStep(name, { found: count, share, requests }) {
      const total = share === null || share < 0.01 ? null : Math.round(count / share);
      found.set(name, { found: count, total, requests });
      const all = [...found.values()];
      const done = sumOf(all, 'found');
      const asked = formatCount(sumOf(all, 'requests'), 'request');
      const expected = all.some((one) => one.total === null) ? null : sumOf(all, 'total');
      applications.update(done, expected, done === expected ? `${asked}, checking that none is missing` : asked);
    },
    onFiles({ stored, infected, missing, rejected, givenUp, bytes }, queued) {
      if (files === null) {
        applications[Symbol.dispose]();
        files = stack.use(terminal.openProgress('files'));
      }
      const done = stored + infected + missing + rejected + givenUp;
      files.update(done, Math.max(done, queued), formatBytes(bytes));
    },
    onWait: (name, trouble, waitMs, attempt) =>
      terminal.note(
        `${name}: ${trouble.message} Attempt ${attempt} failed. Trying again in ${Math.ceil(waitMs / 1_000)} s.`,
      ),
  });
}

/** Prints the outcome of each advertiser and of the files. Returns the worst exit code. */
export function reportOutcomes({ signal, terminal }: Context, outcome: ReadOutcome): ExitCode {
  const { advertisers: outcomes, files, filesTrouble } = outcome;
  const troubles = [...outcomes.map(({ trouble }) => trouble), filesTrouble].filter((trouble) => trouble !== null);
  const failures = troubles.map((trouble) => toFailure(trouble, signal));
  const [only] = failures;
  if (only && outcomes.length === 1 && outcomes[0]?.account === null) throw only;
  const jsonFiles = filesTrouble === null ? files : { trouble: toMessage(filesTrouble) };
  terminal.result({ advertisers: outcomes.map(toJsonOutcome), files: jsonFiles }, () =>
    [...outcomes.map(renderOutcome), ...renderFiles(outcome)].join('\n'),
  );
  for (const failure of failures) terminal.note(`${failure.message}\n  Next: ${failure.next}`);
  // A sweep of this command may give reason to doubt an account that was proven before.
  const isInDoubt = outcomes.some(({ account, sweeps }) => [account, ...sweeps].some((one) => one?.risk === 'doubt'));
  // Files that the source does not have yet are no failure. Other waiting files, and files that ended without bytes, are.
  const isUnfinished = files !== null && (files.waiting > files.notThere || files.rejected + files.givenUp > 0);
  const codes = [isInDoubt || isUnfinished ? incomplete : done, ...failures.map(({ exitCode }) => exitCode)];
  return worstFirst.find((code) => codes.includes(code)) ?? done;
}

function renderFiles({ files, filesTrouble }: ReadOutcome): string[] {
  if (filesTrouble !== null) return ['files: not all downloaded'];
  if (files === null) return [];
  const { stored, linked, bytes, infected, missing, rejected, givenUp, waiting, notThere } = files;
  const parts = [
    `${stored} stored (${formatBytes(bytes)}${linked > 0 ? `, ${linked} duplicates skipped` : ''})`,
    infected > 0 && `${infected} infected`,
    missing > 0 && `${missing} missing`,
    rejected > 0 && `${rejected} rejected`,
    givenUp > 0 && `${givenUp} given up`,
    notThere > 0 && `${notThere} not at the source yet`,
    waiting > notThere && `${waiting - notThere} waiting for another try`,
  ];
  return [`files: ${parts.filter((part) => part !== false).join(', ')}`];
}

const { unexpected, schema, refused, usage, held, temporary, unhealthy, incomplete, done } = exitCodes;
/** The code that needs a person most comes first. */
const worstFirst = [unexpected, schema, refused, usage, held, temporary, unhealthy, incomplete, done] as const;

function sumOf<Name extends string>(all: readonly Readonly<Record<Name, number | null>>[], name: Name): number {
  return all.reduce((total, one) => total + (one[name] ?? 0), 0);
}

/** The weakest of the sweeps of this command; null where none was needed. */
function toWeakestSweep({ sweeps }: Outcome) {
  const weakest = weakestOf(sweeps);
  return weakest ? { certificate: weakest.certificate, risk: weakest.risk, reason: weakest.reason } : null;
}

function toMessage(trouble: unknown): string {
  return trouble instanceof Error ? trouble.message : 'failed';
}

function toJsonOutcome(outcome: Outcome) {
  const trouble = outcome.trouble === null ? null : toMessage(outcome.trouble);
  const { certificate = null, risk = null, reason = null, evidence = [] } = outcome.account ?? {};
  const { requests, received, added, changed, quarantined, bytes } = outcome.counts;
  return {
    name: outcome.name,
    advertiserId: outcome.advertiserId,
    ...{ requests, received, added, changed, quarantined, openRanges: sumOf(outcome.sweeps, 'openRanges'), bytes },
    ...{ certificate, risk, reason, evidence },
    sweep: toWeakestSweep(outcome),
    trouble,
  };
}

function renderOutcome(outcome: Outcome): string {
  const { account } = outcome;
  if (account === null) return `${outcome.name}: not read`;
  const weakest = toWeakestSweep(outcome);
  const { added, changed, quarantined, requests, bytes } = outcome.counts;
  const kept = `${added} new, ${changed} changed${quarantined > 0 ? `, ${quarantined} in quarantine` : ''}`;
  return [
    weakest === null
      ? `${outcome.name}: nothing to read, every range is closed`
      : `${outcome.name}: ${kept}; ${formatCount(requests, 'request')}, ${formatBytes(bytes)} read`,
    ...(weakest?.risk === 'doubt' && weakest.reason !== account.reason
      ? [`this sweep ${weakest.certificate}: ${weakest.reason}`]
      : []),
    `coverage ${account.certificate}: ${account.reason}`,
    ...(account.certificate === 'unproven' ? [] : [`assuming: ${shortAssumptions}`]),
  ].join('\n  ');
}

/** Each assumption up to its examples. */
const shortAssumptions = assumptions
  .map((text) =>
    text
      .replace(/:.*/s, '')
      .replace(/\.$/, '')
      .replace(/^[A-Z]/, (letter) => letter.toLowerCase()),
  )
  .join('; ');

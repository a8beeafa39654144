// What `sync`, `backfill` and the demo have in common: progress while advertisers are read, and one report at the end.
import type { Outcome, ReadingEvents } from '../app.ts';
import type { Context } from './command.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { Failure, toFailure } from './failure.ts';

/** Runs a reading with its progress shown: how many applications were found, of how many by the share of ids that is read. */
export async function showReading<T>({ terminal }: Context, run: (events: ReadingEvents) => Promise<T>): Promise<T> {
  using progress = await terminal.openProgress('applications');
  const found = new Map<string, { found: number; total: number | null }>();
  return await run({
    onStep(name, { found: count, share }) {
      found.set(name, { found: count, total: share === null || share < 0.01 ? null : Math.round(count / share) });
      const all = [...found.values()];
      const total = all.some((one) => one.total === null) ? null : all.reduce((sum, one) => sum + (one.total ?? 0), 0);
      progress.update(
        all.reduce((sum, one) => sum + one.found, 0),
        total,
      );
    },
    onWait: (name, trouble, waitMs) =>
      terminal.note(`${name}: ${trouble.message} Trying again in ${Math.ceil(waitMs / 1_000)} s.`),
  });
}

/** Prints what became of each advertiser and gives the exit code of the worst. */
export async function reportOutcomes({ signal, terminal }: Context, outcomes: readonly Outcome[]): Promise<ExitCode> {
  const failures = await Promise.all(
    outcomes.flatMap((outcome) => (outcome.trouble === null ? [] : [toFailure(outcome.trouble, signal)])),
  );
  const [only] = failures;
  if (only && outcomes.length === 1) throw only;
  const { default: prettyBytes } = await import('pretty-bytes');
  terminal.result({ advertisers: outcomes.map(toJsonOutcome) }, () =>
    outcomes.map((outcome) => renderOutcome(outcome, prettyBytes)).join('\n'),
  );
  for (const failure of failures) terminal.note(`${failure.message}\n  Next: ${failure.next}`);
  const isUnproven = outcomes.some((outcome) => outcome.sweeps?.some((sweep) => sweep.certificate === 'unproven'));
  const code: ExitCode = isUnproven ? exitCodes.incomplete : exitCodes.done;
  return failures.reduce<ExitCode>((worst, failure) => toWorse(worst, failure.exitCode), code);
}

/** An `--advertiser` that is not configured is a usage error, with the names that are. */
export function requireAdvertiser(advertisers: readonly { readonly name: string }[], name: string | undefined): void {
  if (name === undefined || advertisers.some((advertiser) => advertiser.name === name)) return;
  throw new Failure(exitCodes.usage, `There is no advertiser "${name.slice(0, 100)}" in the configuration.`, {
    kept: 'Nothing was started or changed.',
    next: `Configured: ${advertisers.map((advertiser) => advertiser.name).join(', ')}.`,
  });
}

/** Of several outcomes a supervisor is told the one that most needs a person. */
function toWorse(a: ExitCode, b: ExitCode): ExitCode {
  const order: readonly ExitCode[] = [1, 7, 4, 2, 6, 5, 8, 3, 0];
  return order.indexOf(a) < order.indexOf(b) ? a : b;
}

function toTotals({ sweeps }: Outcome) {
  const sum = (pick: (one: NonNullable<typeof sweeps>[number]) => number) =>
    sweeps?.reduce((total, one) => total + pick(one), 0) ?? 0;
  const worst =
    sweeps?.find((one) => one.certificate === 'unproven') ??
    sweeps?.find((one) => one.certificate === 'assumed') ??
    sweeps?.at(-1);
  return {
    requests: sum((s) => s.requests),
    received: sum((s) => s.received),
    added: sum((s) => s.added),
    changed: sum((s) => s.changed),
    quarantined: sum((s) => s.quarantined),
    openRanges: sum((s) => s.openRanges),
    bytes: sum((s) => s.bytes),
    certificate: worst?.certificate ?? null,
    reason: worst?.reason ?? null,
  };
}

function toJsonOutcome(outcome: Outcome) {
  const trouble = outcome.trouble instanceof Error ? outcome.trouble.message : null;
  return { name: outcome.name, advertiserId: outcome.advertiserId, ...toTotals(outcome), trouble };
}

function renderOutcome(outcome: Outcome, toSize: (bytes: number) => string): string {
  if (outcome.sweeps === null) return `${outcome.name}: not read`;
  if (outcome.sweeps.length === 0) return `${outcome.name}: nothing to read, every range is closed`;
  const { added, changed, received, quarantined, requests, bytes, certificate, reason } = toTotals(outcome);
  const kept = `${added} new, ${changed} changed${quarantined > 0 ? `, ${quarantined} in quarantine` : ''}`;
  return `${outcome.name}: ${kept}; ${received} read in ${requests} requests (${toSize(bytes)})\n  coverage ${certificate}: ${reason}`;
}

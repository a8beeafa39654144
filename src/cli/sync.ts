// `intake sync`: one complete round over the configured advertisers, then it ends.
import type { RoundOutcome } from '../app.ts';
import { type Context, command } from './command.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { Failure, toFailure } from './failure.ts';

interface SyncOptions {
  readonly recheck: boolean;
  readonly advertiser?: string;
}

export const sync = command<SyncOptions>({
  name: 'sync',
  summary: 'read what is new, once, and end',
  examples: [
    ['intake sync', 'what is new since the last round; the first round reads everything'],
    ['intake sync --recheck', 'read everything again: changes, late arrivals, withdrawals'],
    ['intake sync --advertiser acme --json', 'one of several accounts, for a script'],
  ],
  shape: (shaped) =>
    shaped
      .option('--recheck', 'read everything again', false)
      .option('--advertiser <name>', 'only this one of several configured accounts'),
  async run(context, options) {
    const { loadConfig } = await import('../config.ts');
    const config = loadConfig(context.env, { needs: ['database', 'source', 'sync', 'privacy'] });
    requireAdvertiser(config.source.advertisers, options.advertiser);
    const outcomes = await runRound(context, config, options);
    return reportRound(context, outcomes);
  },
});

type SyncConfig = Parameters<typeof import('../app.ts').syncOnce>[0];

/** One round with its progress shown; also the demo's first step. */
export async function runRound(
  { signal, terminal }: Context,
  config: SyncConfig,
  options: SyncOptions,
): Promise<RoundOutcome[]> {
  const { syncOnce } = await import('../app.ts');
  using progress = await terminal.openProgress('applications');
  const received = new Map<string, number>();
  return await syncOnce(config, {
    ...options,
    signal,
    onStep(name, totals) {
      received.set(name, totals.received);
      progress.update(
        [...received.values()].reduce((sum, n) => sum + n, 0),
        null,
      );
    },
    onWait: (name, trouble, waitMs) =>
      terminal.note(`${name}: ${trouble.message} Trying again in ${Math.ceil(waitMs / 1_000)} s.`),
  });
}

/** Prints what became of each advertiser and gives the exit code of the worst. */
export async function reportRound({ signal, terminal }: Context, outcomes: readonly RoundOutcome[]): Promise<ExitCode> {
  const failures = await Promise.all(
    outcomes.flatMap((outcome) => (outcome.trouble === null ? [] : [toFailure(outcome.trouble, signal)])),
  );
  const [only] = failures;
  if (only && outcomes.length === 1) throw only;
  terminal.result({ advertisers: outcomes.map(toJsonOutcome) }, () => outcomes.map(renderOutcome).join('\n'));
  for (const failure of failures) terminal.note(`${failure.message}\n  Next: ${failure.next}`);
  if (failures.length > 0)
    return failures.reduce((worst, failure) => toWorse(worst, failure.exitCode), exitCodes.done as ExitCode);
  const isUnproven = outcomes.some((outcome) => outcome.summary?.sweeps.at(-1)?.certificate === 'unproven');
  return isUnproven ? exitCodes.incomplete : exitCodes.done;
}

/** Of several outcomes a supervisor is told the one that most needs a person. */
function toWorse(a: ExitCode, b: ExitCode): ExitCode {
  const order: readonly ExitCode[] = [1, 7, 4, 2, 6, 5, 8, 3, 0];
  return order.indexOf(a) < order.indexOf(b) ? a : b;
}

function toTotals(outcome: RoundOutcome) {
  const sweeps = outcome.summary?.sweeps ?? [];
  const sum = (pick: (one: (typeof sweeps)[number]) => number) => sweeps.reduce((total, one) => total + pick(one), 0);
  return {
    requests: sum((s) => s.requests),
    received: sum((s) => s.received),
    added: sum((s) => s.added),
    changed: sum((s) => s.changed),
    quarantined: sum((s) => s.quarantined),
    certificate: sweeps.at(-1)?.certificate ?? null,
    reason: sweeps.at(-1)?.reason ?? null,
  };
}

function toJsonOutcome(outcome: RoundOutcome) {
  const advertiserId = outcome.summary?.advertiser.advertiserId ?? null;
  const trouble = outcome.trouble instanceof Error ? outcome.trouble.message : null;
  return { name: outcome.name, advertiserId, ...toTotals(outcome), trouble };
}

function renderOutcome(outcome: RoundOutcome): string {
  if (outcome.summary === null) return `${outcome.name}: not read`;
  const { added, changed, received, quarantined, requests, certificate, reason } = toTotals(outcome);
  const kept = `${added} new, ${changed} changed${quarantined > 0 ? `, ${quarantined} in quarantine` : ''}`;
  return `${outcome.name}: ${kept}; ${received} read in ${requests} requests\n  coverage ${certificate}: ${reason}`;
}

function requireAdvertiser(advertisers: readonly { readonly name: string }[], name: string | undefined): void {
  if (name === undefined || advertisers.some((advertiser) => advertiser.name === name)) return;
  throw new Failure(exitCodes.usage, `There is no advertiser "${name}" in the configuration.`, {
    kept: 'Nothing was started or changed.',
    next: `Configured: ${advertisers.map((advertiser) => advertiser.name).join(', ')}.`,
  });
}

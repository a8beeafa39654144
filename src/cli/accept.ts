// `intake accept-deletions` and `intake accept-unreadable`: an operator decides that ids no longer hold a certificate back. Without --yes they
// only show what would be accepted.
import { formatCount, formatIds } from '../domain/format.ts';
import { toId } from './arguments.ts';
import { type Context, command } from './command.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { loadCommandConfig } from './load-config.ts';

interface AcceptOptions {
  readonly yes: boolean;
  readonly advertiser?: string;
}

async function decide(context: Context, { yes, advertiser }: AcceptOptions, id: bigint | null): Promise<ExitCode> {
  const { env, signal, terminal } = context;
  const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy'], advertiser });
  const { toActor } = await import('../app/actor.ts');
  const { openKnown } = await import('../app/resources.ts');
  await using app = await openKnown(config, 'accept', signal);
  const { decisions } = app.store;
  const decided: Decided[] = [];
  for (const { name, advertiserId } of app.accounts) {
    const found =
      id === null ? await decisions.loadDeletions(advertiserId) : await decisions.loadUnreadable(advertiserId, id);
    const take = () =>
      id === null
        ? decisions.acceptDeletions(advertiserId, found.ids, toActor())
        : decisions.acceptUnreadable(advertiserId, id, toActor());
    decided.push({ name, ...found, accepted: yes && found.ids.length > 0 ? await take() : 0 });
  }
  const isOpen = !yes && decided.some(({ ids }) => ids.length > 0);
  terminal.result({ accepted: yes, advertisers: decided }, () =>
    [
      ...decided.map((one) => render(one, id)),
      ...(isOpen ? ['Nothing was accepted. Repeat with --yes to accept; nothing is erased by it.'] : []),
    ].join('\n'),
  );
  return isOpen ? exitCodes.usage : exitCodes.done;
}

/** What a decision is about in one account, and how many ids it was recorded for. */
interface Decided {
  readonly name: string;
  readonly ids: readonly bigint[];
  readonly since: Date | null;
  readonly reason: string | null;
  readonly accepted: number;
}

function render({ name, ids, since, reason, accepted }: Decided, id: bigint | null): string {
  if (ids.length === 0)
    return id === null
      ? `${name}: the source shows every stored application.`
      : `${name}: id ${id} is not among those that could not be read.`;
  const what =
    id === null
      ? `${formatCount(ids.length, 'application is', 'applications are')} gone at the source since ${since?.toISOString()}`
      : `id ${id} could not be read since ${since?.toISOString()} (${reason})`;
  const result = accepted > 0 ? '; accepted and recorded. intake sync --recheck proves the rest.' : ':';
  return `${name}: ${what}${result}\n  ${formatIds(ids)}`;
}

export const acceptDeletions = command<AcceptOptions>({
  name: 'accept-deletions',
  summary: 'accept that applications are gone at the source; nothing is erased',
  examples: [
    ['intake accept-deletions', 'show how many are gone, and since when'],
    ['intake accept-deletions --yes', 'accept it; the next recheck can be proven again'],
  ],
  shape: (shaped) =>
    shaped
      .option('--yes', 'accept', false)
      .option('--advertiser <name>', 'only this account, where several are configured'),
  run: (context, options) => decide(context, options, null),
});

export const acceptUnreadable = command<AcceptOptions>({
  name: 'accept-unreadable',
  summary: 'accept that the source cannot show an application; nothing is erased',
  examples: [
    ['intake accept-unreadable 120045', 'show why it cannot be read, and since when'],
    ['intake accept-unreadable 120045 --yes', 'accept it; the next recheck can be proven again'],
  ],
  shape: (shaped) =>
    shaped
      .argument('<id>', 'the id that cannot be read')
      .option('--yes', 'accept', false)
      .option('--advertiser <name>', 'only this account, where several are configured'),
  run: (context, options, id = '') => decide(context, options, toId(id)),
});

// `intake accept-deletions` and `intake accept-unreadable`: an operator decides that ids no longer hold a certificate back. Without --yes
// they only show what would be accepted.
import { formatCount, formatIds } from '../../domain/format.ts';
import type { Undecided } from '../../store/privacy/decisions.ts';
import { toId } from '../arguments.ts';
import { advertiser, type Context, command, flag, type Given } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { openKnown } from '../open.ts';

const options = { yes: flag('accept'), advertiser };

async function decide(context: Context, { yes, advertiser: name }: Given<typeof options>, id: bigint | null) {
  const { terminal } = context;
  await using app = await openKnown(context, 'accept', name);
  const { decisions } = app.store;
  const decided: Decided[] = [];
  for (const { name, advertiserId } of app.accounts) {
    const found =
      id === null ? await decisions.loadDeletions(advertiserId) : await decisions.loadUnreadable(advertiserId, id);
    const take = () =>
      id === null
        ? decisions.acceptDeletions(advertiserId, found.ids, app.by)
        : decisions.acceptUnreadable(advertiserId, id, app.by);
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

interface Decided extends Undecided {
  readonly name: string;
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

export const acceptDeletions = command({
  name: 'accept-deletions',
  summary: 'accept that applications are gone at the source; nothing is erased',
  examples: [
    ['intake accept-deletions', 'show how many are gone, and since when'],
    ['intake accept-deletions --yes', 'accept it; the next recheck can be proven again'],
  ],
  options,
  run: (context, given) => decide(context, given, null),
});

export const acceptUnreadable = command({
  name: 'accept-unreadable',
  summary: 'accept that the source cannot show an application; nothing is erased',
  examples: [
    ['intake accept-unreadable 120045', 'show why it cannot be read, and since when'],
    ['intake accept-unreadable 120045 --yes', 'accept it; the next recheck can be proven again'],
  ],
  args: [['<id>', 'the id that cannot be read']],
  options,
  run: (context, given, id = '') => decide(context, given, toId(id)),
});

// `intake quarantine`: lists elements that could not be parsed as an application, and parses them again after an upgrade.
// The content of an element is shown only on request, by its id.
import { formatCount } from '../../domain/format.ts';
import type { ReplaySummary } from '../../sync/read/replay-quarantine.ts';
import { advertiser, command, flag, option } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { openKnown } from '../open.ts';
import { toPrintable } from '../terminal.ts';

const nothing = 'The quarantine is empty.';

export const quarantine = command({
  name: 'quarantine',
  summary: 'list elements that could not be parsed as an application, show one, or parse them again',
  examples: [
    ['intake quarantine list', 'ids and reasons without content, at most 1,000 per account'],
    ['intake quarantine list --show 5f0c2a', 'one whole element: personal data on your screen, recorded in the audit'],
    ['intake quarantine replay', 'after an upgrade: elements that can be parsed now become applications'],
  ],
  args: [
    ['<action>', 'list or replay'],
    ['[id]', 'for replay: only this element'],
  ],
  options: {
    show: option('<id>', 'for list: this element with its text'),
    all: flag('for list: also elements that were resolved since'),
    advertiser,
  },
  async run(context, { show, all, advertiser: name }, action = '', id?: string) {
    const { signal, terminal } = context;
    if (action !== 'list' && action !== 'replay') throw new Misuse('The action must be list or replay.');
    if (action === 'list' && id !== undefined)
      throw new Misuse('An id alone belongs to replay; list --show prints an element.');
    if (action === 'replay' && (show !== undefined || all)) throw new Misuse('--show and --all belong to list.');
    const chosen = toElementId(show ?? id);
    const { toOwner } = await import('../../app/actor.ts');
    await using app = await openKnown(context, 'quarantine', name, 'sync');
    const recordUse = (advertiserId: bigint, facts: Readonly<Record<string, number>>) =>
      // The id of an element without an application is a hash of its content, and would outlive an erasure in the audit log.
      app.store.privacy.recordAudit({ advertiserId, action: 'quarantine', applicationId: null, by: app.by, facts });
    if (action === 'replay') {
      const source = await import('../../source/parse/list.ts');
      const { requireKey } = await import('../../sync/privacy/erase.ts');
      const { replay } = await import('../../sync/read/replay-quarantine.ts');
      await requireKey(app.store);
      const outcomes: ({ readonly name: string } & ReplaySummary)[] = [];
      for (const account of app.accounts) {
        const held = { owner: toOwner('quarantine'), leaseMs: app.config.sync.LEASE, signal };
        const summary = await replay({ store: app.store, source }, { ...account, ...held, id: chosen });
        outcomes.push({ name: account.name, ...summary });
        if (summary.read > 0) await recordUse(account.advertiserId, { replayed: summary.read, added: summary.added });
      }
      const isFound = outcomes.some(({ read, unusable }) => read + unusable > 0);
      if (chosen !== null && !isFound) throw new Misuse('No such element waits.');
      terminal.result(
        { advertisers: outcomes },
        () =>
          outcomes
            .map(
              ({ name, read, added, unusable }) =>
                `${name}: ${read} parsed, ${added} of them new applications; ${unusable} still unusable.`,
            )
            .join('\n') || nothing,
      );
      return outcomes.some(({ unusable }) => unusable > 0) ? exitCodes.incomplete : exitCodes.done;
    }
    const ofEach = async <T>(load: (advertiserId: bigint) => Promise<readonly T[]>) =>
      (await Promise.all(app.accounts.map(({ advertiserId }) => load(advertiserId)))).flat();
    if (chosen !== null) {
      const found = await ofEach((one) => app.store.quarantine.loadTexts(one, { id: chosen, after: '', limit: 10 }));
      for (const { advertiserId } of found) await recordUse(advertiserId, { shown: 1 });
      if (found.length === 0) throw new Misuse('There is no such element.');
      terminal.result({ elements: found }, () =>
        found.map((one) => `${toShort(one)} ${one.reason}\n${toPrintable(one.text)}`).join('\n'),
      );
      return exitCodes.done;
    }
    const waiting = await ofEach((one) => app.store.quarantine.load(one, { resolved: all, limit: 1_000 }));
    terminal.result({ elements: waiting }, () =>
      waiting.length === 0
        ? nothing
        : waiting
            .map(
              (one) =>
                `${toShort(one)}  advertiser ${one.advertiserId}  ${toPrintable(one.reason)}  seen ${formatCount(one.seen, 'time')}, last ${one.lastSeenAt.toISOString()}${one.resolvedAt ? ', resolved' : ''}`,
            )
            .join('\n'),
    );
    return exitCodes.done;
  },
});

/** For people: the beginning of an id. */
function toShort({ id }: { readonly id: string }): string {
  return id.slice(0, 12);
}

function toElementId(text: string | undefined): string | null {
  if (text === undefined) return null;
  if (/^[0-9a-f]{4,64}$/.test(text)) return text;
  throw new Misuse('An element is named by the beginning of its id, as `intake quarantine list` prints it.');
}

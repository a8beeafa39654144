// Stored answers of the source, parsed again: `intake quarantine` lists elements that could not be parsed as an application, shows one on
// request, and parses them again after an upgrade; `intake reparse` rebuilds the rows of screens from their stored bytes.
import { formatCount } from '../../domain/format.ts';
import { advertiser, type Context, command, flag, option } from '../command.ts';
import { exitCodes, Misuse } from '../failure.ts';
import { openFiles, openKnown } from '../open.ts';
import { toPrintable } from '../terminal.ts';

const nothing = 'The quarantine is empty.';
const audited = { action: 'quarantine', applicationId: null } as const;

export const quarantine = command({
  name: 'quarantine',
  summary: 'list elements that could not be parsed as an application, show one, or parse them again',
  examples: [
    ['intake quarantine list', 'ids and reasons without content, at most 1,000 per account'],
    ['intake quarantine list --show 5f0c2a', 'one whole element: personal data on your screen, recorded in the audit'],
    ['intake quarantine replay', 'after an upgrade: elements that can be parsed now become applications'],
  ],
  args: { '<action>': 'list or replay' },
  options: { show: option('<id>', 'for list: this element with its text', toElementId), advertiser },
  async run(context, { show, advertiser }, action = '') {
    if (action === 'list')
      return show === undefined ? await list(context, advertiser) : await reveal(context, advertiser, show);
    if (action === 'replay' && show === undefined) return await replayAll(context, advertiser);
    throw new Misuse('The action must be list or replay; --show belongs to list.');
  },
});

async function list(context: Context, advertiser: string | undefined) {
  await using app = await openKnown(context, 'quarantine', advertiser);
  const { quarantine } = app.store;
  const loaded = app.advertisers.map((one) => quarantine.loadQuarantine(one, 1_000));
  const elements = (await Promise.all(loaded)).flat();
  const lines = elements.map(({ id, advertiserId, reason, seen, lastSeenAt }) => {
    const times = `seen ${formatCount(seen, 'time')}, last ${lastSeenAt.toISOString()}`;
    return `${id.slice(0, 12)}  advertiser ${advertiserId}  ${toPrintable(reason)}  ${times}`;
  });
  context.terminal.result({ elements }, () => (lines.length > 0 ? lines : nothing));
  return exitCodes.done;
}

async function reveal(context: Context, advertiser: string | undefined, id: string) {
  await using app = await openKnown(context, 'quarantine', advertiser);
  const { quarantine } = app.store;
  const loaded = app.advertisers.map((one) => quarantine.loadQuarantineTexts(one, { id, after: '', limit: 10 }));
  const elements = (await Promise.all(loaded)).flat();
  if (elements.length === 0) throw new Misuse('There is no such element.');
  // The id of an element is a hash of its content, and would outlive an erasure in the audit log.
  for (const { advertiserId } of elements) await app.audit({ ...audited, advertiserId, facts: { shown: 1 } });
  context.terminal.result({ elements }, () =>
    elements.map(({ id, reason, text }) => `${id.slice(0, 12)} ${reason}\n${toPrintable(text)}`),
  );
  return exitCodes.done;
}

async function replayAll(context: Context, advertiser: string | undefined) {
  const { signal, terminal } = context;
  await using app = await openKnown(context, 'quarantine', advertiser, 'sync');
  const { toOwner } = await import('../../app/database.ts');
  const source = await import('../../source/parse/list.ts');
  const { requireKey } = await import('../../sync/privacy/erase.ts');
  const { replay } = await import('../../sync/read/replay-quarantine.ts');
  await requireKey(app.store);
  const advertisers = await Array.fromAsync(app.accounts, async (account) => {
    const { name, advertiserId } = account;
    const held = { owner: toOwner('quarantine'), leaseMs: app.config.sync.LEASE, signal };
    const summary = await replay({ store: app.store, source }, { ...account, ...held });
    const facts = { replayed: summary.read, added: summary.added };
    if (summary.read > 0) await app.audit({ ...audited, advertiserId, facts });
    return { name, ...summary };
  });
  const lines = advertisers.map(({ name, read, added, unusable }) => {
    return `${name}: ${read} parsed, ${added} of them new applications; ${unusable} still unusable.`;
  });
  terminal.result({ advertisers }, () => (lines.length > 0 ? lines : nothing));
  return advertisers.some(({ unusable }) => unusable > 0) ? exitCodes.incomplete : exitCodes.done;
}

function toElementId(text: string): string {
  if (/^[0-9a-f]{4,64}$/.test(text)) return text;
  throw new Misuse('An element is named by the beginning of its id, as `intake quarantine list` prints it.');
}

export const reparse = command({
  name: 'reparse',
  summary: 'parse stored screens again that this version has not parsed yet',
  examples: [['intake reparse', 'after an upgrade, or when status reports unreadable screens']],
  options: { all: flag('every stored screen'), advertiser },
  async run(context, { all, advertiser: name }) {
    const { parseScreens, screenParserVersion } = await import('../../source/parse/screen.ts');
    const { reparse: parseAgain } = await import('../../sync/files/reparse.ts');
    await using app = await openFiles(context, 'reparse', name, 'read');
    const { store, blobs, advertisers } = app;
    const request = { advertisers, parserVersion: all ? null : screenParserVersion, signal: context.signal };
    const found = await parseAgain({ store, blobs, parseScreens }, request);
    const { read, unreadable, missing } = found;
    const lost = missing > 0 ? `, ${missing} not in the store: intake verify` : '';
    const words = `${formatCount(read, 'screen')} parsed again, ${unreadable} unreadable${lost}.`;
    context.terminal.result(found, () => words);
    return unreadable + missing > 0 ? exitCodes.incomplete : exitCodes.done;
  },
});

// Decisions of a person, on record: `intake accept-deletions` and `intake accept-unreadable` (ids no longer hold a certificate back),
// `intake unhalt` (the cause of a halt is gone) and `intake adopt-store` (this database owns the files). Where it takes --yes, a command
// without it only shows what it would do.
import { formatCount, formatIds } from '../../domain/format.ts';
import { advertiser, type Context, command, flag, type Given, toId } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { loadCommandConfig, openKnown } from '../open.ts';

const options = { yes: flag('accept'), advertiser };

/** Accepts the deletions, or the id that cannot be read. */
async function accept(context: Context, { yes, advertiser: name }: Given<typeof options>, id: bigint | null) {
  await using app = await openKnown(context, 'accept', name);
  const { decisions } = app.store;
  const decision = { what: id === null ? 'deletions' : 'unreadable', by: app.by } as const;
  const decided = await Array.fromAsync(app.accounts, async ({ name, advertiserId }) => {
    const found = await decisions.loadUndecided(advertiserId, id);
    const accepted = yes && found.ids.length > 0 ? await decisions.decide(advertiserId, decision, found.ids) : 0;
    return { name, ...found, accepted };
  });
  const isOpen = !yes && decided.some(({ ids }) => ids.length > 0);
  const none = id === null ? 'no application is gone at the source' : `id ${id} is not known to be unreadable`;
  context.terminal.result({ accepted: yes, advertisers: decided }, () => [
    ...decided.map(({ name, ids, since, reason, accepted }) => {
      if (ids.length === 0) return `${name}: ${none}.`;
      const gone = `${formatCount(ids.length, 'application is', 'applications are')} gone at the source`;
      const what = `${id === null ? gone : `id ${id} could not be read (${reason})`} since ${since?.toISOString()}`;
      const result = accepted > 0 ? '; accepted and recorded. intake sync --recheck proves the rest.' : ':';
      return `${name}: ${what}${result}\n  ${formatIds(ids)}`;
    }),
    isOpen && 'Nothing was accepted. Repeat with --yes to accept; nothing is erased by it.',
  ]);
  return isOpen ? exitCodes.usage : exitCodes.done;
}

export const acceptDeletions = command({
  name: 'accept-deletions',
  summary: 'accept that applications are gone at the source; nothing is erased',
  examples: [
    ['intake accept-deletions', 'show how many are gone, and since when'],
    ['intake accept-deletions --yes', 'accept it; the next recheck can be proven again'],
  ],
  options,
  run: (context, given) => accept(context, given, null),
});

export const acceptUnreadable = command({
  name: 'accept-unreadable',
  summary: 'accept that the source cannot show an application; nothing is erased',
  examples: [
    ['intake accept-unreadable 120045', 'show why it cannot be read, and since when'],
    ['intake accept-unreadable 120045 --yes', 'accept it; the next recheck can be proven again'],
  ],
  args: { '<id>': 'the id that cannot be read' },
  options,
  run: (context, given, id = '') => accept(context, given, toId(id)),
});

export const unhalt = command({
  name: 'unhalt',
  summary: 'resume a halted advertiser after you have found the cause',
  examples: [['intake unhalt', 'every configured advertiser that is halted']],
  options: { advertiser },
  async run({ env, terminal }, { advertiser }) {
    const config = await loadCommandConfig(env, ['database', 'accounts', 'privacy'], advertiser);
    const { openStoreOf } = await import('../../app/database.ts');
    await using store = await openStoreOf(config, 'unhalt');
    const ended: string[] = [];
    for (const { name } of config.accounts) if (await store.advertisers.unhaltAdvertiser(name)) ended.push(name);
    terminal.result({ unhalted: ended }, () =>
      ended.length === 0 ? 'No advertiser is halted.' : `Active again: ${ended.join(', ')}. The next sync reads them.`,
    );
    return exitCodes.done;
  },
});

export const adoptStore = command({
  name: 'adopt-store',
  summary: 'make this database the owner of BLOBS_URL and EXTRACT_URL, after a restore or a move',
  examples: [
    ['intake adopt-store', 'show which database owns the store'],
    ['intake adopt-store --yes', 'take it; the former owner then neither writes nor deletes there'],
  ],
  options: { yes: flag('take the store') },
  async run({ env, signal, terminal }, { yes }) {
    const config = await loadCommandConfig(env, ['database', 'privacy', 'blobs', 'extract']);
    const { openStoreOf } = await import('../../app/database.ts');
    const { adoptExtracts } = await import('../../app/extract.ts');
    const { openConfiguredBlobs } = await import('../../app/storage.ts');
    const { adoptStore: adopt, loadOwner } = await import('../../sync/files/store-owner.ts');
    await using store = await openStoreOf(config, 'adopt-store');
    await using blobs = await openConfiguredBlobs(config);
    const deps = { store, blobs };
    const { owner: former, refusal } = await loadOwner(deps, signal);
    const wasOwn = former !== null && refusal === null;
    if (yes) await adopt(deps, signal);
    const now = yes ? await loadOwner(deps, signal) : null;
    // Another database has adopted it meanwhile.
    if (now?.refusal) throw now.refusal;
    const extracts = yes ? await adoptExtracts(config, store, signal) : null;
    const { location } = blobs;
    const owner = now?.owner ?? null;
    terminal.result({ adopted: yes, location, former, wasOwn, owner, extracts }, () => {
      if (owner === null) {
        const whose = former ? `belongs to the database ${former.databaseId}, epoch ${former.epoch}` : 'names no owner';
        const here = wasOwn ? ', which is this one' : '';
        return `${location} ${whose}${here}. Nothing was changed. Stop the owner, then repeat with --yes to take the store.`;
      }
      return [
        `${location} now belongs to this database (${owner.databaseId}), epoch ${owner.epoch}.`,
        extracts !== null && `${extracts} now holds the extracts of this database.`,
        'A former owner that still runs begins no upload after 10 s and no delete.',
        'Next: intake sync --recheck, then intake verify --full.',
      ];
    });
    return yes ? exitCodes.done : exitCodes.usage;
  },
});

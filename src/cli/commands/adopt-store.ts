// `intake adopt-store`: makes this database the owner of the store of files and of the target of its extracts, after a restore or a move.
// Without --yes it only shows whose the store is.
import { command, flag } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

export const adoptStore = command({
  name: 'adopt-store',
  summary: 'make this database the owner of BLOBS_URL and EXTRACT_URL, after a restore or a move',
  examples: [
    ['intake adopt-store', 'show which database owns the store'],
    ['intake adopt-store --yes', 'take it; the former owner then neither writes nor deletes there'],
  ],
  options: { yes: flag('take the store') },
  async run({ env, signal, terminal }, { yes }) {
    const config = await loadCommandConfig(env, { needs: ['database', 'privacy', 'blobs', 'extract'] });
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
        const whose =
          former === null ? 'names no owner' : `belongs to the database ${former.databaseId}, epoch ${former.epoch}`;
        const here = wasOwn ? ', which is this one' : '';
        return `${location} ${whose}${here}. Nothing was changed. Stop the owner, then repeat with --yes to take the store.`;
      }
      return [
        `${location} now belongs to this database (${owner.databaseId}), epoch ${owner.epoch}.`,
        ...(extracts === null ? [] : [`${extracts} now holds the extracts of this database.`]),
        'A former owner that still runs begins no upload after 10 s and no delete.',
        'Next: intake sync --recheck, then intake verify --full.',
      ].join('\n');
    });
    return yes ? exitCodes.done : exitCodes.usage;
  },
});

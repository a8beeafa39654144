// `intake reparse`: rebuilds the rows of screens from their stored bytes, without requests to the source.
import { formatCount } from '../domain/format.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { loadCommandConfig } from './load-config.ts';

export const reparse = command<{ readonly all: boolean; readonly advertiser?: string }>({
  name: 'reparse',
  summary: 'parse stored screens again that this version has not parsed yet',
  examples: [
    ['intake reparse', 'after an upgrade, or when status reports unreadable screens'],
    ['intake reparse --all', 'every stored screen'],
  ],
  shape: (shaped) =>
    shaped
      .option('--all', 'every stored screen', false)
      .option('--advertiser <name>', 'only this account, where several are configured'),
  async run({ env, signal, terminal }, { all, advertiser }) {
    const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy', 'blobs'], advertiser });
    const { openBlobsOf, openKnown } = await import('../app/resources.ts');
    const { parseScreens, screenParserVersion } = await import('../source/parse/screen.ts');
    const { reparse: parseAgain } = await import('../sync/files/reparse.ts');
    await using app = await openKnown(config, 'reparse', signal);
    const { store, accounts } = app;
    await using blobs = await openBlobsOf(config, store, signal, 'read');
    const advertisers = accounts.map(({ advertiserId }) => advertiserId);
    const parserVersion = all ? null : screenParserVersion;
    const found = await parseAgain({ store, blobs, parseScreens }, { advertisers, parserVersion, signal });
    terminal.result(
      found,
      () =>
        `${formatCount(found.read, 'screen')} parsed again, ${found.unreadable} unreadable${found.missing > 0 ? `, ${found.missing} not in the store: intake verify` : ''}.`,
    );
    return found.unreadable + found.missing > 0 ? exitCodes.incomplete : exitCodes.done;
  },
});

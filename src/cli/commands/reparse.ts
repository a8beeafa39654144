// `intake reparse`: rebuilds the rows of screens from their stored bytes, without requests to the source.
import { formatCount } from '../../domain/format.ts';
import { advertiser, command, flag } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { openFiles } from '../open.ts';

export const reparse = command({
  name: 'reparse',
  summary: 'parse stored screens again that this version has not parsed yet',
  examples: [
    ['intake reparse', 'after an upgrade, or when status reports unreadable screens'],
    ['intake reparse --all', 'every stored screen'],
  ],
  options: { all: flag('every stored screen'), advertiser },
  async run(context, { all, advertiser: name }) {
    const { signal, terminal } = context;
    const { parseScreens, screenParserVersion } = await import('../../source/parse/screen.ts');
    const { reparse: parseAgain } = await import('../../sync/files/reparse.ts');
    await using app = await openFiles(context, 'reparse', name, 'read');
    const { store, blobs } = app;
    const advertisers = app.accounts.map(({ advertiserId }) => advertiserId);
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

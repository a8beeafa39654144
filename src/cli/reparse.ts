// `intake reparse`: the rows of screens from their stored bytes, without the network.
import { formatCount } from '../domain/format.ts';
import { requireAdvertiser } from './arguments.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { loadCommandConfig } from './load-config.ts';

export const reparse = command<{ readonly all: boolean; readonly advertiser?: string }>({
  name: 'reparse',
  summary: 'read stored screens again, those that this version has not read',
  examples: [
    ['intake reparse', 'after an upgrade, or when status names unreadable screens'],
    ['intake reparse --all', 'every stored screen'],
  ],
  shape: (shaped) =>
    shaped
      .option('--all', 'every stored screen', false)
      .option('--advertiser <name>', 'only this one of several configured accounts'),
  async run({ env, signal, terminal }, { all, advertiser }) {
    const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy', 'blobs'] });
    requireAdvertiser(config.source.advertisers, advertiser);
    const { reparseOnce } = await import('../app/files.ts');
    const found = await reparseOnce(config, { all, advertiser, signal });
    terminal.result(
      found,
      () =>
        `${formatCount(found.read, 'screen')} read again, ${found.unreadable} cannot be read${found.missing > 0 ? `, ${found.missing} not in the store: intake verify` : ''}.`,
    );
    return found.unreadable + found.missing > 0 ? exitCodes.incomplete : exitCodes.done;
  },
});

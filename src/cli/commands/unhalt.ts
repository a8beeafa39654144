// `intake unhalt`: ends a halt after a person has found its cause. A halt by a refused credential ends by itself.
import { advertiser, command } from '../command.ts';
import { exitCodes } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';

export const unhalt = command({
  name: 'unhalt',
  summary: 'resume a halted advertiser after you have found the cause',
  examples: [
    ['intake unhalt', 'every configured advertiser that is halted'],
    ['intake unhalt --advertiser acme', 'one of several'],
  ],
  options: { advertiser },
  async run({ env, terminal }, { advertiser }) {
    const config = await loadCommandConfig(env, { needs: ['database', 'accounts', 'privacy'], advertiser });
    const { openStoreOf } = await import('../../app/database.ts');
    await using store = await openStoreOf(config, 'unhalt');
    const ended: string[] = [];
    for (const { name } of config.accounts) {
      if (await store.advertisers.unhalt(name)) ended.push(name);
    }
    terminal.result({ unhalted: ended }, () =>
      ended.length === 0 ? 'No advertiser is halted.' : `Active again: ${ended.join(', ')}. The next sync reads them.`,
    );
    return exitCodes.done;
  },
});

// `intake unhalt`: ends a halt after a person has looked. A refused credential recovers by itself.
import { requireAdvertiser } from './arguments.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { loadCommandConfig } from './load-config.ts';

interface UnhaltOptions {
  readonly advertiser?: string;
}

export const unhalt = command<UnhaltOptions>({
  name: 'unhalt',
  summary: 'end the halt of an advertiser after a person has looked',
  examples: [
    ['intake unhalt', 'every halted advertiser of the configuration'],
    ['intake unhalt --advertiser acme', 'one of several'],
  ],
  shape: (shaped) => shaped.option('--advertiser <name>', 'only this one of several configured accounts'),
  async run({ env, signal, terminal }, { advertiser }) {
    const config = await loadCommandConfig(env, { needs: ['database', 'source', 'privacy'] });
    requireAdvertiser(config.source.advertisers, advertiser);
    const { unhaltAdvertisers } = await import('../app.ts');
    const ended = await unhaltAdvertisers(config, { advertiser, signal });
    terminal.result({ unhalted: ended }, () =>
      ended.length === 0 ? 'No advertiser is halted.' : `Active again: ${ended.join(', ')}. The next sync reads them.`,
    );
    return exitCodes.done;
  },
});

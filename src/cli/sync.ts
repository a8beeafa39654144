// `intake sync`: one complete round over the configured advertisers, then it ends.
import { command } from './command.ts';
import { reportOutcomes, requireAdvertiser, showReading } from './reading.ts';

interface SyncOptions {
  readonly recheck: boolean;
  readonly advertiser?: string;
}

export const sync = command<SyncOptions>({
  name: 'sync',
  summary: 'read what is new, once, and end',
  examples: [
    ['intake sync', 'what is new since the last round; the first round reads everything'],
    ['intake sync --recheck', 'read everything again: changes, late arrivals, withdrawals'],
    ['intake sync --advertiser acme --json', 'one of several accounts, for a script'],
  ],
  shape: (shaped) =>
    shaped
      .option('--recheck', 'read everything again', false)
      .option('--advertiser <name>', 'only this one of several configured accounts'),
  async run(context, { recheck, advertiser }) {
    const { loadConfig } = await import('../config.ts');
    const config = loadConfig(context.env, { needs: ['database', 'source', 'sync', 'privacy'] });
    requireAdvertiser(config.source.advertisers, advertiser);
    const { syncOnce } = await import('../app.ts');
    const { signal } = context;
    const outcomes = await showReading(context, (events) =>
      syncOnce(config, { ...events, recheck, advertiser, signal }),
    );
    return await reportOutcomes(context, outcomes);
  },
});

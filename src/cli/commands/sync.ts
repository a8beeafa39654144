// `intake sync`: one complete sync of the configured advertisers.
import { advertiser, command, flag, unless } from '../command.ts';
import { loadReadConfig } from '../open.ts';
import { reportOutcomes, showReadProgress } from '../read-report.ts';

export const sync = command({
  name: 'sync',
  summary: 'read what is new, download its files, and exit',
  examples: [
    ['intake sync', 'what is new since the last sync; the first one reads everything'],
    ['intake sync --recheck', 'read everything again: changes, late arrivals, withdrawals'],
    ['intake sync --no-files', 'applications only; their files stay queued for later'],
    ['intake sync --advertiser acme --json', 'one of several accounts, for a script'],
  ],
  options: {
    recheck: flag('read everything again'),
    files: unless('leave downloads queued'),
    advertiser,
  },
  async run(context, { recheck, files, advertiser }) {
    const config = await loadReadConfig(context, advertiser);
    const { syncOnce } = await import('../../app.ts');
    const { signal } = context;
    const outcomes = await showReadProgress(context, (events) =>
      syncOnce(config, { ...events, recheck, files, signal }),
    );
    return reportOutcomes(context, outcomes);
  },
});

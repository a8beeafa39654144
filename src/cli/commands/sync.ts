// `intake sync`: one complete sync of the configured advertisers. `intake backfill`: one sweep of a chosen range, beside a live worker;
// after an interruption the next run continues it.
import type { ReadConfig } from '../../app.ts';
import { firstPosition, lastPosition } from '../../domain/coverage/position.ts';
import { formatCount, formatSpan } from '../../domain/format.ts';
import type { BackfillRange } from '../../sync/read/read-account.ts';
import { advertiser, type Context, command, flag, type Given, option, toId, toSeconds, unless } from '../command.ts';
import { type ExitCode, exitCodes, Misuse } from '../failure.ts';
import { loadCommandConfig } from '../open.ts';
import { runAndReport } from '../read-report.ts';

export const sync = command({
  name: 'sync',
  summary: 'read what is new, download its files, and exit',
  examples: [
    ['intake sync', 'what is new since the last sync; the first one reads everything'],
    ['intake sync --recheck', 'read everything again: changes, late arrivals, withdrawals'],
  ],
  options: { recheck: flag('read everything again'), files: unless('leave downloads queued'), advertiser },
  async run(context, { recheck, files, advertiser }) {
    const config = await loadReadConfig(context, advertiser);
    const { syncOnce } = await import('../../app.ts');
    return await runAndReport(context, (events) => syncOnce(config, { ...events, recheck, files }));
  },
});

const options = {
  from: option('<date>', 'submitted on this day or later (2026-07-01, or a time with its zone)', toSeconds('start')),
  to: option('<date>', 'submitted on this day or earlier', toSeconds('end')),
  afterId: option('<id>', 'ids above this one', toId),
  beforeId: option('<id>', 'ids below this one', toId),
  gaps: flag('only what coverage says is open'),
  restart: flag('discard an unfinished sweep of the same range and start over'),
  files: unless('leave downloads queued'),
  dryRun: flag('estimate requests and duration, store nothing'),
  advertiser,
};

export const backfill = command({
  name: 'backfill',
  summary: 'read a chosen range once, or everything, beside a live worker',
  examples: [
    ['intake backfill', 'everything; continues an unfinished backfill where it stopped'],
    ['intake backfill --from 2026-07-01 --to 2026-07-31', 'what was submitted in July'],
    ['intake backfill --after-id 120000 --before-id 150000', 'a range of ids, without the two given ones'],
    ['intake backfill --dry-run', 'estimate requests and duration; sends two requests, stores nothing'],
  ],
  options,
  async run(context, given) {
    const { restart, files, dryRun, advertiser } = given;
    const range = toRange(given);
    const config = await loadReadConfig(context, advertiser);
    if (dryRun) return await showEstimates(context, config, range);
    const { backfillOnce } = await import('../../app.ts');
    return await runAndReport(context, (events) => backfillOnce(config, { ...events, range, restart, files }));
  },
});

/** Tells the warnings of the configuration, which a worker logs. */
async function loadReadConfig({ env, terminal }: Context, advertiser: string | undefined) {
  const config = await loadCommandConfig(env, ['database', 'source', 'sync', 'privacy', 'blobs'], advertiser);
  for (const warning of config.warnings) terminal.note(`Warning: ${warning}.`);
  return config;
}

function toRange({ from, to, afterId, beforeId, gaps }: Given<typeof options>): BackfillRange {
  const byDate = from !== undefined || to !== undefined;
  const byId = afterId !== undefined || beforeId !== undefined;
  if (Number(byDate) + Number(byId) + Number(gaps) > 1) {
    throw new Misuse('Choose one: a range of dates, a range of ids, or --gaps.');
  }
  if (gaps) return 'gaps';
  const [low, high] = byDate
    ? [from ?? 0n, to ?? null]
    : [(afterId ?? firstPosition - 1n) + 1n, beforeId === undefined ? null : beforeId - 1n];
  if (low > (high ?? lastPosition))
    throw new Misuse('The range is empty: nothing lies between its beginning and its end.');
  return { axis: byDate ? 'date' : 'id', low, high };
}

/** What a backfill would cost, per advertiser and range. Stores nothing of what it reads. */
async function showEstimates(
  { signal, terminal }: Context,
  config: ReadConfig,
  chosen: BackfillRange,
): Promise<ExitCode> {
  const { backfillParallel: parallel } = await import('../../app.ts');
  const { openAnyStore } = await import('../../app/database.ts');
  const { openSources } = await import('../../app/clients.ts');
  const { toRanges } = await import('../../sync/read/read-account.ts');
  const { estimate } = await import('../../sync/read/estimate.ts');
  // An estimate creates a missing schema but does not upgrade an existing one.
  await using store = await openAnyStore(config, 'backfill');
  const { state } = await store.schema.loadSchema();
  await (state === 'absent' ? store.schema.ensure({ signal }) : store.schema.requireSchema());
  await using sources = openSources(config, store, { isLook: true });
  const { advertisers, SOURCE_RATE: requestsPerSecond } = config.source;
  const estimates = [];
  for (const account of advertisers) {
    const source = sources.open(account);
    const { advertiserId } = await store.advertisers.lookUp(account.name, account.advertiserId);
    for (const range of await toRanges({ store }, advertiserId, chosen)) {
      const isById = range.axis === 'id' && advertiserId !== null;
      const held = isById ? await store.sweeps.countListed(advertiserId, range) : 0;
      const asked = { range, held, requestsPerSecond, parallel, now: Date.now(), signal };
      const plan = { axis: range.axis, from: range.low, to: range.high };
      estimates.push({ name: account.name, plan, estimate: await estimate(source, asked) });
    }
  }
  const lines = estimates.map(({ name, plan: { axis, from, to }, estimate }) => {
    const { applications, requests, durationMs, pageSize } = estimate;
    const range = `${axis === 'date' ? 'submitted' : 'ids'} ${formatPosition(axis, from)} to ${formatPosition(axis, to)}`;
    if (applications === null || requests === null || durationMs === null) return `${name}: ${range}; size unknown.`;
    return `${name}: ${range}; about ${formatCount(applications, 'application')}, ${formatCount(requests, 'request')} of up to ${pageSize}, ${formatSpan(durationMs)}.`;
  });
  terminal.result({ estimates }, () => (lines.length > 0 ? lines : 'Nothing to read: every range is closed.'));
  return exitCodes.done;
}

function formatPosition(axis: 'id' | 'date', position: bigint | null): string {
  if (position === null) return 'the newest';
  return axis === 'date' ? new Date(Number(position) * 1_000).toISOString() : String(position);
}

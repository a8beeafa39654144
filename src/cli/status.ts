// `intake status`: one value, printed for a person or as JSON.
import prettyBytes from 'pretty-bytes';
import prettyMilliseconds from 'pretty-ms';
import type { AdvertiserStatus, Status } from '../domain/status.ts';
import { command } from './command.ts';
import { exitCodes } from './exit-codes.ts';

export const status = command({
  name: 'status',
  summary: 'show advertisers, coverage, cursor, queue and problems',
  examples: [
    ['intake status', 'what is stored, how far it is read, and what needs a look'],
    ['intake status --json', 'the same for a program'],
  ],
  async run({ env, signal, terminal }) {
    const { loadConfig } = await import('../config.ts');
    const config = loadConfig(env, { needs: ['database', 'privacy'] });
    const { loadStatus } = await import('../app.ts');
    const value = await loadStatus(config, signal);
    const { default: Table } = await import('cli-table3');
    terminal.result(toJsonStatus(value), () =>
      renderStatus(value, (rows) => {
        const table = new Table({ style: { head: [], border: [] } });
        table.push(...rows);
        return table.toString();
      }),
    );
    return exitCodes.done;
  },
});

/** For programs: without the arrival times, which only serve to find a silence. */
function toJsonStatus(value: Status): object {
  return { ...value, advertisers: value.advertisers.map(({ submittedAt: _, ...one }) => one) };
}

/** Problems first, each with the command that helps; then a table of facts per advertiser. */
function renderStatus(status: Status, toTable: (rows: string[][]) => string): string {
  const problems = status.problems.map(
    ({ advertiser, what, command: run }) => `  ! ${advertiser}: ${what}\n    ${run}`,
  );
  const advertisers = status.advertisers.map((one) => `\n${one.name}\n${toTable(toFacts(one, status.at))}`);
  return [status.headline, ...problems, ...advertisers].join('\n');
}

function toFacts(one: AdvertiserStatus, now: Date): string[][] {
  const files = Object.entries(one.attachments).map(([state, count]) => `${count} ${state}`);
  const sweep = one.lastSweep;
  return [
    ['advertiser', one.advertiserId === null ? 'not known yet' : String(one.advertiserId)],
    ['state', one.halt === null ? 'active' : `halted: ${one.halt.reason}`],
    ['applications', String(one.applications)],
    ['newest', one.newestSubmittedAt?.toISOString() ?? 'none'],
    ['read up to', one.cursor === null ? 'nothing yet' : `id ${one.cursor.afterId}, ${toAgo(one.cursor.asOf, now)}`],
    ['attachments', files.join(', ') || 'none'],
    ['held', `${one.blobs.count} distinct files, ${prettyBytes(one.blobs.bytes)}`],
    [
      'waiting downloads',
      one.notThere > 0 ? `${one.waiting}, of which ${one.notThere} are not at the source yet` : String(one.waiting),
    ],
    [
      'last reading',
      sweep === null
        ? 'none'
        : `${sweep.purpose}, ${sweep.state}, ${sweep.requests} requests, ${toAgo(sweep.startedAt, now)}`,
    ],
    ['coverage', sweep?.certificate ? `${sweep.certificate}: ${sweep.reason}` : 'nothing is proven yet'],
  ];
}

function toAgo(at: Date, now: Date): string {
  return `${prettyMilliseconds(Math.max(0, now.getTime() - at.getTime()), { compact: true })} ago`;
}

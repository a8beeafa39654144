// Renders the status as text: a headline, problems with the command that helps, a table of facts per advertiser.
import Table from 'cli-table3';
import { formatAgo, formatBytes, formatCount, formatSpan } from '../domain/format.ts';
import {
  type AdvertiserStatus,
  type CoverageStatus,
  type SweepFacts,
  toSweepName,
  toSweepResult,
} from '../domain/status/advertiser-status.ts';
import type { Status } from '../domain/status/status.ts';
import { toWebhookWords, type WebhookStatus } from '../domain/webhook.ts';
import { toPrintable } from './terminal.ts';

export function renderStatus(status: Status): string {
  const problems = status.problems.map(
    ({ advertiser, what, command, urgent }) =>
      `  ${urgent ? '!' : '-'} ${advertiser === null ? '' : `${advertiser}: `}${toPrintable(what)}\n    ${command}`,
  );
  const advertisers = status.advertisers.map((one) => `\n${one.name}\n${renderTable([], toFacts(one, status))}`);
  const webhooks = status.webhooks.length === 0 ? [] : [`\nwebhooks\n${renderWebhooks(status.webhooks, status.at)}`];
  return [status.headline, ...problems, ...advertisers, ...webhooks].join('\n');
}

export function renderWebhooks(webhooks: readonly WebhookStatus[], now: Date): string {
  const rows = webhooks.map((one) => toWebhookWords(one, now));
  return renderTable(
    Object.keys(rows[0] ?? {}),
    rows.map((row) => Object.values(row)),
  );
}

export function renderTable(head: string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({ head, style: { head: [], border: [] } });
  table.push(...rows.map((row) => row.map(toPrintable)));
  return table.toString();
}

const fileStates: Readonly<Record<string, string>> = {
  infected: 'infected (the source reports a virus; no bytes are stored)',
  given_up: 'given up',
};

function toFacts(one: AdvertiserStatus, { at: now, verifyWithinMs }: Status): [string, string][] {
  const files = Object.entries(one.attachments).map(([state, count]) => `${count} ${fileStates[state] ?? state}`);
  const { coverage, cursor, lastSweep: sweep, verifiedSince, waiting, notThere } = one;
  const ago = (at: Date | null, none: string) => (at === null ? none : formatAgo(at, now));
  const limit = verifyWithinMs === null ? '' : `; the limit is ${formatSpan(verifyWithinMs)}`;
  const unreadMs = Math.max(1_000, now.getTime() - (verifiedSince?.getTime() ?? 0));
  const absent = notThere > 0 ? `, ${notThere} not at the source yet` : '';
  return [
    ['advertiser', one.advertiserId === null ? 'not known yet' : String(one.advertiserId)],
    ['state', one.halt === null ? 'active' : `halted: ${one.halt.reason}`],
    ['applications', String(one.applications)],
    ['newest', one.newestSubmittedAt?.toISOString() ?? 'none'],
    ['read up to', cursor === null ? 'nothing yet' : `id ${cursor.afterId}`],
    ['last poll', ago(one.readAt, 'never')],
    ['coverage', coverage === null ? 'unproven: no sweep has finished yet' : toCovered(coverage)],
    ['last proof', ago(coverage && coverage.certificate !== 'unproven' ? coverage.asOf : null, 'none')],
    ['open ranges', String(one.openRanges)],
    ['late arrivals', one.latenessMs === null ? 'none' : `up to ${formatSpan(one.latenessMs)} after a higher id`],
    ['last sweep', sweep === null ? 'none' : toSwept(sweep, now)],
    ...one.unfinished.map((stopped): [string, string] => [
      'unfinished',
      `${toSweepName(stopped)} of ${formatAgo(stopped.startedAt, now)}: ${stopped.reason}`,
    ]),
    ...(one.volatile.length === 0 ? [] : [['volatile members', one.volatile.join(', ')] as [string, string]]),
    ['attachments', files.join(', ') || 'none'],
    ['files stored', `${formatCount(one.blobs.count, 'distinct file')}, ${formatBytes(one.blobs.bytes)}`],
    ['stored bytes', verifiedSince ? `all read within the last ${formatSpan(unreadMs, 1)}${limit}` : 'none'],
    ['waiting downloads', waiting === 0 ? 'none' : `${waiting}, ${one.due} of them due${absent}`],
  ];
}

function toSwept(sweep: SweepFacts, now: Date): string {
  const { word } = toSweepResult(sweep);
  const requests = formatCount(sweep.requests, 'request');
  return `${toSweepName(sweep)} ${formatAgo(sweep.startedAt, now)}: ${word}, ${sweep.added} new, ${sweep.changed} changed, ${requests}`;
}

function toCovered({ certificate, risk, reason, completeThrough }: CoverageStatus): string {
  if (certificate === 'unproven' || completeThrough === null) return `unproven: ${reason}`;
  return `${certificate}${risk === 'doubt' ? ', in doubt,' : ''} through ${completeThrough.toISOString()}: ${reason}`;
}

// The status page: is all well, what to do if not, then the facts behind it. Made for a reader with ten seconds; plain HTML without
// scripts. Shows counts, configured names and times, never a person; hono's html escapes inserted values.

import { html } from 'hono/html';
import { formatCount, formatMoment, formatSpan } from '../../domain/format.ts';
import {
  type AdvertiserStatus,
  type CoverageStatus,
  type History,
  type Problem,
  toSweepName,
  toSweepResult,
} from '../../domain/status/advertiser-status.ts';
import { isHealthy, type Status } from '../../domain/status/status.ts';
import { toWebhookWords, type WebhookState } from '../../domain/webhook.ts';
import { type Html, type Mood, renderAgo, renderDocument, renderHeadline, renderResult, renderTable } from './page.ts';

export function renderStatusPage(status: Status, history: History, refreshSeconds: number | null): Html {
  const mood = toMood(status);
  const body = html`<main>
${renderHeadline(mood, status.headline)}
${status.problems.length > 0 ? renderProblems(status.problems) : ''}
${renderAdvertisers(status)}
${renderWebhooks(status)}
${renderHistory(history, refreshSeconds)}
${renderSweeps(history, status.at)}
</main>`;
  return renderDocument(`${mood.word} · Intake`, body, status.at, refreshSeconds);
}

/** Shown while the status cannot be loaded. `reason`: why the database does not answer. */
export function renderUnknownPage(reason: string | null, since: Date | null): Html {
  const why = reason && html`<p>${reason}${since && ` Since ${formatMoment(since)}.`}</p>`;
  const what = 'The worker waits and continues by itself once the database is back. To see what is wrong, run:';
  const body = html`<main>
${renderHeadline({ name: 'bad', sign: '!', word: 'Unknown' }, 'The database does not answer, so the status is unknown.', why)}
${renderProblems([{ advertiser: null, what, command: 'intake doctor', urgent: true }])}
</main>`;
  return renderDocument('Unknown · Intake', body, new Date(), 30);
}

function toMood(status: Status): Mood {
  if (!isHealthy(status)) return { name: 'bad', sign: '!', word: 'Needs attention' };
  if (status.problems.length > 0) return { name: 'fair', sign: 'i', word: 'Working' };
  return { name: 'good', sign: '✓', word: 'Healthy' };
}

function renderProblems(problems: readonly Problem[]): Html {
  return html`<section aria-labelledby="problems"><h2 id="problems">What to do</h2>
<ol class="problems">${problems.map(
    ({ advertiser, what, command, urgent }) => html`<li class="problem ${urgent ? 'bad' : 'fair'}">
<p><strong class="badge">${urgent ? 'urgent' : 'look'}</strong> ${advertiser && html`<strong>${advertiser}</strong> `}${what}</p>
<p class="command"><code>${command}</code></p></li>
`,
  )}</ol></section>`;
}

function renderAdvertisers({ advertisers, problems, at }: Status): Html {
  const troubled = new Set(problems.map((problem) => problem.advertiser));
  const shown = [...advertisers].sort((a, b) => Number(troubled.has(b.name)) - Number(troubled.has(a.name)));
  return renderTable({
    id: 'advertisers',
    title: 'Advertisers',
    ...(shown.some((one) => toLost(one).length > 0) && { about: aboutLost }),
    columns: ['Name', '#Applications', 'Newest', 'Last checked', 'Coverage', 'Late arrivals', '#Files', '#Waiting'],
    rows: shown.map((one) => [
      html`${one.name}<span class="aside">${one.advertiserId === null ? '' : ` ${one.advertiserId}`}</span>`,
      formatCount(one.applications),
      renderAgo(one.newestSubmittedAt, at, 'none'),
      one.halt === null ? renderAgo(one.readAt, at) : html`<strong class="badge bad">halted</strong>`,
      renderCoverage(one, at),
      one.latenessMs === null ? 'none' : `up to ${formatSpan(one.latenessMs)}`,
      renderFiles(one),
      formatCount(one.waiting),
    ]),
  });
}

/** The final states without bytes that the page does not list as problems: the source has no file, or none that may be stored. */
const lost = ['infected', 'missing'] as const;
const aboutLost =
  'Intake stores no bytes of infected files, in which the source reports a virus; missing files have been unavailable there for a day. Ask the applicant for them. If the source has a missing file again, run intake retry --state missing.';

function toLost({ attachments }: AdvertiserStatus): string[] {
  return lost.flatMap((state) => (attachments[state] ? [`${formatCount(attachments[state])}\u00a0${state}`] : []));
}

function renderFiles(one: AdvertiserStatus): Html {
  const { stored = 0 } = one.attachments;
  return html`${formatCount(stored)} <span class="aside">${toLost(one).join(', ')}</span>`;
}

const moodOf = {
  new: 'fair',
  'up to date': 'good',
  delivering: 'good',
  failing: 'fair',
  halted: 'bad',
  disabled: 'bad',
} as const;

function renderWebhooks({ webhooks, at }: Status): Html {
  if (webhooks.length === 0) return html``;
  const badge = (state: WebhookState) => html`<span class="badge ${moodOf[state]}">${state}</span>`;
  const words = webhooks.map((one) => toWebhookWords(one, at));
  return renderTable({
    id: 'webhooks',
    title: 'Webhooks',
    columns: ['Name', 'Advertiser', 'State', '#Position', '#Events waiting', '#Behind', 'Last answer', 'Next try'],
    rows: words.map((row) => Object.values({ ...row, state: badge(row.state) })),
  });
}

function renderCoverage({ name, coverage }: AdvertiserStatus, now: Date): Html {
  const certificate = coverage?.certificate ?? 'unproven';
  const through = coverage?.completeThrough;
  return html`<span class="badge ${toBadge(certificate, coverage?.risk ?? 'doubt')}">${certificate}</span> <span class="aside">${
    coverage && through
      ? html`through ${renderAgo(through, now)}, proof from ${renderAgo(coverage.asOf, now)}${coverage.risk === 'doubt' ? `; in doubt: ${coverage.reason}` : ''}`
      : (coverage?.reason ?? 'nothing was read to its end yet')
  }</span> <a href="/proof?advertiser=${encodeURIComponent(name)}" aria-label="why ${name} is ${certificate}">why</a>`;
}

/** A harmless assumption is the normal outcome of a poll and of a small account. */
function toBadge(certificate: CoverageStatus['certificate'], risk: CoverageStatus['risk']): 'good' | 'fair' | 'bad' {
  if (certificate === 'unproven') return 'bad';
  return risk === 'doubt' ? 'fair' : 'good';
}

function renderHistory(history: History, refreshSeconds: number | null): Html {
  return html`<section aria-labelledby="history"><div class="titled"><h2 id="history">The last 24 hours</h2>
<nav aria-label="Refresh">${refreshSeconds === null ? html`<a href="/?refresh=30">auto-refresh</a>` : html`<a href="/">stop refreshing</a>`}</nav></div>
<div class="panels">${renderCharts(history)}</div></section>`;
}

/** Do people apply as usual, and how soon are their applications stored. Rates of files, sweeps and bytes are metrics instead. */
function renderCharts({ hours }: History): Html[] {
  const total = hours.reduce((sum, hour) => sum + hour.applications, 0);
  const most = Math.max(...hours.map((hour) => hour.applications));
  const delayMs = Math.max(...hours.map((hour) => hour.delayMs ?? 0));
  return [
    renderFigure(
      'applications',
      'Applications per hour',
      `${formatCount(total, 'application')} in the last 24 hours${total === 0 ? '' : `, up to ${formatCount(most)} per hour`}`,
      hours.map(({ startAt, applications: value }) => ({ startAt, value, text: formatCount(value) })),
    ),
    renderFigure(
      'delay',
      'Delay from submission to storage',
      delayMs === 0
        ? 'nothing new was stored in the last 24 hours'
        : `up to ${formatSpan(delayMs)} in the slowest hour, for 95 % of the applications`,
      hours.map(({ startAt, delayMs }) => ({ startAt, value: delayMs ?? 0, text: formatSpan(delayMs ?? 0, 1) })),
    ),
  ];
}

/** `figure` says in words what the chart shows. A bar is one unit wide, the highest has a height of 100. */
function renderFigure(
  id: string,
  title: string,
  figure: string,
  bars: readonly { readonly startAt: Date; readonly value: number; readonly text: string }[],
): Html {
  const highest = Math.max(...bars.map(({ value }) => value));
  return html`<figure class="panel" id="${id}">
<figcaption><h3>${title}</h3><p class="aside">${figure}</p></figcaption>
<svg class="chart" viewBox="0 0 ${bars.length} 100" preserveAspectRatio="none" role="img" aria-label="${title}: ${figure}">
${bars.map(({ startAt, value, text }, nth) => {
  if (value === 0) return '';
  const height = Math.ceil((100 * value) / highest);
  return html`<rect x="${nth + 0.1}" y="${100 - height}" width="0.8" height="${height}"><title>${formatMoment(startAt)}: ${text}</title></rect>`;
})}
</svg>
<p class="titled aside"><span>${bars[0] && formatMoment(bars[0].startAt)}</span><span>now</span></p>
</figure>
`;
}

/** Polls are left out unless they leave a doubt: one every few minutes would push every recheck off the page. */
function renderSweeps({ recentSweeps }: History, at: Date): Html {
  if (recentSweeps.length === 0) return html``;
  return renderTable({
    id: 'sweeps-recent',
    title: 'Recent sweeps',
    columns: ['Started', 'Advertiser', 'Sweep', 'Result', '#Requests', '#New', '#Changed', '#Took'],
    rows: recentSweeps.map((sweep) => [
      renderAgo(sweep.startedAt, at),
      sweep.advertiser,
      toSweepName(sweep),
      renderResult(toSweepResult(sweep)),
      formatCount(sweep.requests),
      formatCount(sweep.added),
      formatCount(sweep.changed),
      sweep.endedAt === null ? '' : formatSpan(sweep.endedAt.getTime() - sweep.startedAt.getTime()),
    ]),
  });
}

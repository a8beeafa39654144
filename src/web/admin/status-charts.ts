// The two charts of the status page: do people apply as usual, and how soon are their applications stored. Rates of files, sweeps and bytes
// are metrics instead.

import { html } from 'hono/html';
import { formatCount, formatSpan } from '../../domain/format.ts';
import type { History } from '../../domain/status/history.ts';
import { type Html, toUtc } from './page.ts';

export function renderCharts({ period, steps }: History): Html[] {
  const per = period === '24h' ? 'hour' : 'day';
  const within = period === '24h' ? 'in the last 24 hours' : 'in the last 30 days';
  const total = steps.reduce((sum, step) => sum + step.applications, 0);
  const most = Math.max(...steps.map((step) => step.applications));
  const delayMs = Math.max(...steps.map((step) => step.delayMs ?? 0));
  return [
    renderFigure(
      'applications',
      `Applications per ${per}`,
      `${formatCount(total, 'application')} ${within}${total === 0 ? '' : `, up to ${formatCount(most)} per ${per}`}`,
      steps.map(({ startAt, applications: value }) => ({ startAt, value, text: formatCount(value) })),
    ),
    renderFigure(
      'delay',
      'Delay from submission to storage',
      delayMs === 0
        ? `nothing new was stored ${within}`
        : `up to ${formatSpan(delayMs)} in the slowest ${per}, for 95 % of the applications`,
      steps.map(({ startAt, delayMs }) => ({ startAt, value: delayMs ?? 0, text: formatSpan(delayMs ?? 0, 1) })),
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
  return html`<rect x="${nth + 0.1}" y="${100 - height}" width="0.8" height="${height}"><title>${toUtc(startAt)}: ${text}</title></rect>`;
})}
</svg>
<p class="titled aside"><span>${bars[0] && toUtc(bars[0].startAt)}</span><span>now</span></p>
</figure>
`;
}

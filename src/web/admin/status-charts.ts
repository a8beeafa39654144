// The two charts of the status page as SVG, each with its figures as a table: do people apply as usual, and how soon are their applications
// stored. Rates of files, sweeps and bytes are metrics instead. Colours and strokes are classes of status.css: a style attribute would need
// an exception in the page's CSP.

import { scaleLinear } from 'd3-scale';
import { html } from 'hono/html';
import { formatCount, formatSpan } from '../../domain/format.ts';
import { type History, steps } from '../../domain/history.ts';
import type { Html } from './page.ts';

interface Chart {
  /** Unique on its page. */
  readonly id: string;
  readonly title: string;
  /** What the chart shows, in words, and more of it for screen readers. */
  readonly figure: string;
  readonly summary: string;
  readonly startAt: readonly Date[];
  readonly stepMs: number;
  /** What the values are. */
  readonly name: string;
  /** One per step; null where there is none. */
  readonly values: readonly (number | null)[];
  /** Ticks are at whole multiples of this: 60,000 for minutes. */
  readonly unit: number;
  readonly format: (value: number) => string;
}

export function renderCharts({ period, steps: taken }: History): Html[] {
  const { stepMs } = steps[period];
  const startAt = taken.map((step) => step.startAt);
  const per = period === '24h' ? 'hour' : 'day';
  const within = period === '24h' ? 'in the last 24 hours' : 'in the last 30 days';

  const total = taken.reduce((sum, step) => sum + step.applications, 0);
  const applications = `${formatCount(total, 'application')} ${within}`;
  const delayMs = Math.max(...taken.map((step) => step.delayMs ?? 0));
  const delay =
    delayMs === 0 ? `nothing new was stored ${within}` : `up to ${formatSpan(delayMs)} in the slowest ${per}`;
  return [
    renderFigure({
      ...{ startAt, stepMs, unit: 1, format: formatCount },
      id: 'applications',
      title: `Applications per ${per}`,
      figure: applications,
      summary: `${applications}, by when they were submitted.`,
      name: 'applications',
      values: taken.map((step) => step.applications),
    }),
    renderFigure({
      ...{ startAt, stepMs, unit: toDurationUnit(delayMs), format: (ms: number) => formatSpan(ms, 1) },
      id: 'delay',
      title: 'Delay from submission to storage',
      figure: `${delay}, for 95 % of the applications`,
      summary: `95th percentile: ${delay}. Counts applications submitted since Intake began to read their advertiser.`,
      name: '95 % within',
      values: taken.map((step) => step.delayMs),
    }),
  ];
}

/** The unit of which ticks are whole multiples: seconds, minutes, hours or days. */
function toDurationUnit(longestMs: number): number {
  return [86_400_000, 3_600_000, 60_000, 1_000].find((unit) => longestMs >= 2 * unit) ?? 1_000;
}

function renderFigure(chart: Chart): Html {
  const { id, title, figure, startAt, stepMs, name, values, format } = chart;
  const toFigure = (value: number | null = null) => (value === null ? '–' : format(value));
  return html`<figure class="panel" id="${id}">
<figcaption><h3>${title}</h3><p class="figure">${figure}</p></figcaption>
${renderBars(chart)}
<details><summary>Figures<span class="aside"> of ${title.toLowerCase()}</span></summary>
<table><thead><tr><th scope="col">From (UTC)</th><th scope="col" class="number">${name}</th></tr></thead>
<tbody>${startAt.map(
    (
      at,
      nth,
    ) => html`<tr><th scope="row">${toTime(at, stepMs)}</th><td class="number">${toFigure(values[nth])}</td></tr>
`,
  )}</tbody></table></details>
</figure>
`;
}

const size = { width: 520, height: 180 };
/** The topmost label extends above its line by half its height, which is largest on a small screen. */
const margin = { top: 16, right: 6, bottom: 24, left: 60 };
const floorY = size.height - margin.bottom;
const endX = size.width - margin.right;
const barShare = 0.74;
/** Half the width of `00:00` on a small screen, where letters are largest. */
const timeReach = 26;

function renderBars({ id, title, summary, startAt, stepMs, values, unit, format }: Chart): Html {
  const stepX = (endX - margin.left) / startAt.length;
  const toMiddle = (nth: number) => margin.left + (nth + 0.5) * stepX;
  const highest = Math.max(0, ...values.map(Number)) / unit;
  const y = scaleLinear()
    .domain([0, highest || 1])
    .nice(4)
    .range([floorY, margin.top]);
  const ticks = y.ticks(4).filter((tick) => tick > 0 && (unit > 1 || Number.isInteger(tick)));
  const isNamed = (at: Date, nth: number) => (stepMs < 86_400_000 ? at.getUTCHours() % 6 === 0 : nth % 7 === 3);
  return html`<svg class="chart" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-labelledby="${id}-title ${id}-desc">
<title id="${id}-title">${title}</title><desc id="${id}-desc">${summary}</desc>
${
  highest === 0
    ? html`<text class="nothing" x="${(margin.left + size.width) / 2}" y="${size.height / 2}">No data in this period</text>`
    : ticks.map(
        (tick) => html`<line class="grid" x1="${margin.left}" x2="${endX}" y1="${px(y(tick))}" y2="${px(y(tick))}"/>
<text class="tick value" x="${margin.left - 8}" y="${px(y(tick) + 4)}">${format(tick * unit)}</text>
`,
      )
}
${startAt.map((at, nth) => {
  if (!isNamed(at, nth) || toMiddle(nth) + timeReach > size.width) return '';
  const time = (stepMs < 86_400_000 ? hour : day).format(at);
  return html`<text class="tick" x="${px(toMiddle(nth))}" y="${size.height - 6}">${time}</text>`;
})}
<line class="axis" x1="${margin.left}" x2="${endX}" y1="${floorY}" y2="${floorY}"/>
${startAt.map((at, nth) => {
  const value = values[nth] ?? 0;
  if (value === 0) return '';
  const top = y(value / unit);
  return html`<rect class="bar" x="${px(toMiddle(nth) - (stepX * barShare) / 2)}" y="${px(top)}" width="${px(stepX * barShare)}" height="${px(floorY - top)}" rx="1.5"><title>${toTime(at, stepMs)}: ${format(value)}</title></rect>`;
})}
</svg>`;
}

const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: 'UTC' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

function toTime(at: Date, stepMs: number): string {
  return stepMs < 86_400_000 ? `${day.format(at)} ${hour.format(at)}` : day.format(at);
}

function px(value: number): string {
  return String(Math.round(value * 10) / 10);
}

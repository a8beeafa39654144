// Turns history into the two charts of the status page, each with its figures as a table: do people apply as usual, and how soon are
// their applications stored. Rates of files, sweeps and bytes are metrics instead.

import { html } from 'hono/html';
import { formatCount, formatSpan } from '../../domain/format.ts';
import { type History, steps } from '../../domain/history.ts';
import { type Chart, type Html, renderChart, toTime } from './svg-chart.ts';

/** The charts, each a figure with its headline, its image and its table. */
export function renderCharts({ period, steps: taken }: History): Html[] {
  const { stepMs } = steps[period];
  const startAt = taken.map((step) => step.startAt);
  const per = period === '24h' ? 'hour' : 'day';
  const within = period === '24h' ? 'in the last 24 hours' : 'in the last 30 days';
  const base = { startAt, stepMs, unit: 1, shape: 'bars', format: formatCount } as const;

  const total = taken.reduce((sum, step) => sum + step.applications, 0);
  const applications = `${formatCount(total, 'application')} ${within}`;
  const delayMs = Math.max(...taken.map((step) => step.delayP95Ms ?? 0));
  const delay =
    delayMs === 0 ? `nothing new was stored ${within}` : `up to ${formatSpan(delayMs)} in the slowest ${per}`;
  return [
    renderFigure(applications, {
      ...base,
      id: 'applications',
      title: `Applications per ${per}`,
      summary: `${applications}, by when they were submitted.`,
      series: [{ name: 'applications', values: taken.map((step) => step.applications) }],
    }),
    renderFigure(delay, {
      ...base,
      id: 'delay',
      title: 'Delay from submission to storage',
      summary: `95th percentile: ${delay}. Counts applications submitted since Intake began to read their advertiser.`,
      shape: 'lines',
      unit: toDurationUnit(delayMs),
      format: (ms: number) => formatSpan(ms, 1),
      series: [
        { name: 'median (p50)', values: taken.map((step) => step.delayP50Ms) },
        { name: '95 % within (p95)', values: taken.map((step) => step.delayP95Ms) },
      ],
    }),
  ];
}

/** The unit of which ticks are whole multiples: seconds, minutes, hours or days. */
function toDurationUnit(longestMs: number): number {
  return [86_400_000, 3_600_000, 60_000, 1_000].find((unit) => longestMs >= 2 * unit) ?? 1_000;
}

function renderFigure(figure: string, chart: Chart): Html {
  const { id, title, series, startAt, stepMs, format } = chart;
  const toFigure = (value: number | null = null) => (value === null ? '–' : format(value));
  return html`<figure class="panel" id="${id}">
<figcaption><h3>${title}</h3><p class="figure">${figure}</p>
${series.length > 1 ? html`<ul class="legend">${series.map(({ name }, index) => html`<li class="series-${index + 1}">${name}</li>`)}</ul>` : ''}</figcaption>
${renderChart(chart)}
<details><summary>Figures<span class="aside"> of ${title.toLowerCase()}</span></summary>
<table><thead><tr><th scope="col">From (UTC)</th>${series.map(({ name }) => html`<th scope="col" class="number">${name}</th>`)}</tr></thead>
<tbody>${startAt.map(
    (
      at,
      index,
    ) => html`<tr><th scope="row">${toTime(at, stepMs)}</th>${series.map(({ values }) => html`<td class="number">${toFigure(values[index])}</td>`)}</tr>
`,
  )}</tbody></table></details>
</figure>
`;
}

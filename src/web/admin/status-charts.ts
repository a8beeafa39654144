// Turns history into the charts of the status page: what is drawn, how its figures read, and the same figures as a table.

import { html } from 'hono/html';
import { type History, type Step, steps } from '../../domain/history.ts';
import { toBytes, toCount, toRoundSpan, toSpan } from './format.ts';
import { type Chart, type Html, renderChart, toTime } from './svg-chart.ts';

/** The charts, each a figure with its headline, its image and its table. */
export function renderCharts(history: History): Html[] {
  return toCharts(history).map(renderFigure);
}

interface Told extends Chart {
  /** The one figure to remember. */
  readonly figure: string;
}

function toCharts({ period, steps: taken }: History): Told[] {
  const { stepMs } = steps[period];
  const startAt = taken.map((step) => step.startAt);
  const per = period === '24h' ? 'hour' : 'day';
  const within = period === '24h' ? 'in the last 24 hours' : 'in the last 30 days';
  const sum = (pick: (step: Step) => number) => taken.reduce((total, step) => total + pick(step), 0);
  const base = { startAt, stepMs, unit: 1, shape: 'bars', format: toCount } as const;

  const applications = `${toCount(sum((step) => step.applications))} applications ${within}`;
  const slowest = (pick: (step: Step) => number | null) => Math.max(...taken.map((step) => pick(step) ?? 0));
  const delayMs = slowest((step) => step.delayP95Ms);
  const delay = delayMs === 0 ? `nothing new was stored ${within}` : `up to ${toSpan(delayMs)} in the slowest ${per}`;
  const files = `${toCount(sum((step) => step.files))} files stored ${within}`;
  const bytes = `${toBytes(sum((step) => step.fileBytes))} stored ${within}`;
  const open = sum((step) => step.sweeps - step.closedSweeps);
  const sweeps = `${toCount(sum((step) => step.sweeps))} sweeps ${within}, ${open === 0 ? 'all' : `all but ${toCount(open)}`} closed`;
  const sweepMs = slowest((step) => step.sweepP95Ms);
  const took = sweepMs === 0 ? `no sweep ended ${within}` : `up to ${toSpan(sweepMs)} in the slowest ${per}`;
  return [
    {
      ...base,
      id: 'applications',
      title: `Applications per ${per}`,
      figure: applications,
      summary: `${applications}, by when they were made.`,
      series: [{ name: 'applications', values: taken.map((step) => step.applications) }],
    },
    {
      ...base,
      id: 'delay',
      title: 'Delay from submission to storage',
      figure: delay,
      summary: `95th percentile: ${delay}. Of applications made since their advertiser is read.`,
      shape: 'lines',
      unit: toDurationUnit(delayMs),
      format: toRoundSpan,
      series: [
        { name: 'median (p50)', values: taken.map((step) => step.delayP50Ms) },
        { name: '95 % within (p95)', values: taken.map((step) => step.delayP95Ms) },
      ],
    },
    {
      ...base,
      id: 'files',
      title: `Files stored per ${per}`,
      figure: files,
      summary: `${files}.`,
      series: [{ name: 'files', values: taken.map((step) => step.files) }],
    },
    {
      ...base,
      id: 'bytes',
      title: `Bytes stored per ${per}`,
      figure: bytes,
      summary: `${bytes}, by the size that the source names.`,
      format: toBytes,
      series: [{ name: 'of files', values: taken.map((step) => step.fileBytes) }],
    },
    {
      ...base,
      id: 'sweeps',
      title: `Sweeps per ${per}`,
      figure: sweeps,
      summary: `${sweeps}. Polls that find nothing new leave no sweep.`,
      series: [
        { name: 'closed', values: taken.map((step) => step.closedSweeps) },
        { name: 'running or left open', values: taken.map((step) => step.sweeps - step.closedSweeps) },
      ],
    },
    {
      ...base,
      id: 'durations',
      title: 'Duration of sweeps',
      figure: took,
      summary: `95th percentile: ${took}.`,
      shape: 'lines',
      unit: toDurationUnit(sweepMs),
      format: toSpan,
      series: [
        { name: 'median (p50)', values: taken.map((step) => step.sweepP50Ms) },
        { name: '95 % within (p95)', values: taken.map((step) => step.sweepP95Ms) },
      ],
    },
  ];
}

/** Ticks of a span are whole seconds, minutes, hours or days. */
function toDurationUnit(longestMs: number): number {
  return [86_400_000, 3_600_000, 60_000, 1_000].find((unit) => longestMs >= 2 * unit) ?? 1_000;
}

function renderFigure(chart: Told): Html {
  const { id, title, figure, series, startAt, stepMs, format } = chart;
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
    ) => html`<tr><th scope="row">${toTime(at, stepMs)}</th>${series.map(({ values }) => html`<td class="number">${toFigure(values[index] ?? null, format)}</td>`)}</tr>
`,
  )}</tbody></table></details>
</figure>
`;
}

function toFigure(value: number | null, format: (value: number) => string): string {
  return value === null ? '–' : format(value);
}

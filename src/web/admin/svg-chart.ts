// Draws time series as SVG on the server: bars of one series, or lines of several. It knows shapes and scales, not the meaning of the
// figures. Colours and strokes are classes of status.css: a style attribute would need an exception in the page's CSP.

import { type ScaleLinear, scaleLinear, scaleUtc } from 'd3-scale';
import { curveMonotoneX, line } from 'd3-shape';
import { html } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';

export interface Chart {
  /** Unique on its page. */
  readonly id: string;
  readonly title: string;
  /** One sentence that describes the chart to screen readers. */
  readonly summary: string;
  readonly shape: 'bars' | 'lines';
  readonly startAt: readonly Date[];
  readonly stepMs: number;
  /** One value per step; null where there is none. */
  readonly series: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
  /** Ticks are at whole multiples of this: 60,000 for minutes. */
  readonly unit: number;
  readonly format: (value: number) => string;
}

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

const size = { width: 520, height: 180 };
/** The topmost label extends above its line by half its height, which is largest on a small screen. */
const margin = { top: 16, right: 6, bottom: 24, left: 60 };
const floorY = size.height - margin.bottom;
const barShare = 0.74;
/** Half the width of `00:00` on a small screen, where letters are largest. */
const timeReach = 26;

export function renderChart(chart: Chart): Html {
  const first = chart.startAt[0] ?? new Date(0);
  const last = chart.startAt.at(-1) ?? first;
  const x = scaleUtc()
    .domain([first, new Date(last.getTime() + chart.stepMs)])
    .range([margin.left, size.width - margin.right]);
  const highest = Math.max(0, ...chart.series.flatMap(({ values }) => values.map(Number))) / chart.unit;
  const y = scaleLinear()
    .domain([0, highest || 1])
    .nice(4)
    .range([floorY, margin.top]);
  const draw = chart.shape === 'bars' ? renderBars : renderLines;
  return html`<svg class="chart" viewBox="0 0 ${size.width} ${size.height}" role="img" aria-labelledby="${chart.id}-title ${chart.id}-desc">
<title id="${chart.id}-title">${chart.title}</title><desc id="${chart.id}-desc">${chart.summary}</desc>
${highest > 0 ? renderScale(chart, y) : ''}${renderTimes(chart, x)}
<line class="axis" x1="${margin.left}" x2="${size.width - margin.right}" y1="${floorY}" y2="${floorY}"/>
${
  highest > 0
    ? draw(chart, x, y)
    : html`<text class="nothing" x="${(margin.left + size.width) / 2}" y="${size.height / 2}">No data in this period</text>`
}
</svg>`;
}

type TimeScale = (at: Date) => number;
type ValueScale = ScaleLinear<number, number>;

function renderScale({ unit, format }: Chart, y: ValueScale): Html[] {
  return y
    .ticks(4)
    .filter((tick) => tick > 0 && (unit > 1 || Number.isInteger(tick)))
    .map(
      (
        tick,
      ) => html`<line class="grid" x1="${margin.left}" x2="${size.width - margin.right}" y1="${px(y(tick))}" y2="${px(y(tick))}"/>
<text class="tick value" x="${margin.left - 8}" y="${px(y(tick) + 4)}">${format(tick * unit)}</text>
`,
    );
}

const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: 'UTC' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

function renderTimes({ startAt, stepMs }: Chart, x: TimeScale): Html[] {
  const isHours = stepMs < 86_400_000;
  const toMiddle = (at: Date) => x(new Date(at.getTime() + stepMs / 2));
  return startAt
    .filter((at, index) => (isHours ? at.getUTCHours() % 6 === 0 : index % 7 === 3))
    .filter((at) => toMiddle(at) + timeReach <= size.width)
    .map(
      (at) =>
        html`<text class="tick" x="${px(toMiddle(at))}" y="${size.height - 6}">${(isHours ? hour : day).format(at)}</text>`,
    );
}

function renderBars({ startAt, stepMs, series, unit, format }: Chart, x: TimeScale, y: ValueScale): Html[] {
  return series.slice(0, 1).flatMap(({ name, values }) =>
    startAt.map((at, index) => {
      const value = values[index] ?? 0;
      if (value === 0) return html``;
      const left = x(at);
      const step = x(new Date(at.getTime() + stepMs)) - left;
      const top = y(value / unit);
      return html`<rect class="bar series-1" x="${px(left + (step * (1 - barShare)) / 2)}" y="${px(top)}" width="${px(step * barShare)}" height="${px(floorY - top)}" rx="1.5"><title>${toTime(at, stepMs)}: ${format(value)} ${name}</title></rect>`;
    }),
  );
}

function renderLines({ startAt, stepMs, series, unit, format }: Chart, x: TimeScale, y: ValueScale): Html[] {
  return series.map(({ name, values }, order) => {
    const points = startAt.map((at, index) => ({ at, value: values[index] ?? null }));
    const toX = (at: Date) => x(new Date(at.getTime() + stepMs / 2));
    const toY = (value: number | null) => y((value ?? 0) / unit);
    const path = line<(typeof points)[number]>()
      .defined(({ value }) => value !== null)
      .x(({ at }) => toX(at))
      .y(({ value }) => toY(value))
      .curve(curveMonotoneX);
    // Every value has a dot: a single value between two gaps would draw no line.
    return html`<path class="line series-${order + 1}" d="${path(points) ?? ''}"/>
${points.map(({ at, value }) =>
  value === null
    ? ''
    : html`<circle class="dot series-${order + 1}" cx="${px(toX(at))}" cy="${px(toY(value))}" r="2.5"><title>${toTime(at, stepMs)}: ${name} ${format(value)}</title></circle>`,
)}`;
  });
}

export function toTime(at: Date, stepMs: number): string {
  return stepMs < 86_400_000 ? `${day.format(at)} ${hour.format(at)}` : day.format(at);
}

function px(value: number): string {
  return String(Math.round(value * 10) / 10);
}

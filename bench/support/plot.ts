// Draws a line over account sizes as SVG: sizes on a logarithmic axis, values from zero, a label at every point.

import { scaleLinear, scaleLog } from 'd3-scale';
import { line } from 'd3-shape';

interface Point {
  readonly x: number;
  readonly y: number;
}

const [width, height, left, right, top, bottom] = [640, 320, 64, 24, 48, 44];

/** Draws one line. */
export function renderPlot(title: string, points: readonly Point[]): string {
  const sizes = points.map((point) => point.x);
  const x = scaleLog([Math.min(...sizes), Math.max(...sizes)], [left, width - right]);
  const y = scaleLinear([0, Math.max(...points.map((point) => point.y)) * 1.1], [height - bottom, top]).nice();
  const path = line<Point>(
    (point) => x(point.x),
    (point) => y(point.y),
  )([...points]);
  const rows = y
    .ticks(5)
    .map(
      (tick) =>
        `<line x1="${left}" x2="${width - right}" y1="${y(tick)}" y2="${y(tick)}" stroke="#ddd"/>` +
        `<text x="${left - 8}" y="${y(tick) + 4}" text-anchor="end">${tick.toLocaleString('en')}</text>`,
    );
  const dots = points.map(
    (point) =>
      `<circle cx="${x(point.x).toFixed(1)}" cy="${y(point.y).toFixed(1)}" r="4" fill="#1f6feb"/>` +
      `<text x="${x(point.x).toFixed(1)}" y="${(y(point.y) - 10).toFixed(1)}" text-anchor="middle">${point.y.toLocaleString('en')}</text>` +
      `<text x="${x(point.x).toFixed(1)}" y="${height - bottom + 20}" text-anchor="middle">${point.x.toLocaleString('en')}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}" font-family="sans-serif" font-size="12" fill="#333">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${left}" y="24" font-size="15">${title}</text>`,
    ...rows,
    `<path d="${path}" fill="none" stroke="#1f6feb" stroke-width="2"/>`,
    ...dots,
    `<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">applications</text>`,
    '</svg>\n',
  ].join('\n');
}

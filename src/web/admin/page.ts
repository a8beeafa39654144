// What all pages of the admin port share: the surrounding document, the tables and the times. Plain HTML without scripts; hono's html escapes
// inserted values.

import { html } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';
import { formatAgo, formatMoment } from '../../domain/format.ts';
import { version } from '../../domain/schema.ts';
import type { SweepResult } from '../../domain/status/advertiser-status.ts';

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

export function renderDocument(title: string, body: Html, at: Date, refreshSeconds: number | null = null): Html {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${refreshSeconds === null ? '' : html`<meta http-equiv="refresh" content="${refreshSeconds}">`}
<title>${title}</title>
<link rel="stylesheet" href="/status.css">
<link rel="icon" href="/icon.svg" type="image/svg+xml">
</head>
<body>
<header><p class="brand"><a href="/">Intake</a></p><p class="aside">as of <time datetime="${at.toISOString()}">${formatMoment(at)}</time></p></header>
${body}
<footer><p>Version ${version}. All times are UTC.</p>
<nav aria-label="For programs"><a href="/api/status">status as JSON</a> <a href="/metrics">metrics</a> <a href="/readyz">readiness</a> <a href="/livez">liveness</a></nav></footer>
</body>
</html>`;
}

/** Whether all is well, as a colour of the stylesheet, a sign and a word. */
export interface Mood {
  readonly name: 'good' | 'fair' | 'bad';
  readonly sign: string;
  readonly word: string;
}

export function renderHeadline({ name, sign, word }: Mood, sentence: string, more: Html | string | null = null): Html {
  return html`<section class="headline ${name}" aria-labelledby="headline">
<p class="mood"><span class="sign" aria-hidden="true">${sign}</span>${word}</p>
<h1 id="headline">${sentence}</h1>${more}</section>`;
}

export interface PageTable {
  readonly id: string;
  readonly title: string;
  /** A name that begins with `#` marks a column of numbers, aligned to the right. */
  readonly columns: readonly string[];
  /** The first cell names its row. */
  readonly rows: readonly (readonly (Html | string)[])[];
  readonly about?: string;
}

/** A table that the stylesheet turns into cards on a phone, repeating each column name. Its changed `display` drops the implicit roles. */
export function renderTable({ id, title, columns, rows, about }: PageTable): Html {
  const toClass = (column = '') => (column.startsWith('#') ? html` class="number"` : '');
  const heads = columns.map(
    (column) => html`<th role="columnheader" scope="col"${toClass(column)}>${column.replace('#', '')}</th>`,
  );
  const toCell = (cell: Html | string, index: number) =>
    index === 0
      ? html`<th role="rowheader" scope="row">${cell}</th>`
      : html`<td role="cell" data-label="${columns[index]?.replace('#', '')}"${toClass(columns[index])}>${cell}</td>`;
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${about === undefined ? '' : html`<p class="about">${about}</p>`}<div class="scroll" role="region" aria-labelledby="${id}" tabindex="0"><table role="table">
<thead role="rowgroup"><tr role="row">${heads}</tr></thead>
<tbody role="rowgroup">${rows.map((row) => html`<tr role="row">${row.map(toCell)}</tr>\n`)}</tbody></table></div></section>`;
}

export function renderResult({ word, mood, note }: SweepResult): Html {
  return html`<span class="badge ${mood}">${word}</span> <span class="aside">${note ?? ''}</span>`;
}

/** How long ago, with the exact time as a tooltip. */
export function renderAgo(at: Date | null, now: Date, never = 'never'): Html {
  if (at === null) return html`${never}`;
  return html`<time datetime="${at.toISOString()}" title="${formatMoment(at)}">${formatAgo(at, now)}</time>`;
}

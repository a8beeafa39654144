// Formats counts, durations and times for the pages: one form of each, times in UTC.

import { html } from 'hono/html';
import { formatCount, formatSpan } from '../../domain/format.ts';
import type { Html } from './svg-chart.ts';

/** 12345 as 12,345. */
export function toCount(value: number): string {
  return formatCount(value);
}

/** The two largest units: 2h 5m. */
export function toSpan(ms: number): string {
  return formatSpan(ms);
}

/** The largest unit only, 2h: for axes and for "ago". */
export function toRoundedSpan(ms: number): string {
  return formatSpan(ms, 1);
}

/** How long ago, with the exact time as a tooltip. */
export function renderAgo(at: Date | null, now: Date, never = 'never'): Html {
  if (at === null) return html`${never}`;
  const ms = now.getTime() - at.getTime();
  return html`<time datetime="${at.toISOString()}" title="${toUtc(at)}">${ms < 1_000 ? 'just now' : `${toRoundedSpan(ms)} ago`}</time>`;
}

/** 2026-11-15 03:40 UTC. */
export function toUtc(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

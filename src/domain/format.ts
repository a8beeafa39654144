// Formats counts, bytes and time spans for every sentence, table and chart, and values for programs.

/** 12,345; with a thing: 1 request, 12,345 requests. `many` is for irregular plurals. */
export function formatCount(count: number, thing?: string, many = `${thing}s`): string {
  const figure = count.toLocaleString('en-US');
  return thing === undefined ? figure : `${figure} ${count === 1 ? thing : many}`;
}

export function formatIds(ids: readonly bigint[]): string {
  const more = ids.length > 20 ? ` and ${ids.length - 20} more` : '';
  return `${ids.slice(0, 20).join(', ')}${more}`;
}

/** 940 B, 1.2 MB: powers of 1000, one decimal. */
export function formatBytes(bytes: number): string {
  const unit = byteUnits.findLast(([, size]) => bytes >= size);
  if (unit === undefined) return `${Math.round(bytes)} B`;
  return `${(bytes / unit[1]).toLocaleString('en-US', { maximumFractionDigits: 1 })} ${unit[0]}`;
}

/** The largest unit and the one below it: 350ms, 1.5s, 45s, 2h 5m, 15d. One unit is for bars and for "ago". */
export function formatSpan(ms: number, units: 1 | 2 = 2): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 10_000 && units === 2) return `${Number((ms / 1_000).toFixed(1))}s`;
  const [[unit, unitMs] = ['s', 1_000], next] = spanUnits.slice(spanUnits.findIndex(([, size]) => ms >= size));
  const rest = next === undefined || units === 1 ? 0 : Math.floor((ms % unitMs) / next[1]);
  return `${Math.floor(ms / unitMs)}${unit}${rest === 0 ? '' : ` ${rest}${next?.[0]}`}`;
}

export function formatAgo(at: Date, now: Date): string {
  const ms = now.getTime() - at.getTime();
  return ms < 1_000 ? 'just now' : `${formatSpan(ms, 1)} ago`;
}

/** 2026-11-15 06:37:57 UTC. */
export function formatMoment(at: Date | number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** JSON on one line. A bigint becomes a string, so that ids beyond 2^53 keep their digits. */
export function toJson(value: object): string {
  return JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? member.toString() : member));
}

const byteUnits = Object.entries({ kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15 });
const spanUnits = Object.entries({ y: 365 * 86_400_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 });

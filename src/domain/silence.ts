// When an account that was never silent falls silent, a filter that hides its newest applications looks just the same.
// Judges arrival times against the account's own habit; it knows no source and no schedule.

/** A silence that is out of habit, and what the habit was. */
export interface Silence {
  readonly silentForMs: number;
  /** The two weeks around Christmas left out. */
  readonly longestUsualMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * Which arrivals the rule needs: the newest ones, this far apart, of one year. Every arrival of a busy account would be a history of
 * a few days, which knows no weekend.
 */
export const arrivalSample = { apartMs: 12 * hourMs, count: 200, reachMs: 365 * dayMs } as const;

/** Fewer arrivals, or a shorter history, are no habit: a weekend would look like a fault. */
const fewestArrivals = 20;
const shortestHistoryMs = 14 * dayMs;
/** From the evening before Good Friday to the morning after Easter Monday it is four and a half days. */
const shortestSilenceMs = 5 * dayMs;

/** The silence since the last arrival when it is more than twice as long as any before it; otherwise null. */
export function toUnusualSilence(arrivedAt: readonly number[], nowAt: number): Silence | null {
  const times = arrivedAt.filter((at) => at <= nowAt).sort((a, b) => a - b);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined || times.length < fewestArrivals) return null;
  if (last - first < shortestHistoryMs) return null;
  let longestUsualMs = 0;
  for (let i = 1; i < times.length; i++) {
    longestUsualMs = Math.max(longestUsualMs, spanWithoutChristmas(times[i - 1] as number, times[i] as number));
  }
  const countedMs = spanWithoutChristmas(last, nowAt);
  if (countedMs < shortestSilenceMs || countedMs <= 2 * longestUsualMs) return null;
  return { silentForMs: nowAt - last, longestUsualMs };
}

/** Milliseconds between two moments; those from 20 December to 6 January do not count. */
function spanWithoutChristmas(from: number, to: number): number {
  let ms = to - from;
  for (let year = new Date(from).getUTCFullYear() - 1; year <= new Date(to).getUTCFullYear(); year++) {
    const [start, end] = [Date.UTC(year, 11, 20), Date.UTC(year + 1, 0, 7)];
    ms -= Math.max(0, Math.min(to, end) - Math.max(from, start));
  }
  return ms;
}

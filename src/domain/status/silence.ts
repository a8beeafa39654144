// Detects an account that unexpectedly stops receiving applications. A filter that hides its newest applications would look the same.
// Compares arrival times with the account's own history.

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The arrivals that the rule needs: the newest ones within one year, at least this far apart. Without the spacing, the sample of a busy
 * account would cover only a few days and might contain no weekend.
 */
export const arrivalSample = { apartMs: 12 * hourMs, count: 200, reachMs: 365 * dayMs } as const;

/** With fewer arrivals or a shorter history, an ordinary weekend would look like a fault. */
const fewestArrivals = 20;
const shortestHistoryMs = 14 * dayMs;
/** Longer than Easter: from the evening before Good Friday to the morning after Easter Monday it is four and a half days. */
const shortestSilenceMs = 5 * dayMs;

/** The silence since the last arrival if it is at least five days and more than twice as long as any before it; otherwise null. */
export function toUnusualSilence(arrivedAt: readonly number[], nowAt: number) {
  const times = arrivedAt.filter((at) => at <= nowAt).sort((a, b) => a - b);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined || times.length < fewestArrivals) return null;
  if (last - first < shortestHistoryMs) return null;
  const longestUsualMs = Math.max(...times.slice(1).map((at, nth) => spanWithoutChristmas(times[nth] as number, at)));
  const countedMs = spanWithoutChristmas(last, nowAt);
  if (countedMs < shortestSilenceMs || countedMs <= 2 * longestUsualMs) return null;
  return { silentForMs: nowAt - last, longestUsualMs };
}

/** Milliseconds between two moments, not counting 20 December to 6 January. */
function spanWithoutChristmas(from: number, to: number): number {
  let ms = to - from;
  for (let year = new Date(from).getUTCFullYear() - 1; year <= new Date(to).getUTCFullYear(); year++) {
    const [start, end] = [Date.UTC(year, 11, 20), Date.UTC(year + 1, 0, 7)];
    ms -= Math.max(0, Math.min(to, end) - Math.max(from, start));
  }
  return ms;
}

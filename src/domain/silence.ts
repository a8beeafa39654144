// When an account that was never silent falls silent, a filter that hides its newest applications looks just the same.
// Judges arrival times against the account's own habit; it knows no source and no schedule.

/** A silence that is out of habit, and what the habit was. */
export interface Silence {
  readonly silentForMs: number;
  readonly longestUsualMs: number;
}

/** Fewer arrivals, or a shorter history, are no habit: a weekend would look like a fault. */
const fewestArrivals = 20;
const shortestHistoryMs = 14 * 24 * 3600_000;
const shortestSilenceMs = 24 * 3600_000;

/** The silence since the last arrival when it is more than twice as long as any before it; otherwise null. */
export function toUnusualSilence(arrivedAt: readonly number[], nowAt: number): Silence | null {
  const times = arrivedAt.filter((at) => at <= nowAt).sort((a, b) => a - b);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined || times.length < fewestArrivals) return null;
  if (last - first < shortestHistoryMs) return null;
  let longestUsualMs = 0;
  for (let i = 1; i < times.length; i++) {
    longestUsualMs = Math.max(longestUsualMs, (times[i] as number) - (times[i - 1] as number));
  }
  const silentForMs = nowAt - last;
  if (silentForMs < shortestSilenceMs || silentForMs <= 2 * longestUsualMs) return null;
  return { silentForMs, longestUsualMs };
}
